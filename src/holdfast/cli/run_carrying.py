"""Carrying a run out for the command line: the store, the display, signals, and what came of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.application.redaction.redacting import LOGS
from holdfast.cli.app_running import program_at_work
from holdfast.cli.changing import Change, tell_plan
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call
from holdfast.cli.opening import told_why
from holdfast.cli.output import counted, safe
from holdfast.cli.run_progress import Tell, shown
from holdfast.cli.run_tally import Tally
from holdfast.domain.errors import CheckpointError, ResultLostError
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.unwritten import Unwritten
from holdfast.execution.options import RunOptions

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.service import CheckpointService
    from holdfast.execution.outcome import RunResult
    from holdfast.execution.workflow import Workflow

#: Starts the run on an open store.
Start = Callable[["CheckpointService", RunOptions], Coroutine[Any, Any, "RunResult"]]

#: The signals that stop a run, and what the command line calls and answers it.
_SIGNALLED = {
    int(signal.SIGTERM): ("terminated", Exit.TERMINATED),
    int(signal.SIGINT): ("interrupted", Exit.INTERRUPTED),
}


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run, and how.

    Attributes:
        program: what it is called on the command line.
        workflow_id: the run.
        start: starts it.
        fields: the state it goes on from; empty for a new one.
        creates: whether a store that is not there is made.
        events: whether what happens is printed as JSON lines.
        change: why it is run, and whether it is just to be seen what would be.
    """

    program: str
    workflow: Workflow
    workflow_id: str
    start: Start
    options: RunOptions
    fields: Mapping[str, Any] = field(default_factory=dict)
    app: App | None = None
    creates: bool = False
    events: bool = False
    change: Change = field(default_factory=Change)

    @property
    def types(self) -> TypeRegistry:
        """The types of the application's."""
        return (self.app.types if self.app else None) or TypeRegistry()


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a run: a result, or what ended it before; and what the store does not have of it."""

    order: Order
    tally: Tally
    result: RunResult | None = None
    fault: CheckpointError | Failure | None = None
    signal: int | None = None
    unwritten: Unwritten = field(default_factory=Unwritten)

    @property
    def is_durable(self) -> bool:
        """Whether the store has everything that the run recorded."""
        return not self.unwritten.commits and (self.result is None or self.result.is_durable)

    @property
    def status(self) -> str:
        """How the run stands."""
        return str(self.result.status) if self.result is not None else self.tally.status or "failed"


def carry_out(call: Call, order: Order) -> Ended:
    """Run to an end, whatever it is, and show what happens meanwhile.

    Raises:
        CheckpointError: it could not even begin.
        Failure: a signal came before it did.
    """
    tally = Tally(order.workflow.plan.agents)
    tally.begin_from(order.fields)
    with (
        _opened(call, order) as service,
        shown(call.output, tally, order.types, events=order.events) as tell,
        program_at_work(),
    ):
        ended = _run(service, order, tally, tell)
    if not tally.is_begun:
        _raise_why_not(ended)
    return _with_unwritten(ended, service.recording.unwritten(order.workflow_id))


def _with_unwritten(ended: Ended, unwritten: Unwritten) -> Ended:
    """Tell what the store does not have, now that it is closed: what waited was tried once more."""
    if ended.result is None or ended.result.unwritten.is_lost:
        return replace(ended, unwritten=unwritten)
    return replace(ended, result=ended.result.with_unwritten(unwritten), unwritten=unwritten)


def _raise_why_not(ended: Ended) -> None:
    """Tell of a run that did not begin; there is nothing of it to sum up, and maybe nothing to resume."""
    if ended.fault is not None:
        raise ended.fault
    if ended.signal is not None:
        code, leave = _SIGNALLED[ended.signal]
        raise Failure(code, leave, f"{code} before the run began", hint="Give the same command again.")


@contextmanager
def _opened(call: Call, order: Order) -> Iterator[CheckpointService]:
    """Open the store as a program of one's own does: a run has a session, and survives a full disk."""
    from holdfast import bootstrap
    from holdfast.config import Config

    with (
        bootstrap.open(
            config=Config.for_runs({"store": call.store}), create=order.creates, app=order.app
        ) as service,
        told_why(service, order.change.reason, order.workflow_id),
    ):
        yield service


def tell_order(call: Call, order: Order) -> None:
    """Say what would be run: the program was loaded, and nothing of it was."""
    agents = list(order.workflow.plan.agents)
    how = "go on with" if order.fields else "begin"
    text = (
        f"Would {how} {safe(order.workflow_id)} with {safe(order.program)}: {counted(len(agents), 'agent')}"
    )
    told = {"workflow_id": order.workflow_id, "program": order.program, "agents": agents}
    tell_plan(call.output, text, **told, is_new=not order.fields)


def _run(service: CheckpointService, order: Order, tally: Tally, tell: Tell) -> Ended:
    # Signals are heeded here, where it is known which one came.
    options = replace(order.options, subscribers=(_hiding(tally.told, tell),), handles_signals=False)
    try:
        result, number = asyncio.run(_heeding_signals(order.start(service, options)))
        return Ended(order, tally, result, signal=number)
    except ResultLostError as fault:
        return Ended(order, tally, fault.result, fault)
    except CheckpointError as fault:
        # It says what the program's own errors say.
        fault.message = LOGS.text(fault.message)
        return Ended(order, tally, fault=fault)
    except Exception as problem:
        if sys.flags.dev_mode:
            raise
        return Ended(order, tally, fault=_program_failed(problem, order))


def _hiding(*tells: Tell) -> Tell:
    """Tell a run without the secrets that its program names: what is shown is what is stored."""

    def told(kind: str, data: Mapping[str, Any]) -> None:
        hidden = {name: LOGS.text(value) if isinstance(value, str) else value for name, value in data.items()}
        for tell in tells:
            tell(kind, hidden)

    return told


async def _heeding_signals(work: Coroutine[Any, Any, RunResult]) -> tuple[RunResult | None, int | None]:
    """Await a run; a signal ends it with a last checkpoint, and is answered instead of a result."""
    loop, came = asyncio.get_running_loop(), list[int]()
    task = loop.create_task(work)

    def stop(number: int) -> None:
        came.append(number)
        task.cancel()

    # Whoever had a signal ignored wants the process to go on.
    before = {number: signal.getsignal(number) for number in _SIGNALLED}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, stop, number)
    try:
        return await task, None
    except asyncio.CancelledError:
        if not came:
            raise
        return None, came[0]
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _program_failed(problem: Exception, order: Order) -> Failure:
    return Failure(
        "program_failed",
        Exit.RUN_FAILED,
        f"the program failed outside of its agents ({LOGS.text(f'{type(problem).__name__}: {problem}')})",
        place=f"{order.workflow_id} {order.program}",
        hint="`python -X dev -m holdfast ...` shows where it is.",
    )
