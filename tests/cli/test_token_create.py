"""`holdfast token create`: let somebody ask the server."""

from __future__ import annotations

import pytest

import holdfast
from tests.cli.token_calls import create, listed


@pytest.fixture
def store(tmp_path):
    with holdfast.open(str(tmp_path / "store")):
        pass
    return str(tmp_path / "store")


def test_its_text_is_shown_once_and_never_stored(run, store, tmp_path):
    done = run("token", "create", "ann", "--role", "operator", "--store", store)
    text = done.out.strip()
    assert text.startswith("hf_") and "not shown again" in done.err
    assert text not in run("token", "list", "--store", store).out
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    # The secret itself may hold an underscore.
    assert text.split("_", 2)[2].encode() not in stored


def test_without_a_role_it_may_look(run, store):
    assert create(run, store, "ann")["scopes"] == ["read", "state:read"]


@pytest.mark.parametrize("words", [("ann", "--role", "boss"), ("ann", "--days", "0"), (" ",)])
def test_what_cannot_be_made_is_told(run, store, words):
    assert run("token", "create", *words, "--store", store).exit_code == 2


def test_a_dry_run_makes_nothing(run, store):
    done = run("token", "create", "ann", "--dry-run", "--store", store)
    assert done.exit_code == 0 and "Would make" in done.out
    assert listed(run, store) == []
