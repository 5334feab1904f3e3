"""What a store promises about audit trails, and about the small files that are its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from holdfast.conformance.history import History, Opening, in_threads, raises
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    InvalidIdError,
    LeaseHeldError,
    UnstorableValueError,
)
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import NO_WORKFLOW, Commit, Head, Removal
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import verify_session
from holdfast.ports import Store

MOMENT = datetime(2026, 1, 11, 12, tzinfo=UTC)
#: A file in each room that Holdfast keeps files in.
_ROOM_FILES = (
    "audit/log/heads/1",
    "holds/1a2b",
    "imports/1a2b/import.json",
    "keys/keyring.json",
    "quarantine/1a2b.json",
    "recovery/latest.json",
    "reports/register.json",
    "requests/1a2b/00000000-0000-4000-8000-000000000001.json",
    "sessions/s-1.json",
)
STARTED, DECISION = AuditType.SESSION_STARTED, AuditType.AGENT_DECISION


def told(number: int, session_id: str = "s-1", stored: bytes = b"") -> AuditEntry:
    """Make an entry that can be told from others."""
    moment = MOMENT + timedelta(seconds=number)
    return AuditEntry(moment, DECISION, session_id, "W", actor="ann", facts={"n": number}, stored=stored)


def about_the_store(*entries: AuditEntry, **parts: Any) -> Commit:
    """Make a commit of no workflow."""
    return Commit(NO_WORKFLOW, Head(), audit=entries, **parts)


def numbers(lines: Iterator[bytes]) -> list[int]:
    """Tell which entries lines are, those that begin a session left out."""
    entries = (decode_entry(line, None) for line in lines)
    return [int(entry.facts["n"]) for entry in entries if entry.type != STARTED]


def check_trail(store: Store, session_id: str) -> TrailHead:
    """Check a session's chain from its first entry on; answer where it stands."""
    report = verify_session(
        store.trail(session_id), session_id, lambda session, seq: store.payload(session, seq)
    )
    assert report.faults == ()
    assert report.head == store.trail_head(session_id)
    return report.head


