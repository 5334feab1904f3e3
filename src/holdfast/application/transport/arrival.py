"""Verification on arrival: everything a copy should have brought, read back from where it is now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.application.history import History, first_event, look, read_events, read_records
from holdfast.application.restore import Restorer
from holdfast.application.secrecy.sealing import Vault
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    ChecksumMismatchError,
    KeyDestroyedError,
    KeyUnavailableError,
)
from holdfast.domain.record import Entry, Head
from holdfast.ports import Formats, Packer, Store

_HINT = "Nothing in the source was changed. Look at the target with `holdfast doctor`."


@dataclass(frozen=True, slots=True)
class Prior:
    """What a target had before anything was sent to it: only of that may it have removed something itself."""

    head: Head
    #: Sequence of its oldest event; 0 where it had none.
    first_event: int

    def is_own(self, there: Entry) -> bool:
        """Tell whether a checkpoint was removed by the target's own retention, and not lost on the way."""
        return there.pruned and there.sequence <= self.head.sequence

    @property
    def first_due(self) -> int:
        """The first event that has to be there still; whatever was sent comes after all the target had."""
        return self.first_event or self.head.event_seq + 1


def look_before(target: Store, workflow_id: str, standing: Head) -> Prior:
    """Note what a target has of a workflow before anything is sent."""
    return Prior(standing, first_event(target, workflow_id))


@dataclass(frozen=True, slots=True)
class Arrival:
    """The two ends of a copy, and how states are read."""

    source: Store
    target: Store
    packer: Packer
    formats: Formats
    vault: Vault | None = None

    def verify(
        self, history: History, prior: Prior, waiting: frozenset[int], on_progress: Callable[[int], None]
    ) -> None:
        """Read all of a workflow back from the target and compare it with the source's history.

        Args:
            history: what was to be copied.
            prior: what the target had already.
            waiting: sequences of keyframes that need not have arrived.
            on_progress: told how many items have been read.

        Raises:
            CheckpointConflictError: somebody else has written to the target.
            CheckpointCorruptError: the target does not hold what the source does.
        """
        arrived = look(self.target, history.workflow_id)
        if arrived.head != history.head:
            raise CheckpointConflictError(
                "somebody else wrote to the target meanwhile", place=history.workflow_id, hint="Copy again."
            )
        _compare_entries(history, arrived, prior)
        self._read_back(arrived, on_progress)
        self._check_first_event(history, prior)
        self._compare_keyframes(history, arrived, waiting)
        self._compare_states(history, arrived)

    def _read_back(self, arrived: History, on_progress: Callable[[int], None]) -> None:
        """Read every record, event and blob; the chain and the sums are checked by reading."""
        done = 0
        try:
            for done, _ in enumerate(self._pieces(arrived), start=1):
                if done % 256 == 0:
                    on_progress(done)
        except CheckpointError as problem:
            raise type(problem)(
                f"what arrived does not verify ({problem.message})", place=problem.place, hint=_HINT
            ) from problem
        on_progress(done)

    def _pieces(self, arrived: History) -> Iterator[object]:
        yield from read_records(self.target, arrived)
        yield from read_events(self.target, arrived)
        for sha256 in sorted(arrived.blobs()):
            self.target.blob(sha256)
        for keyframe in arrived.keyframes:
            self.target.keyframe(arrived.workflow_id, keyframe.sequence)

    def _check_first_event(self, history: History, prior: Prior) -> None:
        sent, found = (first_event(store, history.workflow_id) for store in (self.source, self.target))
        due = max(sent, prior.first_due)
        if sent and not 0 < found <= due:
            raise _mismatch(f"events {due} to {found - 1} did not arrive", f"events of {history.workflow_id}")

    def _compare_states(self, history: History, arrived: History) -> None:
        """Restore the newest checkpoint of both ends; equal bytes mean the same values of the same types."""
        living = {entry.sequence for entry in arrived.entries if not entry.pruned}
        alike = (entry for entry in reversed(history.entries) if not entry.pruned)
        newest = next((entry for entry in alike if entry.sequence in living), None)
        if newest is None:
            return
        try:
            is_same = self._is_same_state(history, newest)
        except (KeyUnavailableError, KeyDestroyedError):
            # What is stored is the same, byte for byte; what it says, nobody here can know.
            return
        if not is_same:
            raise _mismatch("the state is not the source's", f"{history.workflow_id}@{newest.sequence}")

    def _compare_keyframes(self, history: History, arrived: History, waiting: frozenset[int]) -> None:
        """Compare sums; one that the target made by itself, in its own format, must hold the same state."""
        found = {keyframe.sequence: keyframe for keyframe in arrived.keyframes}
        entries = {entry.sequence: entry for entry in history.entries}
        for keyframe in history.keyframes:
            sequence = keyframe.sequence
            if sequence in waiting or found.get(sequence) == keyframe:
                continue
            place = f"{history.workflow_id}@{sequence}"
            if sequence not in found:
                raise _mismatch("the keyframe did not arrive", place)
            if found[sequence].sha256 == keyframe.sha256 or not self._is_same_state(
                history, entries[sequence]
            ):
                raise _mismatch("the keyframe is not the source's", place)

    def _is_same_state(self, history: History, entry: Entry) -> bool:
        sent, arrived = (self._state(store, history, entry) for store in (self.source, self.target))
        return sent == arrived

    def _state(self, store: Store, history: History, entry: Entry) -> tuple[str, bytes]:
        restorer = Restorer(store, self.formats, self.vault)
        restored = restorer.restore(history.workflow_id, entry.sequence)
        return restored.checksum, self.packer.pack_plain(restorer.whole(restored))


def _compare_entries(history: History, arrived: History, prior: Prior) -> None:
    found = {entry.sequence: entry for entry in arrived.entries}
    for entry in history.entries:
        place = f"{history.workflow_id}@{entry.sequence}"
        there = found.get(entry.sequence)
        is_own = there is not None and prior.is_own(there)
        if there is None or (entry.group and not there.group and not is_own):
            raise _mismatch("the checkpoint did not arrive", place)
        if not _is_same(entry, there, is_own=is_own):
            raise _mismatch("the checkpoint is not listed as in the source", place)


def _is_same(entry: Entry, there: Entry, *, is_own: bool) -> bool:
    """Compare two listings of a checkpoint; of one that the target removed, what chains it is left."""
    is_kept = entry.pruned and (not there.pruned or entry.group != there.group)
    # Pruned in the source after it was copied: a copy loses nothing by that.
    return entry.checksum == there.checksum if is_own or is_kept else entry == there


def _mismatch(problem: str, place: str) -> ChecksumMismatchError:
    return ChecksumMismatchError(problem, place=place, hint=_HINT)
