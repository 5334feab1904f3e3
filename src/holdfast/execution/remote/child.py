"""The journal of a step that runs elsewhere: a workflow of its own, beside the run in the same store.

Whoever holds its lease may write it: the run while it sends an errand or takes one back, a worker in between.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.application.recording import Recording
from holdfast.application.recovery.owners import is_dead
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointRecoveryError,
    InvalidIdError,
    InvalidStateError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.request import RequestKind
from holdfast.domain.run_events import AGENT_FAILED, AGENT_STARTED, RUN_UPDATED
from holdfast.domain.state import WorkflowState
from holdfast.execution.approvals import Approval, answer_fact
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.journal import LOST, Fact, Journal, Save
from holdfast.execution.outcome import RunStatus
from holdfast.execution.remote.errand import Errand

#: Parts the run from the step in the name of a child.
MARK = "~"
#: Step id of facts about the child as a whole.
RUN = "run"
_LEASE_SECONDS = 30.0
_KEPT_CHARS = 120
_HASH_CHARS = 24
_LOG = logging.getLogger("holdfast")


def child_name(workflow_id: str, step_id: str) -> str:
    """Name the workflow that stands for a step: `WF-1~research[3]`, or with a hash where that is no name."""
    told = f"{workflow_id}{MARK}{step_id}"
    try:
        if told.count(MARK) == 1:
            return check_workflow_id(told)
    except InvalidIdError:
        pass
    digest = hashlib.sha256(f"{workflow_id}\n{step_id}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{workflow_id[:_KEPT_CHARS]}{MARK}{digest[:_HASH_CHARS]}"


@dataclass(frozen=True, slots=True)
class Look:
    """How a child stands: whether somebody has it, whether that one is gone, and how far its journal is."""

    is_held: bool
    is_gone: bool
    event_seq: int


class Child:
    """One step of a run, as the run sees it while it is worked on elsewhere. Its calls wait for the store."""

    def __init__(self, parent: Journal, step_id: str) -> None:
        self.step_id = step_id
        self.id = child_name(parent.workflow_id, step_id)
        self._parent = parent
        self._recording = parent.recording

    @property
    def url(self) -> str:
        """Where the store of the run is, without secrets."""
        return self._recording.url

    def look(self) -> Look:
        """Tell how the child stands."""
        lease = self._recording.lease(self.id)
        is_held = lease is not None and lease.is_live
        is_gone = lease is not None and (not lease.is_live or is_dead(lease.owner))
        return Look(is_held and not is_gone, is_gone, self._recording.event_seq(self.id))

    def events(self, after: int) -> list[Event]:
        """Answer what was recorded after an event."""
        return self._recording.events(self.id, after)

    def ended(self) -> WorkflowState | None:
        """Answer the last state of a child whose agent is done; None if it is not."""
        state = self._recording.ended(self.id)
        if state is not None:
            self._check(state.metadata)
        return state

    def send(self, errand: Errand) -> bool:
        """Record that an attempt begins, as the only one: whoever was at work before is fenced off.

        Answers whether there is anything left to do: that one may have ended in the last moment.

        Raises:
            WorkerLostError: somebody else took the step just now.
        """
        try:
            return self._send(errand)
        except LOST as lost:
            # The lease of the step, not that of the run.
            raise WorkerLostError(str(lost)) from lost

    def _send(self, errand: Errand) -> bool:
        known = self._parent.agent_state(self.step_id)
        with self._taken():
            started = {"attempt": errand.frame.attempt, "errand": errand.id}
            fact = Fact(AGENT_STARTED, started, self.step_id, errand.frame.agent)
            if not self._recording.exists(self.id):
                save = Save("started", {"type": CheckpointType.WORKFLOW_START})
                self._new(known).commit(save, fact)
                return True
            journal = self._unfinished()
            if journal is None:
                return False
            journal.commit(*_answers(self.step_id, known, journal.agent_state(self.step_id)), fact)
            return True

    def withdraw(self, errand: Errand, *, ends: bool) -> None:
        """Take an errand back: nothing that its worker still does is recorded.

        Args:
            errand: what was sent.
            ends: nobody will go on with it.
        """
        try:
            # A run that was taken over has no say any more: its child may be at work for somebody else.
            self._recording.check_lease(self._parent.workflow_id)
            with self._taken():
                journal = self._unfinished()
                if journal is not None:
                    self._withdraw(journal, errand, ends=ends)
        except CheckpointError as problem:
            _LOG.warning("the worker of %s could not be fenced off: %s", self.id, problem)

    def answer(self, name: str, approval: Approval) -> None:
        """Bring the answer to a question to the worker that asked it."""
        data = {"granted": approval.granted, "value": approval.value, "name": name, "step": self.step_id}
        self._recording.requests.put(
            self.id, RequestKind.APPROVAL, actor=approval.by or None, reason=approval.note, data=data
        )

    def _withdraw(self, journal: Journal, errand: Errand, *, ends: bool) -> None:
        error = {"type": "Withdrawn", "message": "the run did not wait any longer"}
        failed = {"attempt": errand.frame.attempt, "error": error}
        fact = Fact(AGENT_FAILED, failed, self.step_id, errand.frame.agent)
        if ends:
            journal.commit(fact, *ending(RunStatus.CANCELLED))
        else:
            journal.commit(fact)

    def _unfinished(self) -> Journal | None:
        """Bring the journal back, once nobody else can write it any more; None if the agent is done.

        A worker that was killed right after its result has left the end of its journal to be told.
        """
        if self.ended() is not None:
            return None
        journal = self._recovered()
        if journal.agent_state(self.step_id).get("status") != "completed":
            return journal
        journal.commit(*ending(RunStatus.COMPLETED))
        return None

    def _new(self, known: Mapping[str, Any]) -> Journal:
        """Begin the journal with what attempts in the run itself have left: milestones, effects, answers."""
        state = WorkflowState(
            workflow_id=self.id,
            status="in_progress",
            started_at=self._recording.now(),
            total_steps=1,
            agent_states={self.step_id: dict(known)},
            metadata={"parent": self._parent.workflow_id, "step": self.step_id},
        )
        return Journal(self._recording, self.id, state.to_fields())

    def _recovered(self) -> Journal:
        journal = recovered(self._recording, self.id)
        self._check(journal.fields.get("metadata", {}))
        return journal

    def _check(self, metadata: Mapping[str, Any]) -> None:
        if (metadata.get("parent"), metadata.get("step")) != (self._parent.workflow_id, self.step_id):
            raise InvalidStateError(
                f"a workflow has the name that the journal of {self.step_id!r} needs",
                place=self.id,
                hint="Run under another id.",
            )

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Have the child for the run meanwhile; whoever had it is fenced off."""
        before = self._recording.lease(self.id)
        if before is not None:
            self._recording.give_up(before)
        lease = self._recording.take(self.id, "send", _LEASE_SECONDS)
        try:
            yield
        finally:
            self._recording.give_up(lease)