class Trailing(Opening):
    """Trails and files."""

    def test_audit_entries_are_chained_in_their_sessions(self) -> None:
        with self.opened() as store:
            assert store.trail_head("s-1") == TrailHead("s-1")
            history = History(store)
            history.commit(keyframe=b"one", audit=(told(1), told(2, "s-2")))
            history.commit(audit=(told(3), told(4)))
            assert [numbers(store.trail(name)) for name in ("s-1", "s-2")] == [[1, 3, 4], [2]]
            assert numbers(store.trail("s-1", after=2)) == [3, 4]
            assert check_trail(store, "s-1").seq == 4
            assert sorted(store.sessions()) == ["s-1", "s-2"]
            assert list(store.trail("s-3")) == []
            assert [entry.sequence for entry in store.entries("W")] == [1, 2]

    def test_a_commit_may_concern_no_workflow(self) -> None:
        with self.opened() as store:
            group = [about_the_store(told(1)), about_the_store(told(2))]
            assert store.commit(group) == [None, None]
            assert numbers(store.trail("s-1")) == [1, 2]
            assert list(store.workflows()) == []

    def test_what_is_refused_leaves_no_entry_and_those_beside_it_are_kept(self) -> None:
        with self.opened() as store:
            history = History(store)
            late = history.draft(audit=(told(1),))
            history.commit(audit=(told(2),))
            bad = replace(told(3), facts={"n": "x" * 600})
            outcomes = store.commit([late, about_the_store(bad), about_the_store(told(4))])
            assert isinstance(outcomes[0], CheckpointConflictError)
            assert isinstance(outcomes[1], UnstorableValueError)
            assert outcomes[2] is None
            assert numbers(store.trail("s-1")) == [2, 4]
            check_trail(store, "s-1")

    def test_a_closed_session_starts_again_by_itself(self) -> None:
        with self.opened() as store:
            closing = AuditEntry(MOMENT, AuditType.SESSION_CLOSED, "s-1")
            assert store.commit([about_the_store(told(1), closing)]) == [None]
            assert store.trail_head("s-1").closed
            assert store.commit([about_the_store(told(2))]) == [None]
            types = [decode_entry(line, None).type for line in store.trail("s-1")]
            assert types == [STARTED, DECISION, AuditType.SESSION_CLOSED, STARTED, DECISION]
            check_trail(store, "s-1")

    def test_writers_of_one_session_never_conflict(self) -> None:
        with self.opened() as store:

            def work(workflow_id: str) -> None:
                history = History(store, workflow_id)
                for number in range(10):
                    history.commit(audit=(told(number),))

            in_threads([partial(work, f"W{n}") for n in range(4)])
            assert check_trail(store, "s-1").seq == 41
            assert store.integrate() == 41

    def test_the_tree_holds_every_entry_once_and_never_moves_one(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(audit=(told(1), told(2, "s-2")))
            size = store.integrate()
            assert size == 4
            before = list(store.leaves())
            history.commit(audit=(told(3, "s-2"), told(4)))
            assert len(list(store.leaves())) + len(list(store.waiting())) == 6
            assert store.integrate() == 6
            assert list(store.waiting()) == []
            after = list(store.leaves())
            assert after[:size] == before
            assert list(store.leaves(after=size)) == after[size:]
            for name in ("s-1", "s-2"):
                lines = list(store.trail(name))
                places = [store.place(name, seq) for seq in range(1, len(lines) + 1)]
                assert [after[place] for place in places if place is not None] == lines
            assert store.place("s-1", 99) is None

    def test_payloads_lie_beside_and_can_go_for_ever(self) -> None:
        with self.opened() as store:
            lines = [encode_payload({"why": f"reason {n}"}, bytes([n] * 32)) for n in range(3)]
            entries = [told(n, stored=line) for n, line in enumerate(lines)]
            assert store.commit([about_the_store(*entries, told(9))]) == [None]
            assert [store.payload("s-1", seq) for seq in range(1, 7)] == [None, *lines, None, None]
            trail = list(store.trail("s-1"))
            gone = (("s-1", 3), ("s-1", 1), ("s-1", 99), ("s-9", 1))
            assert store.commit([about_the_store(told(10), erased=gone)]) == [None]
            assert [store.payload("s-1", seq) for seq in range(2, 5)] == [lines[0], None, lines[2]]
            assert list(store.trail("s-1"))[: len(trail)] == trail
            check_trail(store, "s-1")

    def test_files_of_the_store_are_replaced_together_or_not_at_all(self) -> None:
        with self.opened() as store:
            first = {"audit/log/tile/0/x001/067.p/5": b"tile", "keys/a.json": b"", "keys/b.json": b"b"}
            assert store.commit([about_the_store(files=first)]) == [None]
            assert store.file("audit/log/tile/0/x001/067.p/5") == b"tile"
            assert store.file("keys/a.json") == b""
            assert store.file("keys/none.json") is None
            assert list(store.files("keys/")) == ["keys/a.json", "keys/b.json"]
            believed = {"keys/a.json": b"", "keys/none.json": None}
            changed = about_the_store(
                told(1), files={"keys/a.json": b"2", "keys/b.json": None}, expected_files=believed
            )
            assert store.commit([changed]) == [None]
            assert isinstance(store.commit([changed])[0], CheckpointConflictError)
            assert (store.file("keys/a.json"), store.file("keys/b.json")) == (b"2", None)
            assert list(store.files("keys/")) == ["keys/a.json"]
            assert numbers(store.trail("s-1")) == [1]

    def test_every_room_keeps_its_files_and_removing_one_that_is_gone_is_no_fault(self) -> None:
        with self.opened() as store:
            kept = {name: name.encode() for name in _ROOM_FILES}
            assert store.commit([about_the_store(files=kept)]) == [None]
            for name, data in kept.items():
                assert store.file(name) == data
                assert list(store.files(name.rpartition("/")[0] + "/")) == [name]
            going = about_the_store(files=dict.fromkeys(kept))
            assert store.commit([going, going]) == [None, None]
            assert store.commit([going]) == [None]
            assert [name for name in kept if store.file(name) is not None] == []

    def test_names_of_files_lead_nowhere_else(self) -> None:
        with self.opened() as store:
            for name in ("", "/etc/passwd", "../up", "a/../b", "a//b", "a/", ".hidden", "A", "x" * 201):
                raises(InvalidIdError, partial(store.file, name))
                raises(InvalidIdError, partial(_put, store, name))

    def test_leases_and_removals_are_told_with_what_they_do(self) -> None:
        with self.opened() as store:
            history = History(store)
            history.commit(keyframe=b"one")
            lease = store.acquire("W", "ann", 60, (told(1),))
            raises(LeaseHeldError, partial(store.acquire, "W", "bob", 60, (told(2),)))
            store.release(lease, (told(3),))
            store.release(lease, (told(4),))
            history.commit()
            store.remove("W", Removal(sequences=(1,), audit=(told(5),)))
            assert numbers(store.trail("s-1")) == [1, 3, 5]
            check_trail(store, "s-1")

    def test_reopening_sees_trails_and_files(self) -> None:
        store = self.open_store()
        line = encode_payload({"why": "because"}, bytes(32))
        History(store).commit(audit=(told(1, stored=line), told(2, "s-2")))
        store.commit([about_the_store(told(3), files={"keys/a.json": b"a"})])
        size = store.integrate()
        before = (list(store.trail("s-1")), list(store.leaves()), store.trail_head("s-1"))
        store.settle()
        store = self.reopen(store)
        assert (list(store.trail("s-1")), list(store.leaves()), store.trail_head("s-1")) == before
        assert (store.integrate(), store.payload("s-1", 2), store.file("keys/a.json")) == (size, line, b"a")
        assert store.commit([about_the_store(told(4))]) == [None]
        check_trail(store, "s-1")
        store.close()


def _put(store: Store, name: str) -> None:
    [outcome] = store.commit([about_the_store(files={name: b""})])
    if outcome is not None:
        raise outcome
