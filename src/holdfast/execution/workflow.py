"""Declaring a workflow: a team of agents in plain Python, in stages, and how it is run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from holdfast.application.app import App
from holdfast.domain.errors import DeclarationError, RunError
from holdfast.execution.declaring import (
    After,
    AgentOptions,
    agent_name,
    check_factor,
    check_number,
    check_options,
    check_signature,
)
from holdfast.execution.plan import (
    Agent,
    AgentFunction,
    Condition,
    OnFailure,
    Plan,
    Retry,
    Stage,
    StageKind,
    check_name,
    make_plan,
)
from holdfast.execution.triggers import Triggers

if TYPE_CHECKING:
    from holdfast.execution.declared import StoreLike
    from holdfast.execution.options import RunOptions
    from holdfast.execution.outcome import RunResult

_Function = TypeVar("_Function", bound=AgentFunction)


class Team:
    """The agents of one stage; declare them with `agent`, in the order in which they shall work."""

    def __init__(self, workflow: Workflow, stage: Stage, defaults: Retry) -> None:
        self._workflow = workflow
        self._defaults = defaults
        self.name = stage.name

    @overload
    def agent(self, function: _Function, /) -> _Function: ...

    @overload
    def agent(
        self, function: None = ..., /, **options: Unpack[AgentOptions]
    ) -> Callable[[_Function], _Function]: ...

    def agent(self, function: _Function | None = None, /, **options: Unpack[AgentOptions]) -> Any:
        """Declare the decorated function as an agent of this stage; see `Workflow.agent`."""
        if function is not None:
            return self._add(function, {})
        return lambda decorated: self._add(decorated, dict(options))

    @overload
    def evaluator(self, function: _Function, /) -> _Function: ...

    @overload
    def evaluator(
        self, function: None = ..., /, **options: Unpack[AgentOptions]
    ) -> Callable[[_Function], _Function]: ...

    def evaluator(self, function: _Function | None = None, /, **options: Unpack[AgentOptions]) -> Any:
        """Declare the agent whose answer tells a loop whether it is content."""
        if function is not None:
            return self._add(function, {"is_evaluator": True})
        return lambda decorated: self._add(decorated, {**options, "is_evaluator": True})

    def _add(self, function: _Function, options: Mapping[str, Any]) -> _Function:
        self._workflow._add_agent(self.name, function, {"retry": self._defaults, **options})
        return function


class Workflow:
    """A team of agents, declared once and run under many ids.

    Agents are plain functions, sync or async, that take a context and, where they are run for each of
    several items, the item. What they answer is recorded in one commit, and never computed again.
    """

    def __init__(
        self,
        name: str,
        *,
        triggers: Triggers | None = None,
        retry: Retry | None = None,
        concurrency: int | None = None,
        confidence_factor: float = 0.8,
        engines: Mapping[str, Any] | None = None,
        app: App | None = None,
    ) -> None:
        """Name a workflow.

        Args:
            name: what it is called, in the graph of its checkpoints.
            triggers: when a checkpoint is made, beside after each layer.
            retry: how often its agents are tried, unless they say otherwise.
            concurrency: how many agents work at once at most.
            confidence_factor: what confidence is multiplied by after a failed attempt.
            engines: where agents that name one of these run; without, in this process.
            app: types that its results hold, reducers and migrations, for stores that a run opens itself.
        """
        self.name = check_name("workflow", name)
        self.triggers = triggers or Triggers()
        self.retry = retry or Retry()
        self.concurrency = check_number("concurrency", concurrency, name)
        self.confidence_factor = check_factor(confidence_factor, name)
        self.engines = dict(engines or {})
        self.app = app
        self._stages: dict[str, Stage] = {}
        self._names: dict[Any, str] = {}
        self._agents: set[str] = set()
        self._last: str | None = None
        #: The last barrier: what is declared after it begins after it.
        self._barrier: str | None = None
        self._plan: Plan | None = None

    @overload
    def agent(self, function: _Function, /) -> _Function: ...

    @overload
    def agent(
        self, function: None = ..., /, **options: Unpack[AgentOptions]
    ) -> Callable[[_Function], _Function]: ...

    def agent(self, function: _Function | None = None, /, **options: Unpack[AgentOptions]) -> Any:
        """Declare the decorated function as an agent, in a stage of its own.

        Args:
            function: the agent.
            options: name, after, when, each, key, concurrency, retry, timeout_seconds, on_failure, engine,
                risky; see AgentOptions.
        """
        if function is None:
            return lambda decorated: self._loose(decorated, dict(options))
        return self._loose(function, {})

    def sequential(self, name: str, *, after: After = None, when: Condition | None = None) -> Team:
        """Declare a stage whose agents work one after another."""
        return self._open(Stage(name, StageKind.SEQUENTIAL, when=when), after)

    def parallel(
        self, name: str, *, after: After = None, when: Condition | None = None, concurrency: int | None = None
    ) -> Team:
        """Declare a stage whose agents work at once."""
        return self._open(Stage(name, StageKind.PARALLEL, when=when, concurrency=concurrency), after)

    def barrier(self, name: str) -> Team:
        """Declare a point that everything declared so far has to reach before anything later begins."""
        team = self._open(Stage(name, StageKind.BARRIER), tuple(self._stages))
        self._barrier = name
        return team

    def loop(
        self,
        name: str,
        *,
        until: Condition | None = None,
        limit: int = 10,
        after: After = None,
        when: Condition | None = None,
    ) -> Team:
        """Declare a stage that is repeated until its evaluator is content.

        Args:
            name: what it is called.
            until: given the evaluator's answer; by default its `content`, or its truth.
            limit: how often at most.
            after: what has to be over first; by default the stage declared before.
            when: given the context; False skips the loop.
        """
        if limit < 1:
            raise DeclarationError("a loop runs once at least", place=name, hint="Give a limit of 1 or more.")
        return self._open(Stage(name, StageKind.LOOP, when=when, until=until, limit=limit), after)

    @property
    def plan(self) -> Plan:
        """The graph, in layers.

        Raises:
            DeclarationError: it cannot be run.
        """
        if self._plan is None:
            self._plan = make_plan(self.name, self._stages, self.concurrency)
        return self._plan

    async def run(
        self,
        store: StoreLike,
        workflow_id: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run the workflow under an id, or go on with it where it was.

        Args:
            store: a URL, or an open service.
            workflow_id: the run; one that exists is resumed, and nothing that was committed is repeated.
            inputs: what the agents find in `ctx.inputs`; of a run that exists, those it began with stay.
            options: how it is run; see `RunOptions`.

        Raises:
            AgentFailedError: an agent failed for good; the run can be resumed.
            ResultLostError: the end of the run is neither in the store nor kept elsewhere; it has the result.
            LeaseHeldError: somebody else runs it.
            GraphChangedError: the workflow is not the one that was begun, and `strict` was asked for.
        """
        from holdfast.execution.opening import run_workflow

        return await run_workflow(self, store, workflow_id, inputs, options)

    def run_sync(
        self,
        store: StoreLike,
        workflow_id: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run the workflow as `run` does, and wait for it.

        Raises:
            RunError: it was called in a coroutine.
        """
        if _is_in_loop():
            raise RunError(
                "an event loop runs here, and would stand still meanwhile",
                place=workflow_id,
                hint="Use `await workflow.run(...)` in a coroutine.",
            )
        return asyncio.run(self.run(store, workflow_id, inputs, options=options))

    async def resume_from_checkpoint(
        self,
        store: StoreLike,
        checkpoint_id: Any,
        *,
        new_workflow_id: str | None = None,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Go on from a checkpoint: of the newest in place, of an earlier one on a fork of its own."""
        from holdfast.execution.again import run_from_checkpoint

        return await run_from_checkpoint(self, store, checkpoint_id, new_workflow_id, options)

    async def rerun_from(
        self,
        store: StoreLike,
        workflow_id: str,
        agent: str,
        *,
        new_workflow_id: str,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> RunResult:
        """Run again from a chosen agent on, on a fork, with inputs edited; what came before is kept."""
        from holdfast.execution.again import rerun_from

        return await rerun_from(self, store, workflow_id, agent, new_workflow_id, inputs, options)

    def _loose(self, function: _Function, options: Mapping[str, Any]) -> _Function:
        given = dict(options)
        name = agent_name(function, given.get("name"))
        after = self._named(given.pop("after", None))
        self._enter(Stage(name, StageKind.SEQUENTIAL, after=after))
        self._add_agent(name, function, {"retry": self.retry, **given})
        return function

    def _open(self, stage: Stage, after: After) -> Team:
        check_name("stage", stage.name)
        # Stages follow each other as they are written, unless something else is said.
        default = (self._last,) if self._last else ()
        self._enter(replace(stage, after=default if after is None else self._named(after)))
        self._last = stage.name
        return Team(self, stage, self.retry)

    def _enter(self, stage: Stage) -> None:
        if stage.name in self._stages or stage.name in self._agents:
            raise DeclarationError(
                "two stages or agents have one name", place=stage.name, hint="Give one of them another."
            )
        self._plan = None
        check_number("concurrency", stage.concurrency, stage.name)
        before = (self._barrier,) if self._barrier and self._barrier not in stage.after else ()
        self._stages[stage.name] = replace(stage, after=(*stage.after, *before))

    def _add_agent(self, stage: str, function: AgentFunction, options: Mapping[str, Any]) -> None:
        given = dict(options)
        name = agent_name(function, given.pop("name", None))
        check_options(name, given)
        if name in self._agents or (name != stage and name in self._stages):
            raise DeclarationError("two agents have one name", place=name, hint="Give one of them another.")
        agent = Agent(
            name,
            function,
            stage,
            after=self._named(given.pop("after", None)),
            on_failure=OnFailure(given.pop("on_failure", OnFailure.FAIL)),
            is_risky=given.pop("risky", False),
            retry=given.pop("retry", None) or self.retry,
            **given,
        )
        if agent.engine is not None and agent.engine not in self.engines:
            raise DeclarationError(
                f"the agent runs on {agent.engine!r}, and the workflow has no such engine",
                place=name,
                hint="Give it to Workflow(engines=...).",
            )
        check_signature(agent)
        check_number("concurrency", agent.concurrency, name)
        check_number("timeout_seconds", agent.timeout_seconds, name)
        home = self._stages[stage]
        self._plan = None
        stages = {**self._stages, stage: replace(home, agents=(*home.agents, agent))}
        if agent.after:
            # What is new comes after what is there; only who joins a stage can close a circle.
            make_plan(self.name, stages, self.concurrency)
        self._stages = stages
        self._names[function] = name
        self._agents.add(name)

    def _named(self, after: After) -> tuple[str, ...]:
        """Answer names for what was given: names, functions, stages, or several of them."""
        if after is None:
            return ()
        if isinstance(after, str):
            if after not in self._stages and after not in self._agents:
                raise DeclarationError(
                    f"there is no agent or stage {after!r} to come after",
                    place=self.name,
                    hint=f"Declare it first. Known are: {', '.join(self._stages) or 'none'}.",
                )
            return (after,)
        if isinstance(after, Team):
            return (after.name,)
        if callable(after):
            if after not in self._names:
                raise DeclarationError(
                    "what comes before is no agent of this workflow",
                    place=getattr(after, "__name__", repr(after)),
                    hint="Declare it first.",
                )
            return (self._names[after],)
        return tuple(name for one in after for name in self._named(one))


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
