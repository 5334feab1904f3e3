"""What a store promises about histories that arrive from another store, tombstones and all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from holdfast.conformance.history import History, Opening, blob_name, raises
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError
from holdfast.domain.record import Commit, Head, Record, Removal
from holdfast.ports import Store

_MANY = 300


class Arriving(Opening):
    """Tombstones, checkpoints whose events are gone, histories that begin in the middle."""

    def test_a_tombstone_arrives_with_its_bytes_and_stays_readable(self) -> None:
        with self.opened() as store:
            history = History(store)
            first = arrive(history, tombstone(history.draft(keyframe=b"one")))
            second = arrive(history, history.draft())
            assert first.record is not None and second.record is not None
            assert list(store.entries("W")) == [first.record.entry, second.record.entry]
            assert [entry.pruned for entry in store.entries("W")] == [True, False]
            assert list(store.records("W", 1, 2)) == [first.record.data, second.record.data]
            assert store.keyframe("W", 1) == b"one"
            assert store.head("W") == history.head

    def test_a_tombstone_arrives_without_bytes(self) -> None:
        with self.opened() as store:
            history = _mixed(store)
            assert [(e.sequence, e.pruned) for e in store.entries("W")] == [
                (1, True),
                (2, True),
                (3, True),
                (4, False),
            ]
            for first, last in ((1, 1), (2, 2), (1, 4)):
                raises(CheckpointNotFoundError, partial(store.records, "W", first, last))
            assert list(store.records("W", 3, 4)) == [history.records[3], history.records[4]]
            assert store.head("W") == history.head

    def test_a_keyframe_arrives_with_a_tombstone_whose_own_bytes_are_gone(self) -> None:
        with self.opened() as store:
            _mixed(store)
            assert [keyframe.sequence for keyframe in store.keyframes("W")] == [2]
            assert store.keyframe("W", 2) == b"two"

    def test_what_arrived_is_there_after_reopening_and_nothing_is_wrong_with_it(self) -> None:
        store = self.open_store()
        history = _mixed(store)
        before = (list(store.entries("W")), store.keyframes("W"), list(store.events("W")), store.head("W"))
        store.settle()
        store = self.reopen(store)
        after = (list(store.entries("W")), store.keyframes("W"), list(store.events("W")), store.head("W"))
        assert after == before
        assert list(store.records("W", 3, 4)) == [history.records[3], history.records[4]]
        assert [finding for finding in store.check() if finding.harm] == []
        store.close()

    def test_a_workflow_goes_on_and_is_pruned_after_its_arrival(self) -> None:
        with self.opened() as store:
            history = _mixed(store)
            history.commit(keyframe=b"five", group=5)
            assert store.remove("W", Removal(sequences=(4,), groups=(2,))) > 0
            assert [entry.pruned for entry in store.entries("W")] == [True] * 4 + [False]
            raises(CheckpointNotFoundError, lambda: store.records("W", 3, 5))
            assert list(store.records("W", 5, 5)) == [history.records[5]]
            assert store.head("W") == history.head

    def test_a_checkpoint_whose_events_are_gone_arrives_without_any(self) -> None:
        with self.opened() as store:
            history = History(store)
            first = arrive(history, without_events(history.draft()))
            assert first.record is not None
            entry = first.record.entry
            assert store.head("W") == Head(sequence=1, checksum=entry.checksum)
            assert list(store.workflows()) == ["W"]
            assert list(store.events("W")) == []
            history.commit()
            assert store.head("W") == history.head

    def test_an_arrival_without_events_on_a_wrong_head_is_a_conflict(self) -> None:
        with self.opened() as store:
            history = History(store)
            again = without_events(history.draft(text="again"))
            arrive(history, without_events(history.draft(text="first")))
            ahead = replace(again, expected=replace(history.head, sequence=7))
            for stray in (again, ahead):
                assert isinstance(store.commit([stray])[0], CheckpointConflictError)
            assert store.head("W") == history.head
            assert len(list(store.entries("W"))) == 1

    def test_a_history_may_begin_in_the_middle(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.head = Head(41, "sha256:" + "4" * 64, 56, "sha256:" + "5" * 64)
            middle = arrive(history, replace(history.draft(group=42), expected=Head()))
            following = arrive(history, history.draft(group=42))
            assert [entry.sequence for entry in store.entries("W")] == [42, 43]
            assert list(store.events("W")) == [middle.events[0].data, following.events[0].data]
            assert list(store.events("W", after=57)) == [following.events[0].data]
            assert list(store.records("W", 42, 43)) == [history.records[42], history.records[43]]
            assert store.head("W") == history.head

    def test_status_retries_and_pin_arrive_with_the_checkpoint(self) -> None:
        with self.opened() as store:
            history = History(store)
            draft = history.draft(status="failed", retry_count=2, pinned=True, label="good")
            arrive(history, draft)
            [entry] = store.entries("W")
            assert (entry.status, entry.retry_count, entry.pinned, entry.label) == ("failed", 2, True, "good")

    def test_a_blob_of_a_tombstone_stays_while_its_group_does(self) -> None:
        with self.opened() as store:
            data = b"of a tombstone"
            sha256 = blob_name(data)
            history = History(store)
            arrive(history, tombstone(history.draft(blobs={sha256: data})))
            arrive(history, history.draft())
            store.remove("W", Removal(sequences=(), blobs=(sha256,)))
            assert store.blob(sha256) == data
            history.commit(keyframe=b"three", group=3)
            store.remove("W", Removal(sequences=(2,), groups=(1,), blobs=(sha256,)))
            assert not store.has_blob(sha256)

    def test_many_commits_of_one_workflow_arrive_in_one_call(self) -> None:
        with self.opened() as store:
            history = History(store)
            drafts = []
            for number in range(_MANY):
                drafts.append(tombstone(history.draft()) if number % 3 else history.draft())
                history.follow(drafts[-1])
            assert store.commit(drafts) == [None] * _MANY
            assert store.head("W") == history.head
            assert list(store.records("W", 1, _MANY)) == [history.records[n] for n in range(1, _MANY + 1)]
            assert len(list(store.events("W"))) == _MANY


def tombstone(commit: Commit, *, has_bytes: bool = True) -> Commit:
    """Make a commit bring its checkpoint as one that was removed; without bytes its group is gone too."""
    assert commit.record is not None
    entry = replace(commit.record.entry, pruned=True)
    if has_bytes:
        return replace(commit, record=Record(entry, commit.record.data))
    return replace(commit, record=Record(replace(entry, group=0, length=0, blobs=()), b""))


def without_events(commit: Commit) -> Commit:
    """Make a commit bring its checkpoint alone, the events before it having been removed."""
    return replace(commit, events=())


def arrive(history: History, commit: Commit) -> Commit:
    """Commit what another store had; it must succeed."""
    assert history.store.commit([commit]) == [None]
    history.follow(commit)
    return commit


def _mixed(store: Store) -> History:
    """Let a pruned history arrive: two tombstones of a group that is gone, one that has its bytes, and 4."""
    history = History(store)
    for keyframe in (None, b"two"):
        draft = history.draft(keyframe=keyframe)
        arrive(history, without_events(tombstone(draft, has_bytes=False)))
    arrive(history, tombstone(history.draft(group=2)))
    arrive(history, history.draft(group=2))
    return history
