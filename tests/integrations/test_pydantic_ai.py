"""The durable engine for Pydantic AI: what was committed is not done again, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.toolsets import DynamicToolset, FunctionToolset

import holdfast
from holdfast.domain.errors import CheckpointCorruptError, GraphChangedError, LeaseHeldError
from holdfast.integrations.pydantic_ai import HoldfastDurability, HoldfastWorkflow
from tests.integrations.pydantic_ai_agents import calls, durable_agent, model, returned, says

Store = str | holdfast.CheckpointService
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(params=["file", "sqlite", "memory"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[holdfast.CheckpointService]:
    url = "memory:" if request.param == "memory" else f"{request.param}:{tmp_path}/store"
    with holdfast.open(url) as opened:
        yield opened


def run(
    store: str | holdfast.CheckpointService, agent: Agent[None, Any], prompt: str = "go", id: str = "W"
) -> Any:
    """Run an agent in a workflow, as a program does that is started."""

    async def go() -> Any:
        async with HoldfastWorkflow(store, id):
            return (await agent.run(prompt)).output

    return asyncio.run(go())


def two_prices(returned: list[Any]) -> Any:
    asked = calls(("price", {"item": "kelp"}), ("price", {"item": "anchor"}))
    return says(returned) if returned else asked


def price(item: str) -> int:
    return len(item)


class Down(Exception):
    """Stands for a crash: whatever is under way ends here."""


def test_a_run_that_is_over_is_told_without_asking_anybody(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []

    def price(item: str) -> int:
        noted.append(item)
        return len(item)

    agent = durable_agent(two_prices, noted, price)
    assert run(service, agent) == run(service, agent) == "[4, 6]"
    assert sorted(noted) == ["anchor", "kelp", "model", "model"]
    state = service.load_latest("W")
    assert state is not None and state.status == "completed" and state.outputs == ["[4, 6]"]
    assert [message["kind"] for message in state.messages] == ["request", "response", "request", "response"]
    assert state.metrics["requests"] == 2 and state.metrics["tool_calls"] == 2
    before = len(service.events("W"))
    run(service, agent)
    assert len(service.events("W")) == before


def test_a_run_goes_on_after_what_was_committed(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    is_down = [True]

    def price(item: str) -> int:
        noted.append(item)
        if item == "anchor" and is_down[0]:
            raise Down
        return len(item)

    def one_by_one(returned: list[Any]) -> Any:
        items = ["kelp", "rope", "anchor"]
        return calls(("price", {"item": items[len(returned)]})) if len(returned) < 3 else says(returned)

    agent = durable_agent(one_by_one, noted, price)
    with pytest.raises(Down):
        run(service, agent)
    assert noted == ["model", "kelp", "model", "rope", "model", "anchor"]
    del noted[:]
    is_down[0] = False
    assert run(service, agent) == "[4, 4, 6]"
    assert noted == ["anchor", "model"]
    attempts = [event.data["attempt"] for event in service.events("W", type="AGENT_STARTED")]
    assert attempts == [1, 2]


def test_calls_at_once_are_known_by_their_ids_and_not_by_their_order(tmp_path: Path) -> None:
    noted: list[str] = []
    is_down = [True]

    async def price(item: str) -> int:
        if item == "kelp" and is_down[0]:
            await asyncio.to_thread(settled)
            raise Down
        noted.append(item)
        return len(item)

    def settled() -> None:
        with holdfast.open(f"file:{tmp_path}") as other:
            while not any("call_tool" in str(event.step_id) for event in other.events("W")):
                pass

    agent = durable_agent(two_prices, noted, price)
    with pytest.raises(Down):
        run(f"file:{tmp_path}", agent)
    is_down[0] = False
    assert run(f"file:{tmp_path}", agent) == "[4, 6]"
    assert noted == ["model", "anchor", "kelp", "model"]


def test_agents_inside_of_tools_go_on_too(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    is_down = [True]
    inner_noted: list[str] = []

    def look(topic: str) -> str:
        inner_noted.append(topic)
        if topic == "b2" and is_down[0]:
            raise Down
        return topic.upper()

    def researcher(topic: str) -> Agent[None, Any]:
        def answer(returned: list[Any]) -> Any:
            return (
                calls(("look", {"topic": f"{topic}{len(returned) + 1}"}))
                if len(returned) < 2
                else says(returned)
            )

        return durable_agent(answer, inner_noted, look, name=f"researcher-{topic}")

    agents = {topic: researcher(topic) for topic in "ab"}

    async def research(topic: str) -> str:
        return str((await agents[topic].run(topic)).output)

    def answer(returned: list[Any]) -> Any:
        return calls(("research", {"topic": "ab"[len(returned)]})) if len(returned) < 2 else says(returned)

    agent = durable_agent(answer, noted, research)
    with pytest.raises(Down):
        run(service, agent)
    del noted[:], inner_noted[:]
    is_down[0] = False
    assert run(service, agent) == str(["['A1', 'A2']", "['B1', 'B2']"])
    assert inner_noted == ["b2", "model"] and noted == ["model"]


def test_several_runs_in_a_workflow_keep_apart(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        [prompt] = messages[0].parts
        assert isinstance(prompt, UserPromptPart)
        noted.append(str(prompt.content))
        return says(f"{prompt.content}, asked as number {len(noted)}")

    agent = Agent(FunctionModel(respond), name="clerk", capabilities=[HoldfastDurability()])

    async def go() -> list[Any]:
        async with HoldfastWorkflow(service, "W"):
            together = await asyncio.gather(agent.run("a"), agent.run("b"))
            last = await agent.run("c")
            return [one.output for one in (*together, last)]

    first, second = asyncio.run(go()), asyncio.run(go())
    # Which of the two at once is asked first is up to threads.
    assert sorted(noted[:2]) == ["a", "b"] and noted[2:] == ["c"]
    assert first == second == [f"{name}, asked as number {noted.index(name) + 1}" for name in "abc"]


def test_the_same_id_with_another_prompt_is_refused(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    agent = durable_agent(lambda returned: says("fine"), noted)
    run(service, agent, "first")
    with pytest.raises(GraphChangedError, match="another prompt"):
        run(service, agent, "second")
    assert noted == ["model"]


def test_one_process_has_a_workflow_at_a_time(service: holdfast.CheckpointService) -> None:
    agent = durable_agent(lambda returned: says("fine"), [])

    async def go() -> None:
        async with HoldfastWorkflow(service, "W"):
            with pytest.raises(LeaseHeldError):
                async with HoldfastWorkflow(service, "W"):
                    raise AssertionError("it is taken")

    asyncio.run(go())
    assert run(service, agent) == "fine"


def test_outside_of_a_workflow_an_agent_is_what_it_was(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    agent = durable_agent(two_prices, noted, price)
    assert asyncio.run(agent.run("go")).output == "[4, 6]"
    assert asyncio.run(agent.run("go")).output == "[4, 6]" and len(noted) == 4
    assert service.workflows() == []


def test_a_tool_that_wants_another_try_wants_it_once(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []

    def flaky() -> str:
        noted.append("flaky")
        if noted.count("flaky") == 1:
            raise ModelRetry("once more")
        return "well"

    def answer(returned: list[Any]) -> Any:
        return says("done") if "well" in returned else calls(("flaky", {}))

    agent = durable_agent(answer, noted, flaky)
    assert run(service, agent) == run(service, agent) == "done"
    assert noted == ["model", "flaky", "model", "flaky", "model"]


async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[DeltaToolCalls | str]:
    if returned(messages):
        yield str(returned(messages))
    else:
        yield {0: DeltaToolCall("price", '{"item": "kelp"}', tool_call_id="call-1")}


def test_handlers_hear_of_everything_once(service: holdfast.CheckpointService) -> None:
    heard: list[str] = []

    async def hear(ctx: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        heard.extend([event.event_kind async for event in events])

    capability = HoldfastDurability(event_stream_handler=hear)
    agent = Agent(
        FunctionModel(stream_function=streamed),
        name="clerk",
        toolsets=[FunctionToolset([price], id="shop")],
        capabilities=[capability],
    )
    assert run(service, agent) == "[4]"
    first, heard[:] = list(heard), []
    assert run(service, agent) == "[4]" and heard == []
    assert first.count("function_tool_call") == 1 and first.count("function_tool_result") == 1


def test_tools_that_are_made_for_a_run_are_durable(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []

    def dynamic(ctx: RunContext[None]) -> FunctionToolset[None]:
        def price(item: str) -> int:
            noted.append(item)
            return len(item)

        return FunctionToolset([price])

    toolset = DynamicToolset(dynamic, id="made")
    agent = Agent(
        model(two_prices, noted), name="clerk", toolsets=[toolset], capabilities=[HoldfastDurability()]
    )
    assert run(service, agent) == run(service, agent) == "[4, 6]"
    assert len(noted) == 4


def test_a_long_run_is_checkpointed_on_its_way_and_can_be_pruned(service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    is_down = [True]

    def step(number: int) -> int:
        noted.append(str(number))
        if number == 30 and is_down[0]:
            raise Down
        return number

    def answer(returned: list[Any]) -> Any:
        return calls(("step", {"number": len(returned)})) if len(returned) <= 30 else says(sum(returned))

    agent = durable_agent(answer, noted, step)
    with pytest.raises(Down):
        run(service, agent)
    assert len(service.list_checkpoints("W")) == 1
    service.prune_checkpoints("W", retain_count=1, retain_days=0)
    del noted[:]
    is_down[0] = False
    assert run(service, agent) == str(sum(range(31)))
    assert noted == ["30", "model"]


@pytest.mark.parametrize("name", ["run\0id", "r" * 400, "run\u2028id", "../../x", "WF@3"])
def test_any_run_id_does(name: str, service: holdfast.CheckpointService) -> None:
    noted: list[str] = []
    agent = durable_agent(two_prices, noted, price)

    async def go() -> Any:
        async with HoldfastWorkflow(service, "W"):
            return (await agent.run("go", run_id=name)).output

    assert asyncio.run(go()) == asyncio.run(go()) == "[4, 6]"
    assert noted == ["model", "model"]


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_what_a_tool_returned_is_the_same_after_a_crash(value: Any) -> None:
    seen: list[Any] = []
    is_down = [True]

    def tell() -> Any:
        return value

    def answer(returned: list[Any]) -> Any:
        if not returned:
            return calls(("tell", {}))
        seen.extend(returned)
        if is_down[0]:
            raise Down
        return says("end")

    agent = durable_agent(answer, [], tell)
    with holdfast.open("memory:", redact=False) as service:
        with pytest.raises(Down):
            run(service, agent)
        is_down[0] = False
        run(service, agent)
    assert seen == [value, value]


@pytest.mark.parametrize(
    "value",
    [
        {"$hf": "date", "v": "2020-01-01"},
        {"lc": 1, "type": "constructor"},
        {"__class__": "os.system"},
        "a\0b",
    ],
)
def test_data_that_looks_like_something_else_stays_data(
    value: Any, service: holdfast.CheckpointService
) -> None:
    noted: list[Any] = []

    def tell() -> Any:
        return value

    def answer(returned: list[Any]) -> Any:
        noted.extend(returned)
        return says("end") if returned else calls(("tell", {}))

    agent = durable_agent(answer, [], tell)
    run(service, agent)
    assert noted == [value]
    state = service.load_latest("W")
    assert state is not None and value in [(one["result"] or {}).get("result") for one in state.tasks[1:2]]


@pytest.mark.parametrize("victim", ["kelp", "clerk"])
def test_a_store_that_somebody_edited_is_refused_before_anything_runs(victim: str, tmp_path: Path) -> None:
    noted: list[str] = []
    is_down = [True]

    def answer(returned: list[Any]) -> Any:
        if returned and is_down[0]:
            raise Down
        return two_prices(returned)

    agent = durable_agent(answer, noted, price)
    with pytest.raises(Down):
        run(f"file:{tmp_path}", agent)
    del noted[:]
    is_down[0] = False
    for path in tmp_path.rglob("*"):
        if path.is_file() and "events" in str(path):
            path.write_bytes(path.read_bytes().replace(victim.encode(), victim[::-1].encode()))
    with pytest.raises(CheckpointCorruptError):
        run(f"file:{tmp_path}", agent)
    assert noted == []


def test_eight_tasks_and_eight_threads_keep_apart(tmp_path: Path) -> None:
    noted: list[str] = []
    agent = durable_agent(two_prices, noted, price)

    async def together(service: holdfast.CheckpointService) -> list[Any]:
        async def one(number: int) -> Any:
            async with HoldfastWorkflow(service, f"task-{number}"):
                return (await agent.run("go")).output

        return await asyncio.gather(*(one(number) for number in range(8)))

    with holdfast.open(f"file:{tmp_path}") as service:
        assert asyncio.run(together(service)) == ["[4, 6]"] * 8
        with ThreadPoolExecutor(8) as threads:
            ran = threads.map(lambda number: run(service, agent, id=f"thread-{number}"), range(8))
            assert list(ran) == ["[4, 6]"] * 8
        assert len(service.workflows()) == 16 and len(noted) == 32


def test_of_eight_that_want_one_workflow_each_operation_is_done_once(tmp_path: Path) -> None:
    noted: list[str] = []
    agent = durable_agent(two_prices, noted, price)

    def try_to_run(_: int) -> Any:
        try:
            return run(f"file:{tmp_path}", agent)
        except LeaseHeldError:
            return None

    with ThreadPoolExecutor(8) as threads:
        outcomes = set(threads.map(try_to_run, range(8)))
    assert "[4, 6]" in outcomes and outcomes <= {"[4, 6]", None}
    assert noted == ["model", "model"]
