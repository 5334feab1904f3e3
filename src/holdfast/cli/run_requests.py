"""Asking something of whoever runs a workflow, and waiting until it was heard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import tell_plan
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe
from holdfast.cli.run_options import resume_command
from holdfast.cli.run_standing import runner_of
from holdfast.domain.run_events import REQUEST_SETTLED

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.service import CheckpointService
    from holdfast.cli.group import Call
    from holdfast.domain.request import Request

TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.1

timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=TIMEOUT_SECONDS,
    help="How long to wait until it is heard. [default: 30]",
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of a workflow: a kind of request, by whom, why."""

    workflow_id: str
    kind: str
    actor: str | None = None
    reason: str | None = None
    data: Mapping[str, Any] | None = None


def check_open(call: Call, workflow_id: str) -> str | None:
    """Answer who runs a workflow that has not ended; None if nobody does.

    Raises:
        CheckpointNotFoundError: there is no such workflow.
        Failure: it has ended.
    """
    from holdfast.application.insight.questions import has_ended

    with reading(call) as kit:
        find_workflow(kit, workflow_id)
        if has_ended(kit, workflow_id):
            raise Failure(
                "workflow_ended",
                Exit.REFUSED,
                "the workflow has ended, and nothing can be asked of it",
                place=workflow_id,
                hint=f"See `holdfast show {workflow_id}` for what came of it.",
            )
        lease = runner_of(kit, workflow_id)
        return lease.owner if lease is not None else None


def check_running(call: Call, workflow_id: str) -> str:
    """Answer who runs a workflow; refuse to ask where nobody would hear it.

    Raises:
        Failure: nobody runs the workflow, or it has ended.
    """
    runner = check_open(call, workflow_id)
    if runner is None:
        raise not_running(call, workflow_id)
    return runner


def tell_asking(call: Call, workflow_id: str, kind: str, runner: str | None) -> None:
    """Say what would be asked, and of whom."""
    whom = f"{runner}, who runs it" if runner else "whoever runs it next"
    text = f"Would ask {safe(whom)}: {kind} {safe(workflow_id)}"
    tell_plan(call.output, text, workflow_id=workflow_id, request=kind, runner=runner)


def not_running(call: Call, workflow_id: str) -> Failure:
    """Say that nobody runs a workflow."""
    return Failure(
        "not_running",
        Exit.REFUSED,
        "nobody runs the workflow at this moment",
        place=workflow_id,
        hint=f"Go on with `{resume_command(call, workflow_id)}`.",
    )


@contextmanager
def asked(call: Call, wish: Wish) -> Iterator[tuple[CheckpointService, Request]]:
    """Leave a request in a workflow's mailbox, and have the store open meanwhile."""
    with writing(call) as service:
        yield (
            service,
            service.requests.put(
                wish.workflow_id, wish.kind, actor=wish.actor, reason=wish.reason, data=wish.data
            ),
        )


def ask(call: Call, wish: Wish, timeout_seconds: float) -> Request:
    """Ask something of a running workflow and wait until it was heard.

    Raises:
        Failure: it was not heard in time, and stays; or nobody runs the workflow any more, and it is gone.
    """
    with reading(call) as kit:
        last = kit.store.head(wish.workflow_id).event_seq
        with asked(call, wish) as (service, request):
            until = time.monotonic() + timeout_seconds
            while True:
                # Looked for first: a request may be heard at the very end of a run.
                runner = runner_of(kit, wish.workflow_id)
                if is_heard(kit, request, last):
                    return request
                if runner is None:
                    service.requests.settle([request.id])
                    raise not_running(call, wish.workflow_id)
                if time.monotonic() >= until:
                    raise _not_heard(wish, timeout_seconds)
                time.sleep(_POLL_SECONDS)


def is_heard(kit: Kit, request: Request, after: int) -> bool:
    """Tell whether a request was carried out: it is gone from the mailbox, or told in the journal since."""
    from holdfast.application.reading import Reader

    if kit.store.file(request.file) is None:
        return True
    events = Reader(kit).events(request.workflow_id, after, REQUEST_SETTLED, None)
    return any(event.data.get("id") == request.id for event in events)


def _not_heard(wish: Wish, timeout_seconds: float) -> Failure:
    return Failure(
        "not_heard",
        Exit.WAITING,
        f"the request was left, and not carried out within {timeout_seconds:g} seconds",
        place=wish.workflow_id,
        hint="It stays until whoever runs the workflow looks for it.",
    )


def newest_sequence(kit: Kit, workflow_id: str) -> int:
    """Answer the number of a workflow's newest checkpoint."""
    return kit.store.head(workflow_id).sequence