def recovered(recording: Recording, child_id: str) -> Journal:
    """Bring the journal of a child back, to go on with it.

    Raises:
        CheckpointRecoveryError: it cannot be read, or is not there.
    """
    hint = "See that the worker opens the same store as the run."
    try:
        found = recording.recover(child_id)
    except CheckpointNotFoundError as missing:
        raise CheckpointRecoveryError("the step has no journal", place=child_id, hint=hint) from missing
    if not found.success or found.state is None:
        raise CheckpointRecoveryError(
            "; ".join(found.validation_errors) or "it cannot be brought back", place=child_id, hint=hint
        )
    return Journal(recording, child_id, found.state.to_fields())


def ending(status: RunStatus) -> tuple[Fact, Save]:
    """Put the end of a child into words for its journal."""
    fields = {"status": str(status), "resumable": False}
    return (
        Fact(RUN_UPDATED, {"fields": fields}, RUN),
        Save(str(status), {"type": CheckpointType.WORKFLOW_COMPLETE}),
    )


def _answers(step_id: str, known: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Fact]:
    """Name the answers that the run got and the child does not have."""
    for name, told in known.get("approvals", {}).items():
        approval = Approval.of(told)
        if approval is not None and Approval.of(there.get("approvals", {}).get(name, {})) is None:
            yield answer_fact(step_id, name, approval, told.get("request", ""))
