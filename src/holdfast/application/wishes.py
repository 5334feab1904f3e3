"""Changes that somebody asks for: who wants what, and why, is told before it happens."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.trailing import correlate, correlation
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import InvalidStateError

REASON_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """Something to be changed: with which tool, why, and what it is about.

    Attributes:
        facts: what else is told of it for ever, `tool` or `command` say. No person's data.
    """

    reason: str
    workflow_id: str | None = None
    agent: str | None = None
    facts: Mapping[str, int | str] = field(default_factory=dict)


@contextmanager
def wished(audit: AuditLog, wish: Wish, *, origin: str) -> Iterator[None]:
    """Tell who wants what and why, then let it happen; all of it carries one correlation id in the trail.

    Args:
        origin: what the id begins with, unless the caller has named one by `correlate`.

    Raises:
        InvalidStateError: there is no reason, or it is too long.
    """
    with correlate(correlation() or f"{origin}-{secrets.token_hex(8)}"):
        tell_wish(audit, wish)
        yield


def tell_wish(audit: AuditLog, wish: Wish) -> None:
    """Tell the trail who wants what and why; durable before it is done.

    Raises:
        InvalidStateError: there is no reason, or it is too long.
        CheckpointError: it cannot be told: then it is not done.
    """
    check_reason(wish.reason, wish.workflow_id or "")
    if audit.is_on:
        audit.log_event(
            AuditType.REQUEST_MADE,
            workflow_id=wish.workflow_id,
            agent=wish.agent,
            facts=wish.facts,
            payload={"reason": wish.reason},
        )


def check_reason(reason: str, place: str) -> None:
    """Refuse a reason that says nothing, and one that nobody reads to its end.

    Raises:
        InvalidStateError: it is one of them.
    """
    if not reason.strip() or len(reason) > REASON_CHARS_MAX:
        raise InvalidStateError(
            f"a reason has 1 to {REASON_CHARS_MAX} characters",
            place=place,
            hint="Say why, for whoever reads the trail.",
        )
