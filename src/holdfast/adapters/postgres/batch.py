"""From the commits of one call to what is sent together: chains of commits, each all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from holdfast.domain.record import NO_WORKFLOW, Commit, EventRecord, Head, Keyframe, Record, Transition
from holdfast.domain.value import value

#: What one statement carries at most, unless a single chain has more.
STATEMENT_BYTES_MAX = 16 * 1024 * 1024
STATEMENT_UNITS_MAX = 256
#: What the line of an audit entry takes, more or less.
_LINE_BYTES = 600


@value
class Unit:
    """Commits of one workflow, each on top of the one before: they get in together, or none does.

    Those of no workflow stand in one unit as well, each beside the others.
    """

    commits: tuple[Commit, ...]
    #: Where each stands in the call.
    places: tuple[int, ...]

    @property
    def workflow_id(self) -> str:
        return self.commits[0].workflow_id

    @property
    def expected(self) -> Head:
        return self.commits[0].expected

    @property
    def head(self) -> Head:
        """Where the workflow stands once they are in."""
        return self.commits[-1].head

    @property
    def token(self) -> int:
        return self.commits[0].token

    @property
    def events(self) -> list[EventRecord]:
        return [event for commit in self.commits for event in commit.events]

    @property
    def keyframes(self) -> list[Keyframe]:
        return [commit.keyframe for commit in self.commits if commit.keyframe is not None]

    @property
    def blobs(self) -> dict[str, bytes]:
        """New ones."""
        return {sha256: data for commit in self.commits for sha256, data in commit.blobs.items()}

    @property
    def is_empty(self) -> bool:
        """Whether it only asks if the workflow stands where its writer believes."""
        return not any([commit.events or commit.record for commit in self.commits])

    @property
    def is_of_no_workflow(self) -> bool:
        return self.workflow_id == NO_WORKFLOW

    @property
    def is_told(self) -> bool:
        """Whether it has audit entries."""
        return any([commit.audit for commit in self.commits])

    @property
    def needs_a_turn(self) -> bool:
        """Whether one statement cannot do it: it changes files, or tells and records nothing."""
        if any(map(_reaches_out, self.commits)):
            return True
        return self.is_empty and self.is_told and not self.is_of_no_workflow

    @property
    def is_plain(self) -> bool:
        """Whether it is one event, perhaps one checkpoint, and nothing else that is recorded."""
        commit = self.commits[0]
        if len(self.commits) > 1 or len(commit.events) != 1 or _reaches_out(commit):
            return False
        if commit.keyframe is not None or commit.transitions or commit.blobs or commit.needs:
            return False
        # What a checkpoint refers to is more rows.
        return commit.record is None or not commit.record.entry.blobs

    @property
    def has_bare_needs(self) -> bool:
        """Whether it needs blobs that no record of it refers to."""
        return any(map(_has_bare_needs, self.commits))

    @property
    def size_bytes(self) -> int:
        """How much is sent, more or less."""
        return sum(map(_size_bytes, self.commits))

    def records(self) -> list[Record]:
        """Records with the status that they have once everything is in."""
        records = [commit.record for commit in self.commits if commit.record is not None]
        moved = self._moved()
        return [_amended(one, moved.get(one.entry.sequence)) for one in records] if moved else records

    def transitions(self) -> list[Transition]:
        """Changes of checkpoints that are there already; the last one of each counts."""
        new = {commit.record.entry.sequence for commit in self.commits if commit.record is not None}
        return [transition for sequence, transition in self._moved().items() if sequence not in new]

    def uses(self) -> Iterator[tuple[str, int, str]]:
        """Who refers to a blob: its name, the sequence, and whether the record does or the keyframe."""
        for commit in self.commits:
            # A tombstone without bytes refers to nothing: nothing would ever drop such a use.
            if commit.record is not None and commit.record.data:
                entry = commit.record.entry
                for sha256 in {*entry.blobs, *commit.needs}:
                    yield sha256, entry.sequence, "record"
            if commit.keyframe is not None:
                for sha256 in set(commit.keyframe.entry.blobs):
                    yield sha256, commit.keyframe.entry.sequence, "keyframe"

    def numbered(self) -> Iterable[tuple[Commit, int]]:
        """Its commits, each with where it stands in the call."""
        return zip(self.commits, self.places, strict=True)

    def alone(self) -> list[Unit]:
        """Its commits one by one."""
        return [Unit((commit,), (place,)) for commit, place in self.numbered()]

    def _moved(self) -> dict[int, Transition]:
        return {
            transition.sequence: transition for commit in self.commits for transition in commit.transitions
        }


def next_round(pending: Sequence[tuple[int, Commit]]) -> tuple[list[Unit], list[tuple[int, Commit]]]:
    """Take what can be tried at once: of each workflow the first commit and those on top of it.

    The others build on something else: whether that is there is known once the first ones are in, or not.
    """
    chains: dict[str, list[tuple[int, Commit]]] = {}
    later: list[tuple[int, Commit]] = []
    closed: set[str] = set()
    for place, commit in pending:
        name = commit.workflow_id
        chain = chains.setdefault(name, [])
        if name not in closed and (not chain or _follows(commit, chain[-1][1])):
            chain.append((place, commit))
        else:
            closed.add(name)
            later.append((place, commit))
    units = [Unit(tuple(c for _, c in chain), tuple(p for p, _ in chain)) for chain in chains.values()]
    return units, later


def statements(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    """Cut units into pieces of bearable size, in the order of their ids.

    Whoever takes the same rows takes them in the same order: nobody waits for each other in a circle.
    """
    piece: list[Unit] = []
    size_bytes = 0
    for unit in sorted(units, key=lambda unit: unit.workflow_id):
        unit_bytes = unit.size_bytes
        is_full = size_bytes + unit_bytes > STATEMENT_BYTES_MAX or len(piece) == STATEMENT_UNITS_MAX
        if piece and is_full:
            yield piece
            piece, size_bytes = [], 0
        piece.append(unit)
        size_bytes += unit_bytes
    if piece:
        yield piece


def _follows(commit: Commit, before: Commit) -> bool:
    # What a commit without a record needs is checked by no row of the statement: it goes alone.
    goes_alone = any(_has_bare_needs(one) or _reaches_out(one) for one in (before, commit))
    return commit.expected == before.head and commit.token == before.token and not goes_alone


def _reaches_out(commit: Commit) -> bool:
    return bool(commit.files or commit.expected_files or commit.erased)


def _has_bare_needs(commit: Commit) -> bool:
    return bool(commit.needs) and (commit.record is None or not commit.record.data)


def _amended(record: Record, moved: Transition | None) -> Record:
    if moved is None:
        return record
    entry = replace(record.entry, status=moved.status, retry_count=moved.retry_count, pinned=moved.pinned)
    return Record(entry, record.data)


def _size_bytes(commit: Commit) -> int:
    size = 0 if commit.record is None else len(commit.record.data)
    for event in commit.events:
        size += len(event.data)
    for data in commit.blobs.values():
        size += len(data)
    for entry in commit.audit:
        size += _LINE_BYTES + len(entry.stored)
    return size if commit.keyframe is None else size + len(commit.keyframe.data)
