"""`holdfast token revoke`: let a token be worth nothing."""

from __future__ import annotations

import pytest

import holdfast
from tests.cli.token_calls import create, listed


@pytest.fixture
def store(tmp_path):
    with holdfast.open(str(tmp_path / "store")):
        pass
    return str(tmp_path / "store")


def test_a_revoked_one_is_gone_and_the_reason_is_told(run, store):
    made = create(run, store, "ann")
    done = run("token", "revoke", made["id"], "--reason", "left", "--store", store)
    assert made["id"] in done.out and listed(run, store) == []
    with holdfast.open(store) as service:
        [asked] = service.audit.query_events(event_types=["REQUEST_MADE"])
        assert asked.data == {"reason": "left"}


@pytest.mark.parametrize("words", [("00000000",), ("00000000", "--dry-run"), ("../x",)])
def test_what_is_not_there_is_told(run, store, words):
    assert run("token", "revoke", *words, "--store", store).exit_code == 4


def test_a_dry_run_revokes_nothing(run, store):
    made = create(run, store, "bob")
    done = run("token", "revoke", made["id"], "--dry-run", "--store", store)
    assert done.exit_code == 0 and "Would revoke" in done.out
    assert [one["id"] for one in listed(run, store)] == [made["id"]]
