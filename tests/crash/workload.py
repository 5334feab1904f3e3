"""A scripted run of two processes on one store: small enough to enumerate, rich enough to matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointConflictError, CheckpointError, CheckpointNotFoundError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head, Removal, Transition
from tests.crash.ledger import DAYS, Attempt, Ledger, make_event, make_keyframe, make_record, sha256
from tests.crash.trail_ledger import KEY, SHARED, told

RING_BYTES = 16 * 1024

#: Incompressible enough to look at, different per commit, larger than a sector.
BLOB = bytes(range(256)) * 3
#: Above half the ring: written as a file first.
LARGE_BLOB = b"large blob " * 900
LARGE_STATE = b'{"state": "' + b"x" * 9000 + b'"}\n'
#: Above the whole ring, which has to grow for it.
LARGE_EVENT = "large event " * 1600


@dataclass
class Workload:
    """Runs the script and keeps the ledger. `door` gives each process its disk."""

    door: Callable[[], Disk]
    ledger: Ledger = field(default_factory=Ledger)
    stores: dict[str, FilesystemStore] = field(default_factory=dict)
    #: Simulated or real; what only a simulated one can do is asked of that one only.
    disks: dict[str, Any] = field(default_factory=dict)
    #: Called after every step, when what was acknowledged has just changed.
    after_step: Callable[[], None] = lambda: None
    errors: list[CheckpointError] = field(default_factory=list)
    #: Makes every commit different from every other.
    drafts: int = 0
    #: Whether checkpoints are told in the trail; frames are shorter where they are not.
    tells: bool = True

    def run(self) -> None:
        for step in SCRIPT:
            self.step(step)

    def step(self, step: Callable[[Workload], None]) -> None:
        """One step as a careful caller does it: a fault is noted and life goes on."""
        try:
            step(self)
        except CheckpointError as error:
            self.errors.append(error)
        self.after_step()

    def store(self, name: str) -> FilesystemStore:
        if name not in self.stores:
            self.disks[name] = self.door()
            self.stores[name] = open_on(self.disks[name])
        return self.stores[name]

    def next_number(self) -> int:
        self.drafts += 1
        return self.drafts

    # -- what a caller does ------------------------------------------------------------------

    def draft(
        self,
        name: str,
        workflow_id: str,
        *,
        pad: int = 40,
        events: int = 1,
        said: str = "",
        day: int = 0,
        blobs: dict[str, bytes] | None = None,
        needs: tuple[str, ...] = (),
        keyframe: bytes | None = None,
        group: int = 1,
    ) -> Commit:
        head = self.store(name).head(workflow_id)
        number = self.next_number()
        stamp = f"{DAYS[day]}T10:00:{number % 60:02d}.000000Z"
        expected, made = head, []
        for index in range(events):
            data = {"attempt": number, "index": index, **({"said": said} if said else {})}
            event = make_event(head, workflow_id, stamp, data)
            made.append(event)
            head = _with_event(head, event.seq, event.hash)
        refers = sorted({**(blobs or {}), **dict.fromkeys(needs)})
        record = make_record(
            head, workflow_id, f"uuid-{number}", stamp, group, blobs=refers, pad=str(number) * pad
        )
        frame = make_keyframe(record.entry.sequence, keyframe) if keyframe is not None else None
        audit = (told(f"s-{name}", number, payload=True), told(SHARED, number)) if self.tells else ()
        return Commit(workflow_id, expected, record, frame, tuple(made), (), blobs or {}, needs, audit=audit)

    def commit(self, name: str, *commits: Commit) -> list[Exception | None]:
        attempts = [self.ledger.attempt(commit.workflow_id, commit) for commit in commits]
        outcomes = self.store(name).commit(commits)
        for attempt, outcome in zip(attempts, outcomes, strict=True):
            _note(attempt, outcome)
        return outcomes

    def status(self, name: str, workflow_id: str, sequence: int, status: str) -> None:
        head = self.store(name).head(workflow_id)
        number = self.next_number()
        data = {"status": status, "retry_count": 1, "pinned": False, "attempt": number}
        event = make_event(head, workflow_id, f"{DAYS[0]}T11:00:00.000000Z", data, cp_seq=sequence)
        transition = Transition(sequence, status, 1)
        audit = (told(SHARED, number),)
        self.commit(name, Commit(workflow_id, head, None, None, (event,), (transition,), audit=audit))

    def concern_the_store(self, name: str, **parts: Any) -> None:
        """Commit something that belongs to no workflow."""
        audit = (told(f"s-{name}", self.next_number()),)
        self.commit(name, Commit(NO_WORKFLOW, Head(), audit=audit, **parts))

    def erase_one(self, name: str) -> None:
        """Take the last payload that this process told of away for ever."""
        session_id = f"s-{name}"
        last = self.store(name).trail_head(session_id).seq
        kept = [n for n in range(1, last + 1) if self.store(name).payload(session_id, n) is not None]
        self.concern_the_store(name, erased=tuple((session_id, seq) for seq in kept[-1:]))

    def put_keyframe(self, name: str, workflow_id: str, sequence: int, data: bytes) -> None:
        keyframe = make_keyframe(sequence, data)
        known = [entry.sequence for entry in self.store(name).entries(workflow_id) if not entry.pruned]
        if sequence in known:
            attempt = self.ledger.attempt(workflow_id, keyframe)
            self.store(name).put_keyframe(workflow_id, keyframe)
            attempt.acknowledged = True

    def remove(self, name: str, workflow_id: str, removal: Removal) -> None:
        known = {entry.sequence for entry in self.store(name).entries(workflow_id)}
        removal = replace(removal, audit=(told(SHARED, self.next_number()),))
        if set(removal.sequences) <= known:
            attempt = self.ledger.attempt(workflow_id, removal)
            self.store(name).remove(workflow_id, removal)
            attempt.acknowledged = True

    def close(self, name: str) -> None:
        store = self.stores.pop(name, None)
        if store is not None:
            store.close()


def _with_event(head: Head, seq: int, digest: str) -> Head:
    return replace(head, event_seq=seq, event_hash=digest)


def _note(attempt: Attempt, outcome: Exception | None) -> None:
    attempt.acknowledged = outcome is None
    attempt.refused = isinstance(outcome, CheckpointConflictError | CheckpointNotFoundError)


def _first_checkpoints(w: Workload) -> None:
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": 1}\n' * 30))


def _a_delta_with_a_blob(w: Workload) -> None:
    w.commit("A", w.draft("A", "WF-one", blobs={sha256(BLOB): BLOB}))


def _a_group_of_two_workflows(w: Workload) -> None:
    one = w.draft("A", "WF-one", events=2)
    two = w.draft("A", "WF/two ü", keyframe=b'{"state": 2}\n')
    w.commit("A", one, two)


def _b_joins_and_commits(w: Workload) -> None:
    w.commit("B", w.draft("B", "WF/two ü", day=1))


def _a_appends_b_appends_b_syncs(w: Workload) -> None:
    from_a = w.draft("A", "WF-one", pad=300)

    def meanwhile() -> None:
        try:
            w.commit("B", w.draft("B", "WF/two ü", pad=300, day=1))
        except CheckpointError as error:
            w.errors.append(error)

    w.disks["A"].before_sync(meanwhile)
    w.commit("A", from_a)


def _a_fails_a_checkpoint(w: Workload) -> None:
    w.status("A", "WF-one", 2, "failed")


def _a_loser(w: Workload) -> None:
    stale = w.draft("B", "WF-one")
    w.commit("A", w.draft("A", "WF-one"))
    w.commit("B", stale)


def _a_keyframe_in_the_background(w: Workload) -> None:
    w.put_keyframe("B", "WF-one", 5, b'{"state": 5}\n' * 60)


def _the_next_group(w: Workload) -> None:
    w.commit("B", w.draft("B", "WF-one", group=5, day=1, pad=200))


def _files_of_the_store(w: Workload) -> None:
    w.concern_the_store("A", files={"audit/log/checkpoint": b"head 1", "audit/log/tile/0/000.p/9": b"tile"})
    believed: dict[str, bytes | None] = {"audit/log/checkpoint": b"head 1", "keys/a.json": None}
    changed: dict[str, bytes | None] = {"audit/log/checkpoint": b"head 2", "keys/a.json": KEY}
    w.concern_the_store("B", files=changed, expected_files=believed)
    w.concern_the_store("A", files=changed, expected_files=believed)


def _an_erasure(w: Workload) -> None:
    w.erase_one("A")


def _a_key_destroyed_and_an_erasure_after_settling(w: Workload) -> None:
    w.concern_the_store("B", files={"keys/a.json": None, "audit/log/tile/0/000.p/9": None})
    w.erase_one("B")


def _settled_by_b(w: Workload) -> None:
    w.store("B").settle()


def _enough_to_wrap(w: Workload) -> None:
    for _ in range(3):
        w.commit("A", w.draft("A", "WF-one", group=5, day=1, pad=900))
        w.commit("B", w.draft("B", "WF-three", day=2, pad=700))


def _a_blob_too_large_for_the_journal(w: Workload) -> None:
    w.commit("A", w.draft("A", "WF-large", blobs={sha256(LARGE_BLOB): LARGE_BLOB}, keyframe=LARGE_STATE))


def _b_outgrows_the_journal_before_a_syncs(w: Workload) -> None:
    from_a = w.draft("A", "WF-one", group=5, day=1)

    def meanwhile() -> None:
        try:
            w.commit("B", w.draft("B", "WF/two ü", said=LARGE_EVENT, day=1))
        except CheckpointError as error:
            w.errors.append(error)

    w.disks["A"].before_sync(meanwhile)
    w.commit("A", from_a)


def _pruned(w: Workload) -> None:
    w.put_keyframe("A", "WF-one", 9, b'{"state": 9}\n' * 9)
    w.remove("A", "WF-one", Removal((1, 2, 3, 4, 5), (1,), 7, (sha256(BLOB),)))


def _after_the_prune(w: Workload) -> None:
    w.commit("A", w.draft("A", "WF-one", group=9, day=2, blobs={sha256(BLOB): BLOB}))
    w.status("B", "WF/two ü", 1, "completed")


def _closed_and_opened_again(w: Workload) -> None:
    w.close("A")
    w.close("B")
    w.commit("A", w.draft("A", "WF-three", day=2))


def _closed(w: Workload) -> None:
    w.close("A")


SCRIPT: list[Callable[[Workload], None]] = [
    _first_checkpoints,
    _a_delta_with_a_blob,
    _a_group_of_two_workflows,
    _b_joins_and_commits,
    _a_appends_b_appends_b_syncs,
    _a_fails_a_checkpoint,
    _a_loser,
    _a_keyframe_in_the_background,
    _the_next_group,
    _files_of_the_store,
    _an_erasure,
    _settled_by_b,
    _enough_to_wrap,
    _a_blob_too_large_for_the_journal,
    _b_outgrows_the_journal_before_a_syncs,
    _pruned,
    _a_key_destroyed_and_an_erasure_after_settling,
    _after_the_prune,
    _closed_and_opened_again,
    _closed,
]


def open_on(disk: Disk, **options: bool) -> FilesystemStore:
    return FilesystemStore.open(disk.root, disk=disk, background=False, journal_bytes=RING_BYTES, **options)
