"""`durable` and `step`: plain functions that survive the process, without a framework."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from string import Formatter
from typing import Any, ParamSpec, TypeVar, overload

from holdfast.application.app import App
from holdfast.application.recording import Recording
from holdfast.config import Config
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import DeclarationError, GraphChangedError
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.run_events import RUN_UPDATED
from holdfast.domain.state import WorkflowState
from holdfast.execution.claim import Claim
from holdfast.execution.declared import StoreLike
from holdfast.execution.durable_run import DurableRun, StepSpec, current
from holdfast.execution.given import digest_of, storable
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.options import LEASE_SECONDS
from holdfast.execution.plan import Retry, check_name
from holdfast.execution.running import RUN
from holdfast.execution.tenure import aside, brought_back, opened, taken

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
#: What a run is called: a text in which `{argument}` stands for an argument, or what answers it.
RunName = str | Callable[..., str]


@dataclass(frozen=True, slots=True)
class _Durable:
    """A function as it was declared durable."""

    function: Callable[..., Any]
    store: StoreLike
    id: RunName
    name: str
    app: App | None
    lease_seconds: float

    @property
    def types(self) -> TypeRegistry:
        return (self.app.types if self.app else None) or TypeRegistry()

    def named(self, arguments: inspect.BoundArguments) -> str:
        """Name the run that a call with these arguments is."""
        if callable(self.id):
            return check_workflow_id(self.id(*arguments.args, **arguments.kwargs))
        return check_workflow_id(self.id.format_map(arguments.arguments))

    @contextmanager
    def running(self, *positional: Any, **named: Any) -> Iterator[DurableRun]:
        """Have the run of a call meanwhile, and record how it ends."""
        arguments = inspect.signature(self.function).bind(*positional, **named)
        arguments.apply_defaults()
        workflow_id = self.named(arguments)
        with opened(self.store, self.app, configured=Config.for_runs) as service:
            recording = service.recording
            over = recording.ended(workflow_id)
            if over is None:
                with taken(recording, workflow_id, self.lease_seconds) as claim:
                    # Whoever had it before may have brought it to its end meanwhile.
                    over = recording.ended(workflow_id)
                    if over is None:
                        run = self._begun(recording, workflow_id, arguments.arguments, claim)
                        yield from _watched(run)
                        return
            yield self._told(recording, over, arguments.arguments)

    def _begun(
        self, recording: Recording, workflow_id: str, arguments: Mapping[str, Any], claim: Claim
    ) -> DurableRun:
        """Begin a run, or go on with one that exists."""
        state = brought_back(recording, workflow_id)
        if state is not None:
            self._check(state, arguments)
            journal = Journal(recording, workflow_id, state.to_fields())
            journal.note(Fact(RUN_UPDATED, {"fields": {"status": "in_progress"}}, RUN))
            return DurableRun(journal, claim, self.types)
        state = WorkflowState(workflow_id=workflow_id, started_at=recording.now())
        known = {
            "context": {"inputs": storable(arguments, self.types)},
            "metadata": {"function": self.name, "given": digest_of(arguments, self.types)},
        }
        journal = Journal(recording, workflow_id, state.to_fields())
        # In the journal too: a run whose checkpoints are all damaged can be begun anew from there.
        journal.note(Fact(RUN_UPDATED, {"fields": known}, RUN))
        journal.begin(Save("started", {"type": CheckpointType.WORKFLOW_START}))
        return DurableRun(journal, claim, self.types)

    def _told(self, recording: Recording, over: WorkflowState, arguments: Mapping[str, Any]) -> DurableRun:
        """Tell of a run that ended before."""
        self._check(over, arguments)
        run = DurableRun(Journal(recording, over.workflow_id, over.to_fields()), Claim(), self.types)
        run.is_over, run.result = True, next(iter(over.outputs), None)
        return run

    def _check(self, state: WorkflowState, arguments: Mapping[str, Any]) -> None:
        """Make sure that a run that exists is of this function, and for these arguments."""
        known = state.metadata
        if known.get("function") != self.name:
            raise GraphChangedError(
                f"the id belongs to {known.get('function') or 'a workflow of another kind'!r},"
                f" and not to the function {self.name!r}",
                place=state.workflow_id,
                hint="Give the run another id; a function that was renamed its old name: durable(name=...).",
            )
        if known.get("given") != digest_of(arguments, self.types):
            raise GraphChangedError(
                "the run was begun with other arguments",
                place=state.workflow_id,
                hint="Let the id tell the calls apart, for example id='report-{topic}'.",
            )


def _watched(run: DurableRun) -> Iterator[DurableRun]:
    try:
        yield run
        run.complete()
    except BaseException as fault:
        run.fail(fault)
        raise
    finally:
        run.close()


def durable(
    store: StoreLike,
    *,
    id: RunName | None = None,
    name: str | None = None,
    app: App | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> Callable[[Callable[_Given, _Answer]], Callable[_Given, _Answer]]:
    """Let a function survive its process: a call under an id that was interrupted goes on where it was.

    Whatever the function calls that is a `step` is done once: its result is recorded, and the next call under
    the id has it without doing it again. A call under an id that is over answers what came of it.

    Args:
        store: a URL, or an open service.
        id: names the run: a text in which `{topic}` stands for the argument of that name, or a function of
            the arguments; by default the function's name, if it takes no arguments.
        name: what the function is called in the store; by default its own name.
        app: types that arguments and results hold, for a store that is opened here.
        lease_seconds: how long others wait at most once this machine is gone.

    Raises:
        DeclarationError: the function has arguments and the runs no id, or it is a generator.
        LeaseHeldError: of a call: the id is being run elsewhere.
        GraphChangedError: of a call: the id was begun by another function, or with other arguments.
        ResultLostError: of a call: it came to its end, and what it recorded is kept nowhere; the error has
            the answer.
    """

    def decorate(function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
        called = _name_of(function, name)
        _check_id(id, called, list(inspect.signature(function).parameters))
        return _runner(_Durable(function, store, id or called, called, app, lease_seconds))

    return decorate


def _check_id(id: RunName | None, called: str, names: list[str]) -> None:
    """Refuse a function of which nobody could say which calls are the same run."""
    if id is None and names:
        raise DeclarationError(
            "the function has arguments, and nothing says which calls are the same run",
            place=called,
            hint=f"Say so by the id, for example id='{called}-{{{names[0]}}}'.",
        )
    used = (
        [field for _, field, _, _ in Formatter().parse(id) if field is not None]
        if isinstance(id, str)
        else []
    )
    unknown = [field for field in used if re.split(r"[.\[]", field)[0] not in names]
    if unknown:
        raise DeclarationError(
            f"the id names {unknown[0]!r}, which is no argument of the function",
            place=called,
            hint=f"Its arguments are: {', '.join(names) or 'none'}.",
        )


def _runner(declared: _Durable) -> Callable[..., Any]:
    function = declared.function

    @functools.wraps(function)
    def run_sync(*positional: Any, **named: Any) -> Any:
        with declared.running(*positional, **named) as run:
            if not run.is_over:
                with run.entered():
                    run.result = function(*positional, **named)
        # A store that was opened here is closed by now: what waited was tried once more.
        return run.answer()

    @functools.wraps(function)
    async def run_async(*positional: Any, **named: Any) -> Any:
        async with aside(declared.running(*positional, **named)) as run:
            if not run.is_over:
                with run.entered():
                    run.result = await function(*positional, **named)
        # A store that was opened here is closed by now: what waited was tried once more.
        return run.answer()

    return run_async if _is_async(function) else run_sync


@overload
def step(function: Callable[_Given, _Answer], /) -> Callable[_Given, _Answer]: ...


@overload
def step(
    function: None = ...,
    /,
    *,
    name: str | None = ...,
    key: Callable[..., str] | None = ...,
    retry: Retry | None = ...,
) -> Callable[[Callable[_Given, _Answer]], Callable[_Given, _Answer]]: ...


def step(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    key: Callable[..., str] | None = None,
    retry: Retry | None = None,
) -> Any:
    """Let a function be a step of durable ones: what it answers there is recorded, and never computed again.

    Called outside of a durable function it is what it was. A step is known by its name and, among calls of
    one name, by what it is given.

    Args:
        function: sync or async; what it answers has to be something that can be stored.
        name: what the step is called; by default the function's name.
        key: given the arguments, answers what tells this call from others of the name: for arguments that
            differ from run to run.
        retry: how often it is tried.
    """
    if function is None:
        return lambda decorated: _stepping(_spec(decorated, name, key, retry))
    return _stepping(_spec(function, name, key, retry))


def _spec(
    function: Callable[..., Any], name: str | None, key: Callable[..., str] | None, retry: Retry | None
) -> StepSpec:
    return StepSpec(_name_of(function, name), function, _is_async(function), key, retry or Retry())


def _stepping(spec: StepSpec) -> Callable[..., Any]:
    @functools.wraps(spec.function)
    def take_sync(*positional: Any, **named: Any) -> Any:
        scope = current()
        if scope is None:
            return spec.function(*positional, **named)
        return scope.run.driver.drive(scope.run.take(spec, scope, positional, named))

    @functools.wraps(spec.function)
    async def take_async(*positional: Any, **named: Any) -> Any:
        scope = current()
        if scope is None:
            return await spec.function(*positional, **named)
        return await scope.run.driver.drive_async(scope.run.take(spec, scope, positional, named))

    return take_async if spec.is_async else take_sync


def _name_of(function: Callable[..., Any], name: str | None) -> str:
    called = name or getattr(function, "__name__", "")
    if not called or called == "<lambda>":
        raise DeclarationError(
            "the function has no name to be found again by", place=repr(function), hint="Give it name='...'."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(
            "a generator is called once and goes on many times, and cannot be recorded",
            place=called,
            hint="Let it answer a list, or make a step of what it does for each item.",
        )
    return check_name("function", called)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
