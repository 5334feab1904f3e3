"""`Context`: everything an agent asks of Holdfast while it works.

Calls that record something durable wait for it: a plain agent just calls them, an async one awaits what they
answer. Everything else is kept and goes with the next commit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.application.commands import CheckpointOptions
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import AttemptOverError, InvalidStateError
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT, check_confidence
from holdfast.domain.run_events import MILESTONE_REACHED, added
from holdfast.execution.approvals import Approval, Question, ask
from holdfast.execution.checks import check_remembered, check_share, name_of, policy_of
from holdfast.execution.driving import Asking, Drives, OnLoop, Together, nothing, one
from holdfast.execution.effects import UNSURE, Effect, Unknown, perform
from holdfast.execution.frame import Frame, Milestone, Notes, Quiet, Spawned, Surroundings
from holdfast.execution.given import digest_of, numbered
from holdfast.execution.journal import Fact, Pad, Save
from holdfast.execution.naming import Names
from holdfast.execution.promises import Promise
from holdfast.execution.speculation import Draft, Refusing, speculate
from holdfast.execution.triggers import Trigger

#: So often at most is progress recorded; subscribers hear of each.
_PROGRESS_SECONDS = 1.0
Function = Callable[..., Any]


class Context:
    """What an agent has in hand."""

    def __init__(self, frame: Frame, journal: Pad, around: Surroundings, driver: Drives, *, is_async: bool):
        self._frame = frame
        self._journal = journal
        self._around = around
        self._driver = driver
        self._is_async = is_async
        self._is_over = False
        #: How many answers and spawned agents it waits for, and which of those are at work.
        self._waits = 0
        self.children: list[Quiet] = []
        self._names = Names(f"{journal.workflow_id} {frame.step_id}")
        self._progress_at = 0.0
        self._beat_at = time.monotonic()
        self.notes = Notes()
        #: What an async agent has to await.
        self.promises: list[Promise] = []

    # -- what it was given -------------------------------------------------------------------

    @property
    def workflow_id(self) -> str:
        """The run."""
        return self._journal.workflow_id

    @property
    def step_id(self) -> str:
        """This step of it: the agent's name, with its item and its repetition."""
        return self._frame.step_id

    @property
    def parent_id(self) -> str | None:
        """The step this one comes from: who spawned it, or the one it comes after, if that is one."""
        return self._frame.parent_id

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._frame.agent

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1 on; those that a crash ended count."""
        return self._frame.attempt

    @property
    def iteration(self) -> int:
        """Which round of its loop this is, from 1 on."""
        return self._frame.iteration

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        """What the evaluator said in the rounds before: `iteration`, `evaluation`."""
        return copy.deepcopy(self._frame.history)

    @property
    def feedback(self) -> Any:
        """What the evaluator said in the round before; None in the first."""
        return copy.deepcopy(self._frame.history[-1]["evaluation"]) if self._frame.history else None

    @property
    def item(self) -> Any:
        """The item that the agent is run for."""
        return copy.deepcopy(self._frame.item)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was given."""
        return copy.deepcopy(self._around.inputs)

    @property
    def config(self) -> Mapping[str, Any]:
        """What the options of the run told its agents."""
        return copy.deepcopy(self._around.config)

    @property
    def shared(self) -> Mapping[str, Any]:
        """What agents have remembered with `remember`."""
        return copy.deepcopy(self._journal.fields.get("context", {}))

    def result(self, name: str) -> Any:
        """Answer what an agent before this one answered, None if it was skipped: a copy, yours to change.

        Raises:
            InvalidStateError: it has not run.
        """
        return copy.deepcopy(self._around.result(name))

    @property
    def resumed_from(self) -> Milestone | None:
        """The last milestone of an attempt that was interrupted; None where there is none."""
        known = self._journal.agent_state(self.step_id).get("milestone")
        if known is None:
            return None
        return Milestone(known["name"], copy.deepcopy(known["state"]), copy.deepcopy(known.get("partial")))

    # -- what it says, with the next commit --------------------------------------------------

    def decide(
        self,
        description: str,
        rationale: str | None = None,
        confidence: float | None = None,
        alternatives: Iterable[str] = (),
    ) -> None:
        """Record a decision, in the journal and in the trail."""
        check_confidence(confidence, self.step_id)
        told = {"description": description, "rationale": rationale, "confidence": confidence}
        data = {name: value for name, value in told.items() if value is not None}
        options = list(alternatives)
        self._note(DECISION_EVENT, {**data, "alternatives": options} if options else data)

    def output(self, value: Any, name: str | None = None) -> None:
        """Add to the outputs of the workflow."""
        self._check()
        self.notes.outputs.append(
            value if name is None else {"name": name, "agent": self.step_id, "value": value}
        )

    def message(self, content: Any, role: str = "agent") -> None:
        """Add to the messages of the workflow."""
        self._check()
        self.notes.messages.append({"role": role, "agent": self.step_id, "content": content})

    def remember(self, **values: Any) -> None:
        """Put values into the context that all agents share, once this one is done.

        Raises:
            InvalidStateError: one is called `inputs`, as what the run was given.
        """
        self._check()
        check_remembered(values, f"{self.workflow_id} {self.step_id}")
        self.notes.context.update(values)

    def artifact(self, reference: Any) -> None:
        """Name something that this agent made and keeps elsewhere."""
        self._check()
        self.notes.artifacts.append(reference)

    def metrics(self, **numbers: Any) -> None:
        """Add to what the workflow used up: `tokens=120, cost_usd=0.002, calls=1`."""
        self._check()
        self.notes.metrics = added(self.notes.metrics, numbers)

    def confidence(self, value: float) -> None:
        """Say how sure the agent is of its result, from 0 to 1."""
        self._check()
        check_confidence(value, self.step_id)
        self.notes.confidence = float(value)

    def blocked(self, reason: str | None) -> None:
        """Say what keeps the agent from going on; None: nothing any more."""
        self._note(
            AGENT_STATE_EVENT, {"state": {"blockers": [] if reason is None else [reason]}}, self.step_id
        )
        self._journal.tell("agent_blocked", step_id=self.step_id, reason=reason)

    def progress(self, share: float, note: str | None = None) -> None:
        """Say how far the agent is, from 0 to 1."""
        check_share(share, self.step_id)
        self.heartbeat()
        self._journal.tell("agent_progress", step_id=self.step_id, agent=self.agent, share=share, note=note)
        now = time.monotonic()
        if share >= 1 or now - self._progress_at >= _PROGRESS_SECONDS:
            self._progress_at = now
            state = {"progress": share} if note is None else {"progress": share, "doing": note}
            self._note(AGENT_STATE_EVENT, {"state": state}, self.step_id)

    def heartbeat(self) -> None:
        """Say that the agent is alive; `timeout_seconds` counts from the last time."""
        self._check()
        self._beat_at = time.monotonic()

    def report(self, title: str, summary: str, citations: Iterable[str] = ()) -> None:
        """Add a section to the progress report, which people can read whatever happens next."""
        self._note(REPORT_EVENT, {"title": title, "summary": summary, "citations": list(citations)})
        self.notes.reported = True

    # -- what it waits for -------------------------------------------------------------------

    def effect(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        key: str | None = None,
        unknown: Unknown | str = Unknown.ASK,
        check: Callable[[str], Any] | None = None,
        unsure: tuple[type[BaseException], ...] = UNSURE,
    ) -> Any:
        """Change something outside, once: `function(key, *arguments)` with a key for the other side.

        What it answered is recorded, and an agent that runs again gets that instead of a second call.

        Args:
            name: what is done; a second one of the name in one agent is one of its own, in the same order and
                with the same arguments when the agent runs again.
            function: does it; its first argument is the idempotency key, the same in each attempt.
            arguments: the others.
            key: what this one is known by among those of the name, instead of order and arguments.
            unknown: what to do if it was started before a crash and may have happened: `ask`, `retry`,
                `skip`, `check` or `fail`.
            check: given the key, answers `Found(result)` if it happened, None if it did not.
            unsure: errors of the function that leave open whether it happened.
        """
        policy = policy_of(unknown, f"{self.step_id} {name}")
        if (policy is Unknown.CHECK) != (check is not None):
            raise InvalidStateError(
                "`check` and unknown='check' go together", place=f"{self.step_id} {name}", hint="Give both."
            )
        self._check()
        given = None if key is not None else digest_of(numbered(arguments, {}), self._journal.types)
        ours = self.workflow_id, self.step_id, self.agent, self._names.numbered("effect", name, key)
        effect = Effect(*ours, function, arguments, policy, check, unsure, given, None, self._journal.hidden)
        return self._answer(self._performed(effect), "ctx.effect")

    def milestone(self, name: str, state: Any = None, partial: Any = None) -> Any:
        """Record how far the agent is: if it is interrupted later, the next attempt goes on from here.

        Args:
            name: what was reached.
            state: what the next attempt needs, in `ctx.resumed_from.state`.
            partial: results so far: scores, issues, feedback.
        """
        self.heartbeat()
        data = {"name": name, "state": state, "partial": partial}
        kind = CheckpointType.AGENT_START
        save = Save("milestone", {"type": kind, "agent_id": self.step_id, "agent_state": data})
        fact = Fact(MILESTONE_REACHED, data, self.step_id, self.agent)
        return self._answer(one(Together((fact, save))), "ctx.milestone")

    def approve(self, question: str, name: str | None = None, **data: Any) -> Any:
        """Ask somebody, and wait for the answer as long as it takes; restarts included.

        Args:
            question: what is asked.
            name: what the answer is given to; by default `approval`.
            data: whatever helps to decide.

        Returns:
            An `Approval`: granted or not, by whom, with a note and perhaps a value.
        """
        self._check()
        asked = Question(self._names.numbered("approval", name or "approval"), question, data)
        return self._answer(self._asked(asked), "ctx.approve")

    def spawn(
        self, function: Function, item: Any = None, *, name: str | None = None, key: str | None = None
    ) -> Any:
        """Run a function as an agent of its own, with all that means, and answer its result.

        Those of one name are known by their order and their items, or by a `key`.
        """
        self._check()
        called = self._names.numbered("spawn", name or name_of(function, self.step_id), key)
        given = None if key is not None else digest_of({"item": item}, self._journal.types)
        spawned = Spawned(function, item, called, given, self)
        need = OnLoop(lambda: self._waited(self._around.spawn(self._frame, spawned)))
        return self._answer(one(need), "ctx.spawn")

    def speculate(
        self, function: Function, item: Any = None, *, name: str | None = None, key: str | None = None
    ) -> Any:
        """Run a function whose result may not be wanted: nothing of it is recorded until it is confirmed.

        Answers a `Branch`: its `result`, and `confirm()`, after which it is a step like any other. Those of
        one name are known as spawned ones are.
        """
        self._check()
        called = self._names.numbered("spawn", name or name_of(function, self.step_id), key)
        given = None if key is not None else digest_of({"item": item}, self._journal.types)
        step_id = f"{self.step_id}>{called}"
        frame = replace(self._frame, step_id=step_id, item=item, parent_id=self.step_id)
        draft = Draft(self._journal, self._around.done(step_id), given)
        shadow = Context(frame, draft, self._around, Refusing(), is_async=self._is_async)
        asking = speculate(function, item, shadow, draft, self._answer, self._check)
        return self._answer(asking, "ctx.speculate")

    def checkpoint(self, reason: str = "asked by the agent") -> Any:
        """Make a checkpoint of the workflow now."""
        return self._triggered(Trigger.USER_REQUESTED, reason)

    def breakpoint(self, name: str = "breakpoint") -> Any:
        """Make a checkpoint to come back to when debugging."""
        return self._triggered(Trigger.DEBUG_BREAKPOINT, name)

    def before_risk(self, name: str = "risky operation") -> Any:
        """Make a checkpoint before something that may go wrong."""
        return self._triggered(Trigger.BEFORE_RISKY_OPERATION, name)

    # -- for whoever runs the agent ----------------------------------------------------------

    def end(self) -> None:
        """Let the attempt be over: whatever the agent still does leaves no trace."""
        self._is_over = True
        self._driver.end()
        for promise in self.promises:
            if promise.forgotten is not None:
                promise.close()

    @property
    def quiet_seconds(self) -> float:
        """How long nothing was heard of the agent."""
        if self._waits > len(self.children):
            # For an answer, or for a child that has no place yet.
            return 0.0
        own = time.monotonic() - self._beat_at
        return min([own, *(child.quiet_seconds for child in tuple(self.children))])

    def _performed(self, effect: Effect) -> Asking:
        asking = perform(effect, lambda: self._journal.agent_state(self.step_id), self._asked)
        return copy.deepcopy((yield from asking))

    def _asked(self, question: Question) -> Asking:
        return ask(question, self.step_id, self.agent, self._approvals, self._awaited)

    def _approvals(self) -> Mapping[str, Any]:
        approvals: Mapping[str, Any] = self._journal.agent_state(self.step_id).get("approvals", {})
        return approvals

    async def _awaited(self, step_id: str, name: str) -> Approval:
        """Tell that somebody has to answer, and wait for that; to wait is no silence of the agent."""
        asked = self._approvals().get(name, {})
        self._journal.tell("approval_requested", step_id=step_id, name=name, question=asked.get("question"))
        answer: Approval = await self._waited(self._around.answer(step_id, name))
        return answer

    async def _waited(self, awaited: Awaitable[Any]) -> Any:
        self._waits += 1
        try:
            return await awaited
        finally:
            self._waits, self._beat_at = self._waits - 1, time.monotonic()

    def _triggered(self, trigger: Trigger, reason: str) -> Any:
        self._check()
        if not self._around.is_due(trigger):
            return self._answer(nothing(), "ctx.checkpoint")
        options: CheckpointOptions = {"type": CheckpointType.AGENT_START, "agent_id": self.step_id}
        return self._answer(one(Save(f"{trigger}: {reason}", options)), "ctx.checkpoint")

    def _note(self, kind: str, data: Mapping[str, Any], agent: str | None = None) -> None:
        self._check()
        self._journal.note(Fact(kind, data, self.step_id, agent or self.agent))

    def _answer(self, asking: Asking, call: str) -> Any:
        if not self._is_async:
            return self._driver.drive(asking)
        promise = Promise(call, self._driver.drive_async(asking))
        self.promises = [one for one in self.promises if one.forgotten is not None]
        self.promises.append(promise)
        return promise

    def _check(self) -> None:
        if self._is_over:
            raise AttemptOverError(
                "the attempt was given up, and nothing it does is recorded any more",
                place=f"{self.workflow_id} {self.step_id}",
                hint="It took longer than timeout_seconds, or the run was stopped: let the function end.",
            )
