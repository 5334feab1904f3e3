"""What the server sets aside is named and told as other stores do it, once, and only if it is wrong."""

from __future__ import annotations

import json

from holdfast.adapters.wrong_bytes import WRONG_BLOB, evidence
from holdfast.conformance.history import History, blob_name
from tests.adapters.postgres import server

RIGHT, WRONG = b"what was committed" * 9, b"something else"


def spoil(url: str) -> None:
    with server.connected(url) as connection:
        connection.execute("update blobs set data = %s where sha256 = %s", (WRONG, blob_name(RIGHT)))


def test_wrong_bytes_are_set_aside_as_elsewhere_and_only_once(store, url):
    name = blob_name(RIGHT)
    told = evidence(f"blob {name}", WRONG_BLOB, WRONG)
    for workflow_id in ("A", "B", "C"):
        History(store, workflow_id).commit(blobs={name: RIGHT})
        assert store.blob(name) == RIGHT
        assert list(store.files("quarantine/")) == ([] if workflow_id == "A" else sorted(told))
        spoil(url)
    kept, report = (store.file(name) for name in told)
    assert kept == WRONG
    expected = json.loads(list(told.values())[-1])
    found = json.loads(report)
    assert found.pop("found_at") and expected.pop("found_at") and found == expected


def test_a_commit_that_lost_its_race_mends_nothing(store, url):
    history = History(store, "A")
    late = history.draft(blobs={blob_name(RIGHT): RIGHT})
    history.commit(blobs={blob_name(RIGHT): RIGHT})
    spoil(url)
    [refused] = store.commit([late])
    assert refused is not None and not list(store.files("quarantine/"))


def test_two_units_of_one_statement_may_bring_the_same_value(store, url):
    name = blob_name(RIGHT)
    History(store, "A").commit(blobs={name: RIGHT})
    spoil(url)
    drafts = [History(store, workflow_id).draft(blobs={name: RIGHT}) for workflow_id in ("B", "C")]
    assert store.commit(drafts) == [None, None]
    assert store.blob(name) == RIGHT and len(list(store.files("quarantine/"))) == 2
