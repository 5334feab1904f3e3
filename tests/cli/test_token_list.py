"""`holdfast token list`: who may ask the server, and what for."""

from __future__ import annotations

import pytest

import holdfast
from tests.cli.token_calls import create, listed


@pytest.fixture
def store(tmp_path):
    with holdfast.open(str(tmp_path / "store")):
        pass
    return str(tmp_path / "store")


def test_a_listing_tells_what_each_is_good_for(run, store):
    made = create(run, store, "ann", "--scope", "metrics", "--days", "3")
    [told] = listed(run, store)
    assert (told["id"], told["name"], told["scopes"]) == (made["id"], "ann", ["metrics"])
    assert told["expires_at"] > told["created_at"]
    shown = run("token", "list", "--store", store).out
    assert made["id"] in shown and "metrics" in shown


def test_an_empty_store_says_how_to_begin(run, store):
    assert "holdfast token create" in run("token", "list", "--store", store).err
