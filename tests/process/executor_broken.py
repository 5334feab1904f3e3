"""Executors that are broken on purpose: each of them has to be found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.application.recording import Recording
from holdfast.domain.record import Lease
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_STARTED
from holdfast.execution.context import Context
from holdfast.execution.journal import Fact, Journal, Queued, Save


def results_later() -> None:
    """Let starts and results wait for whatever is committed next: the next agent begins without them."""
    at_once, soon = Journal.queued, Journal.commit_async

    def late(journal: Journal, items: tuple[Fact | Save, ...]) -> bool:
        kinds = {item.kind if isinstance(item, Fact) else "" for item in items}
        if not kinds <= {AGENT_STARTED, AGENT_COMPLETED}:
            return False
        for item in items:
            journal.note(item)
        return True

    def queued(journal: Journal, *items: Fact | Save) -> Queued:
        return Queued((), [], 0.0) if late(journal, items) else at_once(journal, *items)

    async def commit_async(journal: Journal, *items: Fact | Save) -> Any:
        return None if late(journal, items) else await soon(journal, *items)

    setattr(Journal, "queued", queued)  # noqa: B010
    setattr(Journal, "commit_async", commit_async)  # noqa: B010


def no_ledger() -> None:
    """Let agents change the outside world without a record and without a key."""

    def effect(_: Context, name: str, function: Callable[..., Any], *arguments: Any, **__: Any) -> Any:
        return function(None, *arguments)

    setattr(Context, "effect", effect)  # noqa: B010


def no_lease() -> None:
    """Let everybody run a workflow who wants to."""

    def take(_: Recording, workflow_id: str, task: str, ttl_seconds: float) -> Lease:
        return Lease(workflow_id, task, 0, "")

    setattr(Recording, "take", take)  # noqa: B010
    setattr(Recording, "renew", lambda *_: None)  # noqa: B010
    setattr(Recording, "give_up", lambda *_: None)  # noqa: B010


BREAKS: dict[str, Callable[[], None]] = {
    "results later": results_later,
    "no ledger": no_ledger,
    "no lease": no_lease,
}
