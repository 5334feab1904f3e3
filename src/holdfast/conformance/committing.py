"""What a store promises about commits, and about reading them back."""

from __future__ import annotations

from holdfast.conformance.history import History, Opening, blob_name, raises
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError
from holdfast.domain.record import Commit, Head, Transition


class Committing(Opening):
    """Commits, heads, listings, records and events."""

    def test_a_new_store_is_empty(self) -> None:
        with self.opened() as store:
            assert store.head("W") == Head()
            assert list(store.workflows()) == []
            assert list(store.entries("W")) == []
            assert store.keyframes("W") == []
            assert list(store.events("W")) == []
            assert store.find("") == []

    def test_a_commit_moves_the_head_and_is_listed(self) -> None:
        with self.opened() as store:
            history = History(store)
            first = history.commit(keyframe=b"one")
            about = {"stage": "research", "agent": "worker", "session": "s", "phase": 2, "schema": "1.1.0"}
            second = history.commit(**about)
            assert store.head("W") == history.head
            assert list(store.workflows()) == ["W"]
            assert first.record is not None and second.record is not None
            assert list(store.entries("W")) == [first.record.entry, second.record.entry]
            assert list(store.entries("W", newest_first=True)) == [second.record.entry, first.record.entry]

    def test_a_commit_of_events_alone_moves_only_the_event_head(self) -> None:
        with self.opened() as store:
            history = History(store)
            commit = history.commit(is_checkpoint=False)
            assert store.head("W") == Head(event_seq=1, event_hash=commit.events[0].hash)
            assert list(store.workflows()) == ["W"]
            assert list(store.entries("W")) == []

    def test_an_empty_commit_succeeds_and_changes_nothing(self) -> None:
        with self.opened() as store:
            assert store.commit([]) == []
            assert store.commit([Commit("W", Head())]) == [None]
            assert store.head("W") == Head()
            assert isinstance(store.commit([Commit("W", Head(sequence=1))])[0], CheckpointConflictError)

    def test_a_wrong_expected_head_is_a_conflict_and_nothing_is_kept(self) -> None:
        with self.opened() as store:
            history = History(store)
            late = history.draft(text="late", blobs={blob_name(b"late"): b"late"})
            history.commit(text="first")
            outcomes = store.commit([late])
            assert isinstance(outcomes[0], CheckpointConflictError)
            assert store.head("W") == history.head
            assert not store.has_blob(blob_name(b"late"))

    def test_each_part_of_the_head_is_compared(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit()
            right = history.head
            for wrong in (
                Head(right.sequence + 1, right.checksum, right.event_seq, right.event_hash),
                Head(right.sequence, "sha256:" + "0" * 64, right.event_seq, right.event_hash),
                Head(right.sequence, right.checksum, right.event_seq + 1, right.event_hash),
                Head(right.sequence, right.checksum, right.event_seq, "sha256:" + "0" * 64),
            ):
                history.head = wrong
                assert isinstance(store.commit([history.draft()])[0], CheckpointConflictError)
            assert store.head("W") == right

    def test_a_group_takes_commits_in_order_and_one_conflict_spoils_only_those_on_top_of_it(self) -> None:
        with self.opened() as store:
            a, b = History(store, "A"), History(store, "B")
            first_a = a.draft()
            a.follow(first_a)
            second_a = a.draft()
            stray_b = b.draft(text="stray")
            first_b = b.draft(text="first")
            b.follow(stray_b)
            on_stray_b = b.draft()
            outcomes = store.commit([first_a, first_b, second_a, stray_b, on_stray_b])
            assert outcomes[:3] == [None, None, None]
            assert isinstance(outcomes[3], CheckpointConflictError)
            assert isinstance(outcomes[4], CheckpointConflictError)
            assert store.head("A") == second_a.head
            assert store.head("B") == first_b.head

    def test_transitions_change_status_retries_and_pin_but_not_the_record(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit()
            failed = Transition(1, "failed", retry_count=2, pinned=True)
            history.commit(is_checkpoint=False, transitions=(failed,))
            [entry] = store.entries("W")
            assert (entry.status, entry.retry_count, entry.pinned) == ("failed", 2, True)
            assert list(store.records("W", 1, 1)) == [history.records[1]]

    def test_a_checkpoint_may_come_with_its_own_status_and_as_of_an_earlier_event(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit()
            history.commit(is_checkpoint=False)
            history.commit(event_seq=1, transitions=(Transition(2, "failed", retry_count=1),))
            first, second = store.entries("W")
            assert (first.status, second.status, second.retry_count) == ("active", "failed", 1)
            assert (second.event_seq, store.head("W").event_seq) == (1, 3)

    def test_checkpoints_are_found_by_the_beginning_of_their_uuid(self) -> None:
        with self.opened() as store:
            history = History(store)
            commits = [history.commit(), history.commit()]
            entries = [commit.record.entry for commit in commits if commit.record]
            assert store.find(entries[1].uuid) == [("W", entries[1])]
            assert sorted(e.sequence for _, e in store.find(entries[0].uuid[:8])) == [1, 2]
            assert store.find("ffffffff-ffff") == []

    def test_records_come_back_as_they_were_and_in_order(self) -> None:
        with self.opened() as store:
            history = History(store)
            for number in range(1, 6):
                history.commit(text=f"text {number} \u00e9\U0001f980", group=1 if number < 4 else 3)
            expected = [history.records[n] for n in range(1, 6)]
            assert list(store.records("W", 1, 5)) == expected
            assert list(store.records("W", 2, 4)) == expected[1:4]
            assert list(store.records("W", 5, 5)) == expected[4:]

    def test_records_that_are_not_there_are_not_found(self) -> None:
        with self.opened() as store:
            History(store).commit()
            raises(CheckpointNotFoundError, lambda: store.records("W", 1, 2))
            raises(CheckpointNotFoundError, lambda: store.records("W", 0, 1))
            raises(CheckpointNotFoundError, lambda: store.records("V", 1, 1))

    def test_events_come_back_in_order_and_after_a_sequence(self) -> None:
        with self.opened() as store:
            history = History(store)
            lines = []
            for number in range(6):
                day = 11 + number // 2
                commit = history.commit(is_checkpoint=number % 2 == 0, timestamp=f"2026-01-{day}T12:00:00Z")
                lines += [event.data for event in commit.events]
            assert list(store.events("W")) == lines
            assert list(store.events("W", after=4)) == lines[4:]
            assert list(store.events("W", after=6)) == []

    def test_a_clock_that_steps_back_does_not_disorder_events(self) -> None:
        with self.opened() as store:
            history = History(store)
            days = ("2026-01-12", "2026-01-10", "2026-01-13", "2026-01-11")
            commits = [history.commit(timestamp=f"{day}T12:00:00Z") for day in days]
            assert list(store.events("W")) == [commit.events[0].data for commit in commits]
