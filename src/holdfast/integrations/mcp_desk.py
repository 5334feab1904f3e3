"""What an agent may ask of a store: questions and wishes as plain data, within its scope and in bounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import Any

from holdfast.application import wishes
from holdfast.application.insight.stored_changes import operations_at
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import living
from holdfast.application.service import CheckpointService
from holdfast.application.travel.travelling import Point, TimeTravel
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.checkpoint import CheckpointMeta
from holdfast.domain.delta import Operation, describe
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    InvalidStateError,
    PermissionDeniedError,
    StoreReadOnlyError,
)
from holdfast.domain.ids import check_workflow_id, parse_ref
from holdfast.domain.state import WorkflowState
from holdfast.domain.time import timestamp_text
from holdfast.integrations.mcp_answers import (
    ANSWER_BYTES,
    Answers,
    bounded,
    json_of,
    listed,
    looked_up,
    made_fields,
)

_AGENT_CHARS_MAX = 100
_LOG = logging.getLogger("holdfast")


class Scope(StrEnum):
    """What an agent may do, by the names of the HTTP API; `export`, `erase` and `admin` are for people."""

    READ = "read"
    VERIFY = "verify"
    APPEND = "append"


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """What one server offers.

    Attributes:
        scopes: what may be done.
        prefix: only workflows whose ids begin so are there.
        answer_bytes: no answer is larger, as JSON.
    """

    scopes: frozenset[Scope] = frozenset({Scope.READ, Scope.VERIFY})
    prefix: str = ""
    answer_bytes: int = ANSWER_BYTES


@dataclass(frozen=True, slots=True)
class Wish:
    """Something to be written: by which agent, with which tool, and why."""

    tool: str
    workflow_id: str
    reason: str
    agent: str | None = None
    facts: Mapping[str, int | str] = field(default_factory=dict)


class Desk:
    """Answers an agent's questions about a store. Every look and every change is told in the trail."""

    def __init__(self, kit: Kit, settings: DeskSettings) -> None:
        self._kit = kit
        self._settings = settings
        self._answers = Answers(settings.answer_bytes)
        self._service = CheckpointService(kit)
        self._reader = Reader(kit)
        self._travel = TimeTravel(kit, None, self._reader)

    def close(self) -> None:
        """Finish everything and close the store."""
        self._service.close()

    # -- read --------------------------------------------------------------------------------

    def workflows(self, limit: int) -> dict[str, Any]:
        """List workflows, the one that was last written to first."""
        names = [name for name in self._kit.store.workflows() if name.startswith(self._settings.prefix)]
        found = [(name, next(living(self._kit.store, name), None)) for name in names]
        found.sort(key=lambda one: (one[1].timestamp if one[1] else "", one[0]), reverse=True)
        rows = (
            {
                "workflow_id": name,
                "latest": listed(CheckpointMeta.from_entry(name, entry)) if entry else None,
            }
            for name, entry in found
        )
        return self._answers.fitted("workflows", islice(rows, bounded(limit)), len(found))

    def checkpoints(self, workflow_id: str, limit: int) -> dict[str, Any]:
        """List the checkpoints of a workflow, newest first."""
        self._check(workflow_id)
        metas = self._service.list_checkpoints(workflow_id, bounded(limit))
        if not metas:
            raise CheckpointNotFoundError(
                "there is no such workflow, or it has no checkpoint", place=workflow_id
            )
        total = sum(1 for _ in living(self._kit.store, workflow_id))
        return self._answers.fitted("checkpoints", map(listed, metas), total)

    def show(self, checkpoint: str, pointer: str, agent: str | None) -> dict[str, Any]:
        """Answer the state at a checkpoint or a point, or one place in it, verified."""
        point = self._point(checkpoint)
        part = looked_up(point.tree, pointer)
        self._tell_looked(point, agent)
        told = {"checkpoint": str(point), "workflow_id": point.workflow_id, "pointer": pointer}
        return {**told, **self._answers.whole("state", part, pointer), "notes": list(point.notes)}

    def diff(self, a: str, b: str, agent: str | None) -> dict[str, Any]:
        """Tell what turns the state at one point into that at another."""
        old, new = self._point(a), self._point(b)
        operations = list(self._changes(old.tree, new.tree))
        for point in (old, new):
            self._tell_looked(point, agent)
        rows = ({"change": describe(one), "operation": json_of(one)} for one in operations)
        told = self._answers.fitted("changes", rows, len(operations))
        return {"from": str(old), "to": str(new), **told}

    def events(self, workflow_id: str, after: int, limit: int, agent: str | None) -> dict[str, Any]:
        """Read events of a workflow in their order, each verified."""
        self._check(workflow_id)
        found = (event for event in self._reader.opened_events(workflow_id, after) if event.seq > after)
        chosen = list(islice(found, bounded(limit)))
        self._tell(AuditType.EVENTS_READ, workflow_id, agent, {"entries": len(chosen)})
        rows = (
            {
                "seq": event.seq,
                "time": timestamp_text(event.timestamp),
                "type": event.type,
                "agent": event.agent,
                "step": event.step_id,
                "data": json_of(event.data),
            }
            for event in chosen
        )
        newest = self._kit.store.head(workflow_id).event_seq
        return {**self._answers.fitted("events", rows, len(chosen)), "newest_seq": newest}

    def trail(self, workflow_id: str, limit: int) -> dict[str, Any]:
        """Read the newest entries of the trail that are about a workflow."""
        self._check(workflow_id)
        events = self._service.audit.query_events(workflow=workflow_id, limit=bounded(limit), newest=True)
        rows = (
            {
                "id": f"{event.session_id}#{event.seq}",
                "time": timestamp_text(event.timestamp),
                "type": event.type,
                "actor": event.actor,
                "agent": event.agent,
                "outcome": event.outcome,
                "correlation": event.correlation_id,
                "facts": dict(event.facts),
                "data": json_of(event.data),
            }
            for event in reversed(events)
        )
        return self._answers.fitted("entries", rows, len(events))

    # -- verify ------------------------------------------------------------------------------

    def validate(self, checkpoint: str) -> dict[str, Any]:
        """Check that a checkpoint is what was committed."""
        result = self._service.validate_checkpoint(self._named(checkpoint))
        return {
            "checkpoint": str(result.id),
            "valid": result.valid,
            "problems": list(result.problems),
            "notes": list(result.notes),
        }

    def verify_trail(self) -> dict[str, Any]:
        """Verify the whole trail: chains, tree, heads."""
        report = self._service.audit.verify()
        faults = [str(fault) for fault in report.faults[:5]]
        level = report.level.label
        return {"valid": not report.fault_count, "level": level, "entries": report.entries, "faults": faults}

    # -- append ------------------------------------------------------------------------------

    def save(
        self, wish: Wish, state: Mapping[str, Any], messages: list[Any] | None, expected_sequence: int | None
    ) -> dict[str, Any]:
        """Record a state; fields that an agent has no say in stay what they were."""
        with self._writing(wish):
            before = self._service.load_latest(wish.workflow_id) or WorkflowState()
            whole = replace(before, context=dict(state))
            if messages is not None:
                whole.messages = messages
            made = self._service.create_checkpoint(
                wish.workflow_id, whole, agent_id=wish.agent, expected_sequence=expected_sequence
            )
            return made_fields(made)

    def decide(self, wish: Wish, description: str, confidence: float | None) -> dict[str, Any]:
        """Record a decision, with the reason as its rationale."""
        with self._writing(wish):
            event = self._service.record_decision(
                wish.workflow_id,
                description,
                rationale=wish.reason,
                confidence=confidence,
                agent_id=wish.agent,
            )
            return {"workflow_id": wish.workflow_id, "event_seq": event.seq}

    def restore(self, wish: Wish, checkpoint: str) -> dict[str, Any]:
        """Make an earlier state the newest again, as a checkpoint of its own: no history is lost."""
        name = self._named(checkpoint)
        if parse_ref(name).workflow_id != wish.workflow_id:
            raise InvalidStateError(
                "the checkpoint is of another workflow", place=checkpoint, hint="Fork it under a new id."
            )
        with self._writing(wish):
            state = self._service.restore_checkpoint(name)
            made = self._service.create_checkpoint(wish.workflow_id, state, agent_id=wish.agent, force=True)
            return {**made_fields(made), "restored_from": name}

    def fork(self, wish: Wish, checkpoint: str) -> dict[str, Any]:
        """Begin a new workflow from a point of another."""
        name = self._named(checkpoint)
        with self._writing(replace(wish, facts={**wish.facts, "from": name})):
            return {**made_fields(self._service.fork_workflow(name, wish.workflow_id)), "forked_from": name}

    # -- what all of them need ---------------------------------------------------------------

    @contextmanager
    def _writing(self, wish: Wish) -> Iterator[None]:
        """Tell who wants what and why, then let it happen; both carry one correlation id in the trail.

        Raises:
            InvalidStateError: there is no reason, or the workflow is over.
        """
        self._check(wish.workflow_id)
        wishes.check_reason(wish.reason, wish.workflow_id)
        if self._service.recording.ended(wish.workflow_id) is not None:
            raise InvalidStateError(
                "the workflow has ended, and nothing may be added", place=wish.workflow_id, hint="Fork it."
            )
        facts = {"tool": wish.tool, **wish.facts}
        told = wishes.Wish(wish.reason, wish.workflow_id, wish.agent, facts)
        with wishes.wished(self._service.audit, told, origin="mcp"):
            yield

    def _check(self, workflow_id: str) -> str:
        """Refuse what is not there for this server; the answer is the same whether it exists or not."""
        check_workflow_id(workflow_id)
        if not workflow_id.startswith(self._settings.prefix):
            self._tell(AuditType.OPERATION_REFUSED, workflow_id, None, {"via": "mcp"}, Outcome.REFUSED)
            raise PermissionDeniedError(
                "this server does not offer the workflow",
                place=workflow_id,
                hint=f"It has those whose ids begin with {self._settings.prefix!r}.",
            )
        return workflow_id

    def _named(self, checkpoint: str) -> str:
        """Answer the name of a checkpoint or a point, if it is of a workflow that is offered."""
        ref = parse_ref(checkpoint)
        if ref.path:
            raise PermissionDeniedError(
                "files are not read for agents", place=checkpoint, hint="Name it by its workflow: WF@42."
            )
        self._check(ref.workflow_id)
        # A bare name could be the beginning of the UUID of somebody else's checkpoint.
        return f"{ref.workflow_id}@latest" if ref.bare else checkpoint

    def _changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Operation]:
        """Compare two states field by field: to an agent their order means nothing."""
        for name in {**old, **new}:
            yield from operations_at(old, new, (name,), self._kit.packer)

    def _point(self, checkpoint: str) -> Point:
        return self._travel.at(self._named(checkpoint))

    def _tell_looked(self, point: Point, agent: str | None) -> None:
        self._tell(AuditType.STATE_READ, point.workflow_id, agent, point.facts)

    def _tell(
        self,
        type: AuditType,
        workflow_id: str,
        agent: str | None,
        facts: Mapping[str, int | str],
        outcome: Outcome = Outcome.SUCCESS,
    ) -> None:
        """Tell the trail before anything is shown; where it cannot be written, only a strict one minds."""
        if not self._kit.audit:
            return
        try:
            self._service.audit.log_event(
                type, workflow_id=workflow_id, agent=agent, facts=facts, outcome=outcome
            )
        except CheckpointError as problem:
            if self._kit.strict_audit:
                raise
            _LOG.warning("this read is not in the trail: %s", problem.message)


def open_desk(config: Config, settings: DeskSettings) -> Desk:
    """Open a store for a server; one that cannot be written to can be looked at all the same.

    Raises:
        CheckpointError: it cannot be opened, or not for what is wanted.
    """
    return Desk(_kit(config, is_needed=Scope.APPEND in settings.scopes), settings)


def _kit(config: Config, *, is_needed: bool) -> Kit:
    try:
        return build_kit(open_store(config, create=False), config)
    except (PermissionDeniedError, StoreReadOnlyError):
        if is_needed:
            raise
        return build_kit(open_store(config, read_only=True, create=False), config)


def agent_name(text: str | None) -> str | None:
    """Answer the name that a client gives itself, if it may stand in a trail."""
    if text is None:
        return None
    shown = "".join(letter for letter in text if letter.isprintable())[:_AGENT_CHARS_MAX].strip()
    return shown or None


Work = Callable[[], dict[str, Any]]
