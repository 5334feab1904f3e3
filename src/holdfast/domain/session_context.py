"""What one session gives to the next: who hands over to whom, what was done, and what is still open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.ids import check_id, check_session_id, check_workflow_id

CONTEXT_VERSION = "1.0.0"
BLOCK = "session_context"
#: What a decision says of itself once nobody need think of it any more.
_SETTLED = frozenset(
    {"cancelled", "closed", "completed", "done", "implemented", "rejected", "resolved", "superseded"}
)


@dataclass(frozen=True, slots=True)
class Agent:
    """Who works in a session: its id, its version, and the family it is of."""

    id: str
    version: str | None = None
    family: str | None = None

    def to_fields(self) -> dict[str, str]:
        """Write what is known, in the order of the documents."""
        named = {"id": self.id, "version": self.version, "family": self.family}
        return {name: text for name, text in named.items() if text is not None}


#: An agent, its id, or the fields of one.
AgentLike = Agent | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The documents' `session_context`, and what a successor asks for first.

    Attributes:
        session_id: the session that it is of.
        source_agent: who worked in that session.
        target_agent: who is to go on.
        payload: whatever else the successor needs.
        summary: what was done and what comes next, in a few sentences.
        workflow_ids: what the session worked on.
        context_usage: how full the model's context window was, from 0 to 1.
    """

    session_id: str
    source_agent: Agent | None = None
    target_agent: Agent | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    workflow_ids: tuple[str, ...] = ()
    context_usage: float | None = None
    schema_version: str = CONTEXT_VERSION

    def to_block(self) -> dict[str, Any]:
        """Write the block as the documents do; what is not known is left out."""
        fields: dict[str, Any] = {"schema_version": self.schema_version, "session_id": self.session_id}
        for name, agent in (("source_agent", self.source_agent), ("target_agent", self.target_agent)):
            if agent is not None:
                fields[name] = agent.to_fields()
        fields |= {"summary": self.summary, "workflow_ids": list(self.workflow_ids)}
        if self.context_usage is not None:
            fields["context_usage"] = self.context_usage
        return {BLOCK: {**fields, "payload": dict(self.payload)}}

    @classmethod
    def from_block(cls, block: Mapping[str, Any]) -> SessionContext:
        """Read a block, also one that has only the fields of the documents.

        Raises:
            InvalidStateError: it is none.
            InvalidIdError: a name in it cannot be one.
        """
        fields = block.get(BLOCK, block)
        if not isinstance(fields, Mapping) or not isinstance(fields.get("session_id"), str):
            raise _no_block("it names no session")
        payload = fields.get("payload", {})
        workflow_ids = fields.get("workflow_ids", ())
        if not isinstance(payload, Mapping) or not isinstance(workflow_ids, list | tuple):
            raise _no_block("its payload or its workflow_ids are of another kind")
        usage = fields.get("context_usage")
        return cls(
            check_session_id(fields["session_id"]),
            as_agent(fields.get("source_agent")),
            as_agent(fields.get("target_agent")),
            payload,
            str(fields.get("summary", "")),
            tuple(check_workflow_id(one) for one in workflow_ids),
            None if usage is None else check_usage(usage),
            str(fields.get("schema_version", CONTEXT_VERSION)),
        )


def as_agent(given: AgentLike | None) -> Agent | None:
    """Take an agent as it is, by its id, or by its fields.

    Raises:
        InvalidStateError: it is nothing of the kind.
        InvalidIdError: one of its names cannot be one.
    """
    if given is None:
        return None
    if isinstance(given, str):
        given = Agent(given)
    elif isinstance(given, Mapping):
        unknown = set(given) - {"id", "version", "family"}
        if unknown or not isinstance(given.get("id"), str):
            raise InvalidStateError(
                "these fields are no agent", hint="Give `id`, and `version` and `family` if you like."
            )
        given = Agent(**given)
    if not isinstance(given, Agent):
        raise InvalidStateError(f"a {type(given).__name__} is no agent", hint="Give its id.")
    for kind, text in given.to_fields().items():
        check_id("agent" if kind == "id" else f"agent {kind}", text)
    return given


def check_usage(fraction: Any) -> float:
    """Answer how full a context window is, if that can be.

    Raises:
        InvalidStateError: it is no number from 0 to 1.
    """
    is_number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
    if not is_number or not 0 <= fraction <= 1:
        raise InvalidStateError(
            f"{fraction!r} is no fraction of a context window",
            hint="Give a number from 0 to 1: used tokens divided by the size of the window.",
        )
    return float(fraction)


def open_decisions(decisions: Iterable[Any]) -> list[Any]:
    """Answer the decisions that still matter: all but those whose `status` says that they are settled."""
    return [one for one in decisions if not (isinstance(one, Mapping) and _is_settled(one))]


def _is_settled(decision: Mapping[str, Any]) -> bool:
    status = decision.get("status")
    return isinstance(status, str) and status.lower() in _SETTLED


def _no_block(why: str) -> InvalidStateError:
    return InvalidStateError(f"this is no {BLOCK}, {why}", hint="docs/sessions.md shows one.")
