"""One piece of code, two ways to wait: what an agent asks for is a generator, driven in a thread or a loop.

It yields what has to happen before it can go on, and is sent the outcome.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.execution.engines.threads import waiting
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.stopping import Unwinding


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the application, sync or async, to be called where the agent runs."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()

    def begin(self) -> Any:
        """Call it; a coroutine is only begun."""
        return self.function(*self.arguments, **dict(self.keywords))


@dataclass(frozen=True, slots=True)
class OnLoop:
    """Something that has to be awaited on the loop of the run."""

    start: Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Together:
    """Facts and checkpoints that become durable in one commit."""

    items: tuple[Fact | Save, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that nobody waits for: it goes with the next commit."""

    fact: Fact


class Ends(Protocol):
    """What an agent at work has in hand."""

    def end(self) -> None:
        """Let the attempt be over."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An agent at work: called in this thread, or awaited on the loop of the run."""

    context: Ends
    call: Callable[[], Any]
    start: Callable[[], Awaitable[Any]]


Need = Fact | Save | Together | Note | Call | OnLoop | Attempt
Asking = Generator[Need, Any, Any]


class Drives(Protocol):
    """Carries out what an agent asks for."""

    def drive(self, asking: Asking) -> Any:
        """Carry out in this thread."""

    async def drive_async(self, asking: Asking) -> Any:
        """Carry out on the loop."""

    def end(self) -> None:
        """Let nothing go on for whoever asked: nobody waits for it any more."""


class _Talk:
    """One asking on its way: what it needs next, and what came of that, an error included."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._fault: BaseException | None = None
        #: What the asking was told last of those that Python lets out of no generator.
        self._stop: StopIteration | None = None
        self.answer: Any = None
        #: What the asking came to, once it needs nothing more.
        self.result: Any = None

    def need(self) -> Need | None:
        """Tell how the last need was met, and answer the next one; None: it is over."""
        stop = self._stop
        (answer, self.answer), (fault, self._fault) = (self.answer, None), (self._fault, None)
        try:
            return self._asking.send(answer) if fault is None else self._asking.throw(fault)
        except StopIteration as over:
            self.result = over.value
            return None
        except RuntimeError as instead:
            # A generator that lets it out raises this instead (PEP 479); whoever called gets what was raised.
            if stop is None or instead.__cause__ is not stop:
                raise
        raise stop

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> bool:
        self._fault = fault
        if isinstance(fault, StopIteration):
            self._stop = fault
        return True


class _Handed:
    """Something that a thread waits for, and the loop works on."""

    __slots__ = ("future", "loop", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.future: Future[Any] | None = None
        #: Once it has begun: its thread may be slow to hear of it.
        self.task: asyncio.Task[Any] | None = None

    def end(self) -> None:
        """Let it not go on; once, for what it cleans up meanwhile is not to be disturbed."""
        if self.task is not None:
            self.loop.call_soon_threadsafe(self.task.cancel)
        elif self.future is not None:
            self.future.cancel()


class Driver:
    """Carries out what agents ask for, for one journal."""

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop | None) -> None:
        self._journal = journal
        self._loop = loop
        self._handed: set[_Handed] = set()
        self._is_over = False

    def end(self) -> None:
        """Let nothing go on for threads that nobody waits for any more."""
        self._is_over = True
        for handed in tuple(self._handed):
            handed.end()

    def drive(self, asking: Asking) -> Any:
        """Carry out in this thread, waiting for each need."""
        talk = _Talk(asking)
        while (need := talk.need()) is not None:
            with talk:
                talk.answer = self._met(need)
        return talk.result

    async def drive_async(self, asking: Asking) -> Any:
        """Carry out as `drive` does, on the loop."""
        talk = _Talk(asking)
        while (need := talk.need()) is not None:
            with talk:
                talk.answer = await self._met_async(need)
        return talk.result

    def _met(self, need: Need) -> Any:
        if isinstance(need, Call):
            answer = need.begin()
            return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer
        if isinstance(need, OnLoop):
            if self._loop is None:
                return asyncio.run(_awaited(need.start()))
            return self._handed_over(need, self._loop)
        if isinstance(need, Attempt):
            return need.call()
        if isinstance(need, Note):
            return self._journal.note(need.fact)
        return self._journal.commit(*_items(need))

    def _handed_over(self, need: OnLoop, loop: asyncio.AbstractEventLoop) -> Any:
        # Known before it can begin: whoever ends all this may come before the next line.
        handed = _Handed(loop)
        self._handed.add(handed)
        future = handed.future = asyncio.run_coroutine_threadsafe(self._started(need, handed), loop)
        if self._is_over and handed.task is None:
            future.cancel()
        try:
            with waiting():
                return future.result()
        finally:
            self._handed.discard(handed)

    async def _started(self, need: OnLoop, handed: _Handed) -> Any:
        if self._is_over:
            raise asyncio.CancelledError
        handed.task = asyncio.current_task()
        return await need.start()

    async def _met_async(self, need: Need) -> Any:
        if isinstance(need, Call):
            answer = need.begin()
            return await answer if inspect.isawaitable(answer) else answer
        if isinstance(need, OnLoop | Attempt):
            return await need.start()
        if isinstance(need, Note):
            return self._journal.note(need.fact)
        return await self._journal.commit_async(*_items(need))


class Abandoned(Unwinding):
    """Unwinds a row that nobody waits for any more; no Exception, so that no step takes it for its own."""


class RowDriver(Driver):
    """Carries out what the steps of one row ask for, in the thread of that row.

    Once it has ended, no agent begins and nothing is recorded: what the run then says of its end comes last.
    """

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(journal, loop)
        #: Held while something is begun or recorded: whoever ends the row is before it, or after.
        self._mutex = threading.Lock()
        self._at_work: Ends | None = None

    def end(self) -> None:
        """Let nothing more begin, and the agent that is at work leave no trace."""
        with self._mutex:
            super().end()
            at_work = self._at_work
        if at_work is not None:
            at_work.end()

    def _met(self, need: Need) -> Any:
        if isinstance(need, Attempt):
            with self._mutex:
                self._check()
                self._at_work = need.context
            return need.call()
        if isinstance(need, Call | OnLoop):
            return super()._met(need)
        with self._mutex:
            self._check()
            if isinstance(need, Note):
                return self._journal.note(need.fact)
            commit = self._journal.queued(*_items(need))
        return self._journal.settled(commit)

    def _check(self) -> None:
        if self._is_over:
            raise Abandoned


def one(need: Need) -> Asking:
    """Ask for one thing, and answer what came of it."""
    return (yield need)


def nothing() -> Asking:
    """Ask for nothing."""
    yield from ()


def _items(need: Fact | Save | Together) -> tuple[Fact | Save, ...]:
    return need.items if isinstance(need, Together) else (need,)


def _awaited(answer: Awaitable[Any]) -> Coroutine[Any, Any, Any]:
    async def wait() -> Any:
        return await answer

    return wait()
