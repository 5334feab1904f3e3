"""One call of a durable function: which steps it has taken, and which of them are known already."""

from __future__ import annotations

import asyncio
import copy
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import AttemptOverError, GraphChangedError, LeaseLostError, ResultLostError
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_STARTED, RUN_UPDATED
from holdfast.execution.claim import Claim
from holdfast.execution.driving import Asking, Call, Driver
from holdfast.execution.faults import said, shown
from holdfast.execution.given import digest_of, numbered
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.outcome import RunStatus
from holdfast.execution.plan import Retry
from holdfast.execution.results import step_name
from holdfast.execution.run_spans import run_span
from holdfast.execution.running import RUN

#: So many results are recovered one by one at most.
_STEPS_PER_CHECKPOINT = 100
_ERROR_CHARS = 2_000
_REPEATED = re.compile(r"#(\d+)\Z")


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step as it was declared."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    key: Callable[..., str] | None = None
    retry: Retry = field(default_factory=Retry)


@dataclass(frozen=True, slots=True)
class Slot:
    """One step of a run: its name, what it was given, and its result if that is known."""

    step_id: str
    given: str | None
    known: Mapping[str, Any] | None = None
    #: The step that took it.
    parent_id: str | None = None


@dataclass(slots=True)
class Scope:
    """Where a step is taken: in the function itself, or inside of another step."""

    run: DurableRun
    prefix: str = ""
    #: How often each name was called so far.
    calls: dict[str, int] = field(default_factory=dict)
    #: Where the step around this one was taken, and what its start says until that is recorded.
    outer: Scope | None = None
    start: Fact | None = None
    #: Whether the attempt around it failed, and another one is made.
    is_over: bool = False


