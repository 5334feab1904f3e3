"""What a store promises about keyframes, blobs and removing."""

from __future__ import annotations

from functools import partial

from holdfast.conformance.history import History, Opening, blob_name, make_keyframe, raises
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.record import Head, Removal


class Keeping(Opening):
    """Keyframes, blobs, tombstones and what goes with them."""

    def test_a_keyframe_in_a_commit_and_a_derived_one_are_both_read_back(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b'{"state": 1}\n')
            history.commit()
            derived = make_keyframe(2, b'{"state": 2}\n')
            store.put_keyframe("W", derived)
            store.put_keyframe("W", derived)
            assert [keyframe.sequence for keyframe in store.keyframes("W")] == [1, 2]
            assert store.keyframes("W")[1] == derived.entry
            assert [store.newest_keyframe("W", through) for through in (2, 9)] == [derived.entry] * 2
            assert store.newest_keyframe("W", 1) == store.keyframes("W")[0]
            assert store.newest_keyframe("W", 0) is store.newest_keyframe("other", 9) is None
            assert store.keyframe("W", 1) == b'{"state": 1}\n'
            assert store.keyframe("W", 2) == derived.data

    def test_large_keyframes_and_blobs_are_kept_too(self) -> None:
        with self.opened() as store:
            history = History(store)
            large, huge = b"k" * 6_000_000, bytes(range(256)) * 40_000
            history.commit(keyframe=large, blobs={blob_name(huge): huge})
            assert store.keyframe("W", 1) == large
            assert store.blob(blob_name(huge)) == huge

    def test_a_keyframe_that_comes_after_its_checkpoint_was_removed_is_not_kept(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one")
            history.commit()
            history.commit(keyframe=b"three", group=3)
            store.put_keyframe("W", make_keyframe(2, b"two"))
            store.remove("W", Removal(sequences=(1, 2), groups=(1, 2)))
            for sequence in (1, 2):
                store.put_keyframe("W", make_keyframe(sequence, b"late"))
                raises(CheckpointNotFoundError, partial(store.keyframe, "W", sequence))
            assert [keyframe.sequence for keyframe in store.keyframes("W")] == [3]

    def test_a_keyframe_that_is_not_there_is_not_found(self) -> None:
        with self.opened() as store:
            History(store).commit()
            raises(CheckpointNotFoundError, lambda: store.keyframe("W", 1))
            raises(CheckpointNotFoundError, lambda: store.keyframe("V", 1))

    def test_a_blob_is_kept_once_and_shared_by_workflows(self) -> None:
        with self.opened() as store:
            data = b"shared" * 1000
            sha256 = blob_name(data)
            assert not store.has_blob(sha256)
            for workflow_id in ("A", "B"):
                History(store, workflow_id).commit(blobs={sha256: data})
            assert store.has_blob(sha256)
            assert store.blob(sha256) == data
            raises(CheckpointNotFoundError, lambda: store.blob(blob_name(b"another")))

    def test_a_commit_that_needs_a_blob_is_refused_without_it(self) -> None:
        with self.opened() as store:
            data = b"needed"
            a, b = History(store, "A"), History(store, "B")
            [refused] = store.commit([b.draft(needs=(blob_name(data),))])
            assert isinstance(refused, CheckpointNotFoundError)
            assert store.head("B") == Head()
            a.commit(blobs={blob_name(data): data})
            b.commit(needs=(blob_name(data),))

    def test_a_commit_may_need_a_blob_of_an_earlier_one_in_its_group(self) -> None:
        with self.opened() as store:
            data = b"just now"
            a = History(store, "A").draft(blobs={blob_name(data): data})
            b = History(store, "B").draft(needs=(blob_name(data),))
            assert store.commit([a, b]) == [None, None]

    def test_removing_leaves_tombstones_and_drops_groups(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one")
            history.commit()
            store.put_keyframe("W", make_keyframe(2, b"two"))
            history.commit(group=2)
            history.commit(group=2)
            checksums = [entry.checksum for entry in store.entries("W")]
            freed_bytes = store.remove("W", Removal(sequences=(1, 2, 3), groups=(1,)))
            assert freed_bytes > 0
            assert [(e.sequence, e.pruned) for e in store.entries("W")] == [
                (1, True),
                (2, True),
                (3, True),
                (4, False),
            ]
            assert [entry.checksum for entry in store.entries("W")] == checksums
            assert [keyframe.sequence for keyframe in store.keyframes("W")] == [2]
            raises(CheckpointNotFoundError, lambda: store.records("W", 1, 4))
            raises(CheckpointNotFoundError, lambda: store.keyframe("W", 1))
            assert store.head("W") == history.head

    def test_a_pruned_record_stays_readable_while_its_group_is_there(self) -> None:
        with self.opened() as store:
            history = History(store)
            for _ in range(3):
                history.commit()
            store.remove("W", Removal(sequences=(1, 2)))
            assert list(store.records("W", 1, 3)) == [history.records[n] for n in (1, 2, 3)]

    def test_a_workflow_goes_on_after_a_removal(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one")
            history.commit()
            store.remove("W", Removal(sequences=(1, 2), groups=(1,)))
            history.commit(keyframe=b"three", group=3)
            store = self.reopen(store)
            assert store.head("W") == history.head
            assert store.keyframe("W", 3) == b"three"
            assert list(store.records("W", 3, 3)) == [history.records[3]]

    def test_events_may_go_up_to_the_one_told_and_no_further(self) -> None:
        with self.opened() as store:
            history = History(store)
            days = (11, 11, 12, 12, 13)
            lines = [history.commit(timestamp=f"2026-01-{day}T12:00:00Z").events[0].data for day in days]
            store.remove("W", Removal(sequences=(1, 2, 3), events_through=3))
            left = list(store.events("W"))
            assert left == lines[5 - len(left) :]
            assert len(left) >= 2
            assert store.head("W") == history.head

    def test_blobs_go_when_nothing_refers_to_them_any_more(self) -> None:
        with self.opened() as store:
            mine, shared, later = b"mine", b"shared", b"later"
            named = {blob_name(data): data for data in (mine, shared, later)}
            a, b = History(store, "A"), History(store, "B")
            a.commit(blobs={name: data for name, data in named.items() if data != later})
            a.commit(blobs={blob_name(later): later}, group=2)
            b.commit(blobs={blob_name(shared): shared})
            store.remove("A", Removal(sequences=(1,), groups=(1,), blobs=tuple(named)))
            assert not store.has_blob(blob_name(mine))
            assert store.blob(blob_name(shared)) == shared
            assert store.blob(blob_name(later)) == later
            store.remove("B", Removal(sequences=(1,), groups=(1,), blobs=(blob_name(shared),)))
            assert not store.has_blob(blob_name(shared))

    def test_a_blob_that_a_keyframe_refers_to_stays(self) -> None:
        with self.opened() as store:
            data = b"in a keyframe"
            history = History(store)
            history.commit(blobs={blob_name(data): data})
            history.commit(group=2)
            store.put_keyframe("W", make_keyframe(2, b"two", blobs=(blob_name(data),)))
            store.remove("W", Removal(sequences=(1,), groups=(1,), blobs=(blob_name(data),)))
            assert store.blob(blob_name(data)) == data

    def test_removing_again_or_nothing_gives_nothing_back(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one")
            history.commit(group=2)
            removal = Removal(sequences=(1,), groups=(1,))
            assert store.remove("W", removal) > 0
            assert store.remove("W", removal) == 0
            assert store.remove("V", Removal(sequences=())) == 0
