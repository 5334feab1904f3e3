"""Reading in pieces answers what reading at once would."""

from __future__ import annotations

import pytest

from holdfast.adapters.sql import reading
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.record import Removal

COUNT = 7


@pytest.fixture(params=[1, 3, COUNT, COUNT + 1])
def at_once(request: pytest.FixtureRequest) -> int:
    """The size of the pieces that are read."""
    return int(request.param)


@pytest.fixture
def history(at_once: int, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> History:
    """Seven checkpoints."""
    for name in ("LISTED_AT_ONCE", "RECORDS_AT_ONCE"):
        monkeypatch.setattr(reading, name, at_once)
    history = History(store)
    for _ in range(COUNT):
        history.commit(group=1 if history.head.sequence < 3 else 4)
    return history


def test_listings_are_whole_whatever_their_pieces(store: SqliteStore, history: History) -> None:
    assert [entry.sequence for entry in store.entries("W")] == [1, 2, 3, 4, 5, 6, 7]
    assert [entry.sequence for entry in store.entries("W", newest_first=True)] == [7, 6, 5, 4, 3, 2, 1]
    assert len(list(store.events("W"))) == COUNT
    assert len(list(store.events("W", after=2))) == COUNT - 2
    assert list(store.records("W", 2, 6)) == [history.records[n] for n in range(2, 7)]


def test_a_record_that_is_gone_is_not_found_at_either_end(store: SqliteStore, history: History) -> None:
    store.remove("W", Removal(sequences=(1, 2, 3), groups=(1,)))
    assert list(store.records("W", 4, 7)) == [history.records[n] for n in range(4, 8)]
    for first, last in ((1, 7), (3, 7), (4, 8), (8, 9)):
        with pytest.raises(CheckpointNotFoundError):
            list(store.records("W", first, last))


def test_records_that_go_while_they_are_read_are_not_found(
    store: SqliteStore, history: History, at_once: int
) -> None:
    records = store.records("W", 4, 7)
    next(records)
    store.remove("W", Removal(sequences=tuple(range(1, 8)), groups=(1, 4)))
    if at_once < COUNT - 3:
        with pytest.raises(CheckpointNotFoundError, match="W@7"):
            list(records)


def test_the_beginning_of_a_uuid_is_taken_literally(store: SqliteStore) -> None:
    History(store).commit()
    [entry] = store.entries("W")
    assert [found for _, found in store.find(entry.uuid[:5])] == [entry]
    assert [found for _, found in store.find("")] == [entry]
    for strange in ("%", "_" * 8, entry.uuid.upper(), entry.uuid + "0"):
        assert store.find(strange) == []


def test_workflows_are_found_by_jumping(store: SqliteStore) -> None:
    assert list(store.workflows()) == []
    names = ["!", "B", "a", "a ", "aa", "\U0001f980"]
    for name in names:
        History(store, name).commit()
        History(store, name).commit()
    assert sorted(store.workflows()) == sorted(names)


def test_what_was_changed_behind_our_back_is_not_returned(store: SqliteStore) -> None:
    sha256 = "b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78"
    History(store).commit(keyframe=b"one", blobs={sha256: b"ABC"})
    assert store.blob(sha256) == b"ABC"
    with store._database.transaction() as transaction:
        transaction.run("update keyframes set data = x'00'")
        transaction.run("update blobs set data = x'00'")
        transaction.run("update checkpoints set data = 'text', status = x'05'")
        transaction.run("update events set data = 'text'")
    with pytest.raises(ChecksumMismatchError):
        store.keyframe("W", 1)
    with pytest.raises(ChecksumMismatchError):
        store.blob(sha256)
    for found in (store.records("W", 1, 1), store.events("W"), store.entries("W")):
        with pytest.raises(CheckpointCorruptError):
            list(found)
