"""What a run does while a worker has one of its steps: look that it lives, and take in what it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.event import Event
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_STARTED, APPROVAL_REQUESTED
from holdfast.execution.approvals import Approval
from holdfast.execution.context import Context
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.portable import RemoteAgentError
from holdfast.execution.frame import Surroundings
from holdfast.execution.journal import Fact, Journal
from holdfast.execution.remote.child import Child, Look
from holdfast.execution.remote.errand import Ending, Outcome

#: What a worker records that belongs into the journal of the run as it is.
_FORWARDED = frozenset({DECISION_EVENT, REPORT_EVENT, APPROVAL_REQUESTED})
#: What of the state of its step does.
_SHOWN = frozenset({"progress", "doing", "blockers"})


class ChildWatch:
    """Follows the journal of one step that is worked on elsewhere."""

    def __init__(self, child: Child, journal: Journal, around: Surroundings, context: Context) -> None:
        self._child = child
        self._journal = journal
        self._around = around
        self._context = context
        self._seen = 0
        #: Up to which event of the child everything is in the journal of the run.
        self._forwarded: int = journal.agent_state(child.step_id).get("forwarded", 0)
        self._is_begun = False
        self._asks: list[str] = []
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._left_at: float | None = None
        self._outcome: Outcome | None = None

    @property
    def answering(self) -> set[asyncio.Task[None]]:
        """Questions of the worker that somebody has to answer."""
        return set(self._answering.values())

    @property
    def is_left(self) -> bool:
        """Whether nobody had the step when it was last looked at."""
        return self._left_at is not None

    async def look(self) -> None:
        """Look once.

        Raises:
            WorkerLostError: the worker is gone, or was silent for too long.
            Suspended: it asks something, and the run does not wait for answers.
        """
        found = await asyncio.to_thread(self._child.look)
        await self.catch_up(found)
        self._answer()
        if self._is_begun and is_lost(found):
            raise WorkerLostError(f"whoever worked on {self._child.id} is gone")
        if not self._is_begun:
            # To wait for a worker is no silence of the agent.
            self._context.heartbeat()
        if found.is_held:
            self._left_at = None
        elif self._left_at is None:
            self._left_at = time.monotonic()

    async def catch_up(self, found: Look | None = None) -> None:
        """Take in what was recorded since the last look."""
        if found is None or found.event_seq > self._seen:
            events = await asyncio.to_thread(self._child.events, self._seen)
            await self._take_in(events)

    def outcome(self, patience: Mapping[Ending, float]) -> Outcome | None:
        """Tell how it went, by the journal alone, once the worker has left it for so many seconds."""
        if self._outcome is None or self._left_at is None:
            return None
        left_seconds = time.monotonic() - self._left_at
        return self._outcome if left_seconds >= patience[self._outcome.ending] else None

    def close(self) -> None:
        """Wait for no answers any more."""
        for task in self._answering.values():
            task.cancel()

    async def _take_in(self, events: Sequence[Event]) -> None:
        for event in events:
            # Branches that the agent confirmed are steps of their own.
            if event.step_id == self._child.step_id:
                self._follow(event)
        new = [event for event in events if event.seq > self._forwarded]
        facts = [fact for event in new for fact in _facts(event)]
        if events:
            self._seen = events[-1].seq
            self._context.heartbeat()
        if not facts:
            return
        self._forwarded = self._seen
        # Behind what it speaks of: after a crash something may be told twice, and nothing is left out.
        state = {"state": {"forwarded": self._forwarded}}
        mark = Fact(AGENT_STATE_EVENT, state, self._child.step_id, self._child.step_id)
        await self._journal.commit_async(*facts, mark)
        for event in new:
            self._tell(event)

    def _follow(self, event: Event) -> None:
        """Keep track of the attempt: begun, done, failed, and what it asks."""
        if event.type == AGENT_STARTED:
            self._is_begun, self._outcome = False, None
            self._asks.clear()
        elif event.type == AGENT_COMPLETED:
            self._outcome = Outcome(Ending.DONE)
        elif event.type == AGENT_FAILED:
            told = event.data.get("error", {})
            text = f"{told.get('type')}: {told.get('message')}"
            self._outcome = Outcome(Ending.FAILED, text, RemoteAgentError(text))
        elif event.type == AGENT_STATE_EVENT:
            state = event.data["state"]
            self._is_begun = self._is_begun or "begun" in state
            if "asks" in state:
                self._asks.append(state["asks"])

    def _answer(self) -> None:
        """Look after the questions of the worker; raises what became of those that are settled."""
        for name in self._asks:
            if name not in self._answering:
                self._answering[name] = asyncio.ensure_future(self._answered(name))
        for task in self._answering.values():
            if task.done():
                task.result()

    async def _answered(self, name: str) -> None:
        step_id = self._child.step_id
        known = self._journal.agent_state(step_id).get("approvals", {}).get(name, {})
        approval = Approval.of(known)
        if approval is None:
            question = known.get("question")
            self._journal.tell("approval_requested", step_id=step_id, name=name, question=question)
            approval = await self._around.answer(step_id, name)
        await asyncio.to_thread(self._child.answer, name, approval)

    def _tell(self, event: Event) -> None:
        """Tell subscribers of the run what the worker's own has nobody to tell."""
        state: Mapping[str, Any] = event.data["state"] if event.type == AGENT_STATE_EVENT else {}
        step_id = self._child.step_id
        if "progress" in state:
            share, note = state["progress"], state.get("doing")
            agent = self._context.agent
            self._journal.tell("agent_progress", step_id=step_id, agent=agent, share=share, note=note)
        if "blockers" in state:
            reason = next(iter(state["blockers"]), None)
            self._journal.tell("agent_blocked", step_id=step_id, reason=reason)


def is_lost(found: Look) -> bool:
    """Tell whether whoever has a child is gone: its lease has expired, or its process ended."""
    return found.is_gone


def _facts(event: Event) -> list[Fact]:
    """Put an event of a child into words for the journal of the run."""
    if event.step_id is None:
        return []
    if event.type in _FORWARDED:
        return [Fact(event.type, event.data, event.step_id, event.agent)]
    if event.type != AGENT_STATE_EVENT:
        return []
    shown = {name: value for name, value in event.data["state"].items() if name in _SHOWN}
    return [Fact(event.type, {"state": shown}, event.step_id, event.agent)] if shown else []
