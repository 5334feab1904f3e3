"""Copying workflows from one store to another: what was hashed stays as it is, and is verified on arrival."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.application.audit.trail_copying import TrailCopier, TrailCopy
from holdfast.application.history import History, look
from holdfast.application.resolve import no_such_workflow
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.transport.arrival import Arrival, Prior, look_before
from holdfast.application.transport.divergence import find_standing
from holdfast.application.transport.key_transport import bring_keys, check_keyrings
from holdfast.application.transport.people_transport import PeopleCopy, bring_people, plan_people
from holdfast.application.transport.shipping import Cargo, Shipment, lacking_keyframes
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ConfigError,
    StateTooLargeError,
    StoreReadOnlyError,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Formats, Packer, Store

#: Makes the entry of the target's trail that tells of something.
Tell = Callable[[AuditType, str | None, dict[str, int | str]], AuditEntry]
#: Told the workflow, how many items of it are done, and how many there are.
OnProgress = Callable[[str, int, int], None]

#: What is not found may just have been removed by somebody; what is still not found then is lost.
_ATTEMPTS_MAX = 3


class Outcome(StrEnum):
    """How the copying of one workflow ended."""

    COPIED = "copied"
    #: The target had all of it already; it was verified again.
    PRESENT = "present"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WorkflowCopy:
    """What was copied of one workflow, or why it was not."""

    workflow_id: str
    outcome: Outcome
    cargo: Cargo = field(default_factory=Cargo)
    error: CheckpointError | None = None


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What was copied, or would be."""

    workflows: tuple[WorkflowCopy, ...]
    seconds: float
    dry_run: bool = False
    #: The source's trail; None if it was not asked for.
    trail: TrailCopy | None = None
    #: Legal holds and declarations of subjects, which come along always.
    people: PeopleCopy = field(default_factory=PeopleCopy)

    def of(self, outcome: Outcome) -> list[WorkflowCopy]:
        """Answer the workflows that ended so."""
        return [one for one in self.workflows if one.outcome is outcome]

    @property
    def cargo(self) -> Cargo:
        """How much was copied altogether."""
        return sum((one.cargo for one in self.workflows), Cargo())


