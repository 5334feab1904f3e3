"""Workflows of the framework that the tests run: a chain, a question to a person, one in another, agents."""

# The framework reads annotations of handlers at run time, so they are no text here.

from dataclasses import dataclass
from itertools import pairwise

from agent_framework import (
    Agent,
    AgentExecutor,
    BaseChatClient,
    ChatResponse,
    Executor,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
    step,
    workflow,
)


@dataclass
class Draft:
    """What goes from one step to the next."""

    words: list[str]


class Add(Executor):
    """Add its own name, and count how often it did."""

    def __init__(self, id: str, done: list[str]) -> None:
        super().__init__(id=id)
        self._done = done

    @handler
    async def add(self, draft: Draft, ctx: WorkflowContext[Draft, Draft]) -> None:
        self._done.append(self.id)
        ctx.set_state("words", [*draft.words, self.id])
        await ctx.send_message(Draft([*draft.words, self.id]))
        await ctx.yield_output(Draft([*draft.words, self.id]))


class Ask(Executor):
    """Ask a person, and say what was answered."""

    @handler
    async def ask(self, draft: Draft, ctx: WorkflowContext[Draft]) -> None:
        await ctx.request_info(draft, str)

    @response_handler
    async def answered(self, asked: Draft, answer: str, ctx: WorkflowContext[Draft, Draft]) -> None:
        await ctx.yield_output(Draft([*asked.words, answer]))


class Offline(BaseChatClient):
    """Stand in for a model: answer with the number of messages that it was shown."""

    async def _inner_get_response(self, *, messages, stream, options, **more):
        return ChatResponse(messages=[Message("assistant", [f"seen {len(messages)}"])])


def chained(storage, done: list[str], name: str = "chain", length: int = 4) -> Workflow:
    """Build a chain of steps that each add their name."""
    steps = [Add(f"step-{number}", done) for number in range(length)]
    builder = WorkflowBuilder(
        name=name, start_executor=steps[0], checkpoint_storage=storage, output_from="all"
    )
    for before, after in pairwise(steps):
        builder = builder.add_edge(before, after)
    return builder.build()


def asking(storage, name: str = "asking") -> Workflow:
    """Build a workflow that waits for a person."""
    ask = Ask(id="ask")
    return WorkflowBuilder(
        name=name, start_executor=ask, checkpoint_storage=storage, output_from=[ask]
    ).build()


def nested(storage) -> Workflow:
    """Build a workflow whose only step is a workflow that waits for a person."""
    inner = WorkflowExecutor(
        asking(None, "inner"), id="inner", propagate_request=True, allow_direct_output=True
    )
    builder = WorkflowBuilder(
        name="outer", start_executor=inner, checkpoint_storage=storage, output_from=[inner]
    )
    return builder.build()


def talking(storage, turns: int) -> Workflow:
    """Build two agents that talk to each other until they may no more."""
    one, other = (AgentExecutor(Agent(client=Offline(), name=name), id=name) for name in ("one", "other"))
    builder = WorkflowBuilder(
        name="talk", start_executor=one, checkpoint_storage=storage, max_iterations=turns
    )
    return builder.add_edge(one, other).add_edge(other, one).build()


def functional(storage, done: list[str]):
    """Build a workflow that is a plain function of two steps."""

    @step(replay_key=lambda text: "draft")
    async def draft(text: str) -> str:
        done.append("draft")
        return f"{text}, drafted"

    @step(replay_key=lambda text: "judge")
    async def judge(text: str) -> str:
        done.append("judge")
        return f"{text}, judged"

    @workflow(name="functional")
    async def both(text: str) -> str:
        return await judge(await draft(text))

    return both.build(checkpoint_storage=storage)
