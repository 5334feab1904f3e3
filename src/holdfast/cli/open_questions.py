"""The answers that people gave to questions of workflows, and that are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.opening import looking

if TYPE_CHECKING:
    from holdfast.cli.group import Call
    from holdfast.domain.request import Request


def answers_under_way(call: Call, workflow_id: str | None = None) -> list[Request]:
    """List the answers that were given and not taken in yet."""
    from holdfast.domain.request import RequestKind

    with looking(call) as service:
        pending = service.requests.pending(workflow_id)
    return [one for one in pending if one.kind is RequestKind.APPROVAL]
