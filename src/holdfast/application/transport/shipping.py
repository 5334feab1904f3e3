"""A workflow's history on its way to another store: made into commits, sent in bounded groups."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, fields, replace

from holdfast.application.history import History, look, read_events, read_records
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.record import (
    Commit,
    Entry,
    EventRecord,
    Head,
    Keyframe,
    KeyframeEntry,
    Record,
    Transition,
)
from holdfast.ports import Store

#: One call of the target's `commit`, which is one sync or little more, takes so much.
GROUP_COUNT_MAX = 256
GROUP_BYTES_MAX = 4 * 1024 * 1024
#: Events that do not fit beside their checkpoint go before it: a store may bound what one commit takes.
EVENTS_BYTES_MAX = 16 * 1024
#: So often a workflow may be pruned while it is copied.
_LOOKS_MAX = 20


@dataclass(frozen=True, slots=True)
class Cargo:
    """How much was copied. Bytes are those of records, events, keyframes and blobs."""

    checkpoints: int = 0
    tombstones: int = 0
    events: int = 0
    keyframes: int = 0
    blobs: int = 0
    bytes: int = 0

    def __add__(self, other: Cargo) -> Cargo:
        return Cargo(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Cargo)))


@dataclass(frozen=True, slots=True)
class _Parcel:
    """One checkpoint with what it refers to and the target lacks, all read and verified."""

    record: Record
    keyframe: Keyframe | None
    blobs: dict[str, bytes]
    needs: tuple[str, ...]


class Shipment:
    """Sends what a target lacks of a history. The target stands somewhere in that history already.

    Attributes:
        history: what is copied; where something is pruned on the way, the tombstone is.
        cargo: how much was sent.
        waiting: sequences of keyframes that were not put, their blobs or checkpoints not being there.
    """

    def __init__(self, source: Store, target: Store, history: History, standing: Head) -> None:
        self.history = history
        self.cargo = Cargo()
        self.waiting: frozenset[int] = frozenset()
        self._source = source
        self._target = target
        self._standing = standing
        self._head = standing
        self._events = read_events(source, history, standing.event_seq, standing.event_hash)
        self._next_event: EventRecord | None = None
        self._sent: set[str] = set()

    def send(self, on_progress: Callable[[int], None]) -> None:
        """Commit everything the target lacks; tells after each group how many items have gone.

        Raises:
            CheckpointConflictError: somebody else wrote to the target.
            CheckpointCorruptError: the source is damaged; part of what lies before has arrived.
            CheckpointNotFoundError: something vanished; begin again where the target stands.
        """
        done = 0
        for group in _groups(self._last_with(self._status_changes(), self._commits())):
            _accepted(self._target.commit(group))
            self.cargo = sum(map(_cargo_of, group), self.cargo)
            done += sum((commit.record is not None) + len(commit.events) for commit in group)
            on_progress(done)
        self._send_keyframes()

    def _commits(self) -> Iterator[Commit]:
        workflow_id = self.history.workflow_id
        self._next_event = next(self._events, None)
        for parcel in self._parcels():
            events = yield from self._send_events(parcel.record.entry.event_seq)
            yield self._committed(
                Commit(
                    workflow_id,
                    self._head,
                    parcel.record,
                    parcel.keyframe,
                    events,
                    blobs=parcel.blobs,
                    needs=parcel.needs,
                )
            )
        events = yield from self._send_events(self.history.head.event_seq)
        if events:
            yield self._committed(Commit(workflow_id, self._head, events=events))

    def _send_events(self, through: int) -> Generator[Commit, None, tuple[EventRecord, ...]]:
        """Send events up to one, and answer the last few of them, which go with what comes next."""
        bunch: list[EventRecord] = []
        size_bytes = 0
        while (event := self._next_event) is not None and event.seq <= through:
            if size_bytes + len(event.data) > EVENTS_BYTES_MAX and bunch:
                yield self._committed(Commit(self.history.workflow_id, self._head, events=tuple(bunch)))
                bunch, size_bytes = [], 0
            bunch.append(event)
            size_bytes += len(event.data)
            self._next_event = next(self._events, None)
        return tuple(bunch)

    def _parcels(self) -> Iterator[_Parcel]:
        """Read the checkpoints that the target lacks; one that is pruned meanwhile goes as a tombstone."""
        done = self._standing.sequence
        looks = _LOOKS_MAX
        while True:
            try:
                for record in read_records(self._source, self.history, done):
                    yield self._parcel(record)
                    done = record.entry.sequence
                return
            except CheckpointNotFoundError:
                looks -= 1
                now = look(self._source, self.history.workflow_id).until(self.history.head)
                if now == self.history or not looks:
                    raise
                self.history = now

    def _parcel(self, record: Record) -> _Parcel:
        keyframe = self._keyframe_beside(record.entry)
        named = {*record.entry.blobs, *(keyframe.entry.blobs if keyframe else ())}
        known = {sha256 for sha256 in named if self._has_blob(sha256)}
        blobs = {sha256: self._source.blob(sha256) for sha256 in sorted(named - known)}
        self._sent |= named
        return _Parcel(record, keyframe, blobs, tuple(sorted(known)))

    def _keyframe_beside(self, entry: Entry) -> Keyframe | None:
        """Answer the keyframe that goes in one commit with its checkpoint: all but the last do.

        That one is put afterwards, as any that a workflow gains later: a store may then seal what lies
        before it. Not if its checkpoint is a tombstone, is nothing without it, or its blobs are new.
        """
        keyframe = self.history.keyframe_at(entry.sequence)
        if keyframe is None:
            return None
        is_own = entry.group == entry.sequence
        is_last = keyframe == self.history.keyframes[-1]
        if is_last and not (entry.pruned or is_own) and all(map(self._has_blob, keyframe.blobs)):
            return None
        return self._read_keyframe(keyframe)

    def _has_blob(self, sha256: str) -> bool:
        return sha256 in self._sent or self._target.has_blob(sha256)

    def _read_keyframe(self, keyframe: KeyframeEntry) -> Keyframe:
        return Keyframe(keyframe, self._source.keyframe(self.history.workflow_id, keyframe.sequence))

    def _committed(self, commit: Commit) -> Commit:
        self._head = commit.head
        return commit

    def _status_changes(self) -> tuple[Transition, ...]:
        """List what changed since at checkpoints that the target has; the events of that are on their way."""
        there = {entry.sequence: entry for entry in self._target.entries(self.history.workflow_id)}
        known = (entry for entry in self.history.entries if entry.sequence in there and not entry.pruned)
        return tuple(
            Transition(entry.sequence, *_status_of(entry))
            for entry in known
            if _status_of(entry) != _status_of(there[entry.sequence])
        )

    def _last_with(self, transitions: tuple[Transition, ...], commits: Iterator[Commit]) -> Iterator[Commit]:
        """Let changes of status go with the last commit: who stands at the end has them all."""
        last: Commit | None = None
        for commit in commits:
            if last is not None:
                yield last
            last = commit
        if last is not None:
            yield replace(last, transitions=transitions)

    def _send_keyframes(self) -> None:
        """Put the keyframes that the target lacks. Each is a shortcut: one without its blobs may wait.

        So may one whose checkpoint the target removed, for ever: there is nothing it would shorten.
        """
        workflow_id = self.history.workflow_id
        lacking, waiting = lacking_keyframes(self._target, self.history, self._standing)
        for entry in lacking:
            if not all(map(self._has_blob, entry.blobs)):
                waiting.add(entry.sequence)
                continue
            keyframe = self._read_keyframe(entry)
            self._target.put_keyframe(workflow_id, keyframe)
            self.cargo += Cargo(keyframes=1, bytes=len(keyframe.data))
        self.waiting = frozenset(waiting)


def lacking_keyframes(
    target: Store, history: History, standing: Head
) -> tuple[list[KeyframeEntry], set[int]]:
    """List the keyframes that a target lacks, and name those that it removed with their checkpoints.

    What a target removed stays removed. A tombstone that has just been sent is none of its own.
    """
    there = {keyframe.sequence for keyframe in target.keyframes(history.workflow_id)}
    lacking = [keyframe for keyframe in history.keyframes if keyframe.sequence not in there]
    if not lacking or lacking[0].sequence > standing.sequence:
        return lacking, set()
    tombstones = {entry.sequence for entry in target.entries(history.workflow_id) if entry.pruned}
    removed = {one.sequence for one in lacking if one.sequence <= standing.sequence} & tombstones
    return [keyframe for keyframe in lacking if keyframe.sequence not in removed], removed


def _status_of(entry: Entry) -> tuple[str, int, bool]:
    """Answer what of a checkpoint changes after it was committed."""
    return (entry.status, entry.retry_count, entry.pinned)


def _groups(commits: Iterator[Commit]) -> Iterator[list[Commit]]:
    """Gather commits into groups that are bounded in number and bytes."""
    group: list[Commit] = []
    size_bytes = 0
    for commit in commits:
        commit_bytes = _cargo_of(commit).bytes
        if group and (len(group) == GROUP_COUNT_MAX or size_bytes + commit_bytes > GROUP_BYTES_MAX):
            yield group
            group, size_bytes = [], 0
        group.append(commit)
        size_bytes += commit_bytes
    if group:
        yield group


def _accepted(outcomes: list[Exception | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def _cargo_of(commit: Commit) -> Cargo:
    record, keyframe = commit.record, commit.keyframe
    pieces = [event.data for event in commit.events] + list(commit.blobs.values())
    pieces += [record.data] if record else []
    pieces += [keyframe.data] if keyframe else []
    return Cargo(
        checkpoints=int(record is not None and not record.entry.pruned),
        tombstones=int(record is not None and record.entry.pruned),
        events=len(commit.events),
        keyframes=int(keyframe is not None),
        blobs=len(commit.blobs),
        bytes=sum(map(len, pieces)),
    )