class Copier:
    """Copies workflows. The source is only read; the target gains, and loses nothing.

    Leases and requests are not copied; keys, legal holds and declarations of subjects are, always. Where the
    target already has the beginning of a workflow, the rest is added.
    """

    def __init__(
        self,
        source: Store,
        target: Store,
        packer: Packer,
        formats: Formats,
        on_progress: OnProgress = lambda workflow_id, done, total: None,
        vault: Vault | None = None,
        tell: Tell | None = None,
    ) -> None:
        """Bring two stores together; with `tell`, what is copied is told in the target's trail."""
        if source is target:
            raise ConfigError(
                "a store cannot be copied onto itself", place=source.url, hint="Name another target."
            )
        self._source = source
        self._target = target
        self._vault = vault
        self._arrival = Arrival(source, target, packer, formats, vault)
        self._on_progress = on_progress
        self._tell = tell

    def copy(self, workflow_ids: Iterable[str], *, with_trail: bool = False) -> CopyResult:
        """Copy workflows one after the other; a damaged or diverged one does not keep the others from it.

        Args:
            workflow_ids: which.
            with_trail: take the source's whole trail along, as a sealed export; see `trail_copying`.

        Raises:
            StoreReadOnlyError: the target was opened for reading.
            CheckpointWriteError: the target cannot be written to. What it holds by then is sound, and
                copying again goes on from there.
            ConfigError: the two stores have other keys, or name people by other secrets.
            CheckpointConflictError: there is another hold of the same name in the target.
        """
        if self._target.read_only:
            raise StoreReadOnlyError(
                "the target was opened for reading only", place=self._target.url, hint="Open it for writing."
            )
        begun = time.monotonic()
        bring_keys(self._source, self._target)
        people = self._bring_people()
        done = tuple(self._told(workflow_id, self._copy) for workflow_id in workflow_ids)
        trail = self._bring_trail() if with_trail else None
        return CopyResult(done, time.monotonic() - begun, trail=trail, people=people)

    def plan(self, workflow_ids: Iterable[str], *, with_trail: bool = False) -> CopyResult:
        """Tell what would be copied, without the bytes of blobs, and change nothing."""
        begun = time.monotonic()
        check_keyrings(self._source, self._target)
        people = plan_people(self._source, self._target, self._vault)
        done = tuple(self._told(workflow_id, self._plan) for workflow_id in workflow_ids)
        trail = TrailCopier(self._source, self._target).plan() if with_trail else None
        return CopyResult(done, time.monotonic() - begun, dry_run=True, trail=trail, people=people)

    def _bring_people(self) -> PeopleCopy:
        """Bring holds and declarations before anything that they cover."""
        people = bring_people(self._source, self._target, self._vault)
        if people.holds or people.declarations:
            self._record(None, {"holds": people.holds, "subjects": people.declarations})
        return people

    def _bring_trail(self) -> TrailCopy:
        entries = [self._tell(AuditType.TRAIL_IMPORTED, None, {})] if self._tell else []
        return TrailCopier(self._source, self._target).copy(entries)

    def _told(self, workflow_id: str, work: Callable[[str], Cargo]) -> WorkflowCopy:
        """Work on one workflow and tell how it ended; a target that fails altogether ends everything."""
        try:
            cargo = work(workflow_id)
        except CheckpointError as error:
            is_its_own = isinstance(error, CheckpointConflictError | StateTooLargeError)
            if isinstance(error, CheckpointWriteError) and not is_its_own:
                raise
            return WorkflowCopy(workflow_id, Outcome.FAILED, error=error)
        return WorkflowCopy(workflow_id, Outcome.COPIED if cargo != Cargo() else Outcome.PRESENT, cargo)

    def _copy(self, workflow_id: str) -> Cargo:
        cargo = Cargo()
        prior: Prior | None = None
        attempts = _ATTEMPTS_MAX
        while True:
            history = self._look(workflow_id)
            standing = find_standing(self._source, self._target, history)
            # What an earlier attempt sent must be there: only before the first could the target remove it.
            prior = prior or look_before(self._target, workflow_id, standing)
            progress = _Progress(self._on_progress, history, standing)
            shipment = Shipment(self._source, self._target, history, standing)
            try:
                shipment.send(progress.sent)
                self._arrival.verify(shipment.history, prior, shipment.waiting, progress.verified)
            except CheckpointNotFoundError as error:
                attempts -= 1
                if not attempts:
                    raise _lost(error) from error
                cargo += shipment.cargo
                continue
            progress.finished()
            self._tell_of(workflow_id, cargo + shipment.cargo)
            return cargo + shipment.cargo

    def _tell_of(self, workflow_id: str, cargo: Cargo) -> None:
        """Tell in the target's trail what arrived."""
        if cargo != Cargo():
            self._record(workflow_id, {"checkpoints": cargo.checkpoints, "events": cargo.events})

    def _record(self, workflow_id: str | None, facts: dict[str, int | str]) -> None:
        if self._tell is None:
            return
        entry = self._tell(AuditType.STORE_COPIED, workflow_id, facts)
        [outcome] = self._target.commit([Commit(NO_WORKFLOW, Head(), audit=(entry,))])
        if outcome is not None:
            raise outcome

    def _plan(self, workflow_id: str) -> Cargo:
        history = self._look(workflow_id)
        standing = find_standing(self._source, self._target, history)
        entries = history.after(standing.sequence)
        keyframes, _ = lacking_keyframes(self._target, history, standing)
        lines = [len(line) for line in self._source.events(workflow_id, after=standing.event_seq)]
        named = {sha256 for entry in entries for sha256 in entry.blobs}
        named.update(*(keyframe.blobs for keyframe in keyframes))
        return Cargo(
            checkpoints=sum(not entry.pruned for entry in entries),
            tombstones=sum(entry.pruned for entry in entries),
            events=len(lines),
            keyframes=len(keyframes),
            blobs=sum(not self._target.has_blob(sha256) for sha256 in named),
            bytes=sum(lines)
            + sum(entry.length for entry in entries)
            + sum(keyframe.length for keyframe in keyframes),
        )

    def _look(self, workflow_id: str) -> History:
        history = look(self._source, workflow_id)
        if history.head == Head():
            raise no_such_workflow(workflow_id)
        return history


class _Progress:
    """Counts what is sent and what is read back as one way; events that were removed are one step."""

    def __init__(self, on_progress: OnProgress, history: History, standing: Head) -> None:
        self._on_progress = on_progress
        self._workflow_id = history.workflow_id
        new = len(history.after(standing.sequence)) + history.head.event_seq - standing.event_seq
        self._sent = 0
        self._total = new + len(history.entries) + history.head.event_seq
        self.sent(0)

    def sent(self, count: int) -> None:
        self._sent = count
        self._on_progress(self._workflow_id, count, self._total)

    def verified(self, count: int) -> None:
        self._on_progress(self._workflow_id, self._sent + count, self._total)

    def finished(self) -> None:
        self._on_progress(self._workflow_id, self._total, self._total)


def _lost(error: CheckpointNotFoundError) -> CheckpointCorruptError:
    """Say that something is gone which the listing promises."""
    return CheckpointCorruptError(
        f"something that is listed is not there ({error.message})",
        place=error.place,
        hint="Run `holdfast doctor` on both stores to see what can be recovered.",
    )