class DurableRun:
    """A call of a durable function. Safe to use from several threads.

    Attributes:
        result: what the function answered.
        is_over: whether that was known before, and nothing is left to do.
    """

    def __init__(self, journal: Journal, claim: Claim, types: TypeRegistry) -> None:
        self.result: Any = None
        self.is_over = False
        #: Carries out what steps ask for, in their thread or on their loop.
        self.driver = Driver(journal, None)
        self._journal = journal
        self._claim = claim
        self._is_open = True
        self._types = types
        self._mutex = threading.Lock()
        #: What earlier processes and attempts recorded, by step, until it is asked for.
        self._recorded: dict[str, Mapping[str, Any]] = {}
        #: Every step that has a result or is under way, and those of them that are at work here.
        self._used: set[str] = set()
        self._at_work: set[str] = set()
        #: What each of these was given: one that failed is known by it in the next attempt.
        self._given: dict[str, str] = {}
        #: The steps of one name that were given the same, in their order.
        self._alike: dict[tuple[str, str], list[str]] = {}
        self._take_in("")
        self._since_checkpoint = 0

    def _take_in(self, prefix: str) -> None:
        """Have all that is recorded below a prefix be found again, in order, by whoever calls it next."""
        # Before the state is read: what ends in between is in the state, and at work too.
        at_work = {step_id for step_id in self._at_work if step_id.startswith(prefix)}
        fields = self._journal.fields
        recorded = {task["id"]: task for task in fields.get("tasks", ()) if _is_result(task, prefix)}
        #: Those that were begun and have none: results of steps inside of them are theirs.
        begun = {
            step_id: known
            for step_id, known in _begun(fields)
            if step_id.startswith(prefix) and step_id not in recorded
        }
        at_work -= recorded.keys()
        begun |= {
            step_id: {"given": given}
            for step_id, given in self._given.items()
            if step_id.startswith(prefix) and step_id not in recorded
        }
        self._recorded |= recorded
        self._used = {step_id for step_id in self._used if not step_id.startswith(prefix)}
        self._used |= {*recorded, *begun, *at_work}
        self._alike = {key: steps for key, steps in self._alike.items() if not key[0].startswith(prefix)}
        for step_id, known in sorted((recorded | begun).items(), key=lambda one: _occurrence(one[0])):
            if step_id not in at_work:
                self._alike.setdefault((_base(step_id), known.get("given", "")), []).append(step_id)

    def slot(
        self, spec: StepSpec, scope: Scope, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Slot:
        """Find out which step a call is.

        Raises:
            GraphChangedError: the function does not call its steps as it did.
            LeaseLostError: somebody else has the run now.
            AttemptOverError: the attempt that calls it, or the function, has ended.
        """
        self._check()
        key = None if spec.key is None else str(spec.key(*positional, **named))
        given = digest_of(numbered(positional, named), self._types) if key is None else None
        called = step_name(spec.name, key)
        with self._mutex:
            self._check_attempts(scope)
            number = scope.calls[called] = scope.calls.get(called, 0) + 1
            if given is None:
                return self._claimed(scope.prefix, scope.prefix + step_name(spec.name, key, number), None)
            return self._matched(spec.name, scope.prefix, number, given)

    def _matched(self, name: str, prefix: str, number: int, given: str) -> Slot:
        """Find the result that was recorded for the same arguments, wherever in the order it stands."""
        alike = self._alike.get((prefix + name, given))
        if alike:
            return self._claimed(prefix, alike.pop(0), given)
        step_id = prefix + step_name(name, None, number)
        if step_id in self._recorded:
            raise GraphChangedError(
                f"the step {step_id!r} has a result for other arguments",
                place=self._journal.workflow_id,
                hint="Make what differs from run to run (the time, chance, what is read outside) a step too,"
                " or say what a call is known by: @holdfast.step(key=...).",
            )
        while step_id in self._used:
            number += 1
            step_id = prefix + step_name(name, None, number)
        return self._claimed(prefix, step_id, given)

    def _claimed(self, prefix: str, step_id: str, given: str | None) -> Slot:
        self._used.add(step_id)
        known = self._recorded.pop(step_id, None)
        if known is None:
            self._at_work.add(step_id)
            if given is not None:
                self._given[step_id] = given
        return Slot(step_id, given, known, prefix.removesuffix(">") or None)

    def take(
        self, spec: StepSpec, scope: Scope, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> Asking:
        """Answer the result of a step: the known one, or what the function answers, once that is durable."""
        slot = self.slot(spec, scope, positional, named)
        if slot.known is not None:
            return copy.deepcopy(slot.known["result"])
        try:
            return (yield from self._tried(spec, scope, slot, positional, named))
        finally:
            with self._mutex:
                self._at_work.discard(slot.step_id)

    def _tried(
        self, spec: StepSpec, scope: Scope, slot: Slot, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> Asking:
        """Answer what a step answers in the first attempt that does not fail, once that is durable."""
        attempt = 0
        while True:
            attempt, began = attempt + 1, time.monotonic()
            inner = Scope(self, f"{slot.step_id}>", outer=scope, start=_started(spec, slot, attempt))
            token = _SCOPE.set(inner)
            try:
                result = yield Call(spec.function, positional, tuple(named.items()))
            except Exception as fault:
                if self._claim.is_lost or self._journal.tells_loss(fault):
                    raise
                message = self._journal.hidden(said(fault), _ERROR_CHARS)
                self._journal.note(_failed(spec, slot, attempt, type(fault), message))
                if not spec.retry.is_worth(fault, attempt):
                    raise
            else:
                # Steps that it left behind at work begin it no more.
                inner.start = None
                yield self._commit(spec, scope, _completed(spec, slot, attempt, result, began))
                return result
            finally:
                _SCOPE.reset(token)
            with self._mutex:
                inner.is_over = True
            pause = asyncio.sleep if spec.is_async else time.sleep
            yield Call(pause, (spec.retry.pause_seconds(attempt),))
            if inner.calls:
                # The next attempt is to find what this one has recorded, as the next process would.
                with self._mutex:
                    self._take_in(inner.prefix)

    def complete(self) -> None:
        """Record the result, and that the run is over."""
        fields = {"status": str(RunStatus.COMPLETED), "resumable": False, "outputs": [self.result]}
        save = Save("completed", {"type": CheckpointType.WORKFLOW_COMPLETE})
        made = self._journal.commit(Fact(RUN_UPDATED, {"fields": fields}, RUN), save)
        if made is not None:
            self._journal.recording.mark(made)

    def fail(self, fault: BaseException) -> None:
        """Record what ended the run, which can be called again."""
        if self._claim.is_lost or self._journal.tells_loss(fault):
            return
        told = self._journal.hidden(shown(fault), _ERROR_CHARS)
        has_failed = isinstance(fault, Exception)
        status = RunStatus.FAILED if has_failed else RunStatus.STOPPED
        kind = CheckpointType.ERROR_STATE if has_failed else CheckpointType.STAGE_START
        fact = Fact(RUN_UPDATED, {"fields": {"status": str(status)}, "error": told}, RUN)
        made = self._journal.commit(fact, Save(str(status), {"type": kind}))
        if made is not None and has_failed:
            self._journal.recording.mark(made, told)

    def answer(self) -> Any:
        """Answer what the function did, unless something that the run recorded is kept nowhere.

        Raises:
            ResultLostError: so it is; the error has the answer.
        """
        journal = self._journal
        lost = journal.lost or journal.recording.unwritten(journal.workflow_id)
        if lost.is_lost:
            raise ResultLostError(lost.message, place=journal.workflow_id, hint=lost.hint, result=self.result)
        return self.result

    def close(self) -> None:
        """Let nothing more be recorded: what the function left behind at work is nobody's."""
        self._is_open = False

    def _check(self) -> None:
        place = self._journal.workflow_id
        if self._claim.is_lost:
            raise LeaseLostError(
                "somebody else runs it now, and nothing more is done here",
                place=place,
                hint="Wait for its outcome.",
            )
        if not self._is_open:
            raise AttemptOverError(
                "the durable function has ended, and a step of it goes on",
                place=place,
                hint="Await, or join, all that the function starts.",
            )

    def _check_attempts(self, scope: Scope) -> None:
        """Refuse what is left behind of an attempt: it would take what is recorded from the one after it."""
        place: Scope | None = scope
        while place is not None:
            if place.is_over:
                raise AttemptOverError(
                    "the attempt of a step has failed and is made again, and something of it goes on",
                    place=f"{self._journal.workflow_id} {place.prefix.removesuffix('>')}",
                    hint="Await, or join, all that the step starts, also where it fails.",
                )
            place = place.outer

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Let steps that are called from here belong to this run."""
        token = _SCOPE.set(Scope(self))
        try:
            with self._spanned():
                yield
        finally:
            _SCOPE.reset(token)

    @contextmanager
    def _spanned(self) -> Iterator[None]:
        """Be on the time line of a trace meanwhile, and remember where for whoever goes on with the run."""
        journal = self._journal
        metadata = journal.fields.get("metadata", {})
        name = str(metadata.get("function", journal.workflow_id))
        with run_span(journal.recording.tracing, name, journal.workflow_id) as span:
            known = span.remembered(metadata)
            if known != metadata:
                journal.note(Fact(RUN_UPDATED, {"fields": {"metadata": known}}, RUN))
            yield

    def _commit(self, spec: StepSpec, scope: Scope, fact: Fact) -> Call:
        """Make what records a result durable where the step runs: in this thread, or beside the loop."""
        self._check()
        self._note_starts(scope)
        self._since_checkpoint += 1
        items: tuple[Fact | Save, ...] = (fact,)
        if self._since_checkpoint >= _STEPS_PER_CHECKPOINT:
            self._since_checkpoint = 0
            items = (fact, Save("many steps"))
        if spec.is_async:
            return Call(asyncio.to_thread, (self._journal.commit, *items))
        return Call(self._journal.commit, items)

    def _note_starts(self, scope: Scope) -> None:
        """Say what the steps around a step were given: what is inside of them is found by that."""
        place: Scope | None = scope
        # Held until they are said: no result from another thread shall be recorded before.
        with self._mutex:
            while place is not None:
                start, place.start, place = place.start, None, place.outer
                if start is not None:
                    self._journal.note(start)


def _started(spec: StepSpec, slot: Slot, attempt: int) -> Fact | None:
    """Tell what a step was given; one with a key is found by that."""
    if slot.given is None:
        return None
    return _fact(AGENT_STARTED, {"attempt": attempt, "given": slot.given}, spec, slot)


def _completed(spec: StepSpec, slot: Slot, attempt: int, result: Any, began: float) -> Fact:
    data = {"attempt": attempt, "result": result, "duration_seconds": round(time.monotonic() - began, 6)}
    if slot.given is not None:
        data["given"] = slot.given
    return _fact(AGENT_COMPLETED, data, spec, slot)


def _failed(spec: StepSpec, slot: Slot, attempt: int, kind: type[Exception], message: str) -> Fact:
    error = {"type": kind.__name__, "message": message}
    return _fact(AGENT_FAILED, {"attempt": attempt, "error": error}, spec, slot)


def _fact(kind: str, data: Mapping[str, Any], spec: StepSpec, slot: Slot) -> Fact:
    return Fact(kind, data, slot.step_id, spec.name, parent_id=slot.parent_id)


def _is_result(task: Any, prefix: str) -> bool:
    # An application may have tasks of its own in the state.
    is_ours = isinstance(task, Mapping) and {"id", "result"} <= task.keys()
    return is_ours and isinstance(task["id"], str) and task["id"].startswith(prefix)


def _begun(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tell the steps of which it was recorded what they were given; journals of before do not say."""
    states = fields.get("agent_states")
    for step_id, known in states.items() if isinstance(states, Mapping) else ():
        # An application may have states of its own there.
        if isinstance(step_id, str) and isinstance(known, Mapping) and isinstance(known.get("given"), str):
            yield step_id, known


def _base(step_id: str) -> str:
    return _REPEATED.sub("", step_id)


def _occurrence(step_id: str) -> int:
    found = _REPEATED.search(step_id)
    return int(found[1]) if found else 1


_SCOPE: ContextVar[Scope | None] = ContextVar("holdfast_durable", default=None)


def current() -> Scope | None:
    """Answer where a step is taken that is called now; None: in no durable function."""
    return _SCOPE.get()
