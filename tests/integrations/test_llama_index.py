"""Runs of LlamaIndex workflows are kept, go on, and nothing in a store makes the program do anything."""

from __future__ import annotations

import asyncio
import base64
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from workflows import Context, Workflow, step
from workflows.context.serializers import JsonSerializer, PickleSerializer
from workflows.errors import ContextSerdeError, WorkflowTimeoutError
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent
from workflows.retry_policy import retry_policy, stop_after_attempt, wait_fixed

import holdfast
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    ConfigError,
    InvalidStateError,
    UnsupportedTypeError,
)
from holdfast.domain.state import WorkflowState
from holdfast.integrations.llama_index import HoldfastRuntime, SafeSerializer
from tests.integrations.llama_index_loop import in_a_loop


class Offer(BaseModel):
    vendor: str
    price: int


class Counted(Event):
    turn: int


class Ended(StopEvent):
    turns: int


class Kept(BaseModel):
    question: str = ""
    offers: list[Offer] = []


class Chat(Workflow):
    """Writes a line into its state at each turn, and may fail at one."""

    fails_at = 0

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.ran: list[int] = []

    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> Counted:
        await ctx.store.set("lines", [*await ctx.store.get("lines", default=[]), ev.get("line", "hello")])
        return Counted(turn=1)

    @step
    async def turn(self, ctx: Context, ev: Counted) -> Counted | Ended:
        self.ran.append(ev.turn)
        if ev.turn == self.fails_at:
            raise ValueError("this turn fails")
        await ctx.store.set("lines", [*await ctx.store.get("lines"), f"line {ev.turn}"])
        return Counted(turn=ev.turn + 1) if ev.turn < 3 else Ended(turns=ev.turn)


class Ask(Workflow):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent(prefix="go on?")

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=f"the answer is {ev.response}")


class Hold(Workflow):
    """Answers what it is given, and keeps it."""

    @step
    async def hold(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await ctx.store.set("value", ev.value)
        return StopEvent(result=ev.value)


class Typed(Workflow):
    @step
    async def hold(self, ctx: Context[Kept], ev: StartEvent) -> StopEvent:
        async with ctx.store.edit_state() as kept:
            kept.question = ev.question
            kept.offers.append(Offer(vendor="B", price=len(kept.offers)))
        return StopEvent(result=len((await ctx.store.get_state()).offers))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["file", "sqlite", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {"file": f"file:{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/s.db", "memory": "memory:"}[
        request.param
    ]


@in_a_loop
async def test_a_run_begins_goes_on_after_a_fault_and_is_told_at_last(url: str):
    async with holdfast.open_async(url) as service:
        runtime = HoldfastRuntime(service)
        first = Chat(runtime=runtime)
        first.fails_at = 2
        with pytest.raises(ValueError, match="this turn fails"):
            await runtime.run(first, "chat", line="good day")
        assert first.ran == [1, 2]
        second = Chat(runtime=HoldfastRuntime(service))
        ended = await second.runtime.run(second, "chat", line="not said: it has begun")
        assert ended == Ended(turns=3) and second.ran == [2, 3]
        third = Chat(runtime=HoldfastRuntime(service))
        assert await third.runtime.run(third, "chat") == Ended(turns=3) and third.ran == []
        state = await service.load_latest("llama-run:chat")
        assert state is not None and state.status == "completed"
        stages = [meta.stage_id for meta in await service.list_checkpoints("llama-run:chat")]
        assert stages == ["turn", "turn", "turn", "begin", None]
        lines = state.context["state"]["state_data"]["_data"]["lines"]
        assert lines == ["good day", "line 1", "line 2", "line 3"]
        assert state.metadata == {"run": "chat", "workflow": f"{Chat.__module__}.Chat"}


@in_a_loop
async def test_a_store_that_was_opened_here_is_closed_here(tmp_path: Path):
    async with HoldfastRuntime(f"sqlite:{tmp_path}/s.db") as runtime:
        assert await runtime.run(Hold(runtime=runtime), "a", value=1) == 1
    other = HoldfastRuntime(f"sqlite:{tmp_path}/s.db")
    assert await other.outcome(Hold(runtime=other), "a") == StopEvent(result=1)
    assert await other.outcome(Hold(runtime=other), "b") is None
    await other.destroy()
    await HoldfastRuntime("memory:").close()


@in_a_loop
async def test_a_person_answers_in_another_process(url: str):
    async with holdfast.open_async(url) as service:
        runtime = HoldfastRuntime(service)
        ask = Ask(runtime=runtime)
        handler = ask.run(ctx=await runtime.context(ask, "ask"))
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                break
        await handler.cancel_run()
        later = HoldfastRuntime(service)
        again = Ask(runtime=later)
        context = await later.context(again, "ask")
        assert context.is_running
        handler = again.run(ctx=context)
        context.send_event(HumanResponseEvent(response="yes"))
        assert await handler == "the answer is yes"
        assert await later.outcome(again, "ask") == StopEvent(result="the answer is yes")


@in_a_loop
async def test_the_context_of_a_run_that_has_ended_begins_anew_with_its_state():
    async with HoldfastRuntime("memory:") as runtime:
        chat = Chat(runtime=runtime)
        context = await runtime.context(chat, "chat")
        await chat.run(ctx=context, line="one")
        await chat.run(ctx=context, line="two")
        again = await runtime.context(chat, "chat")
        assert not again.is_running
        await chat.run(ctx=again, line="three")
        kept = await (await runtime.context(chat, "chat")).store.get("lines")
        assert [line for line in kept if not line.startswith("line")] == ["one", "two", "three"]


@in_a_loop
async def test_a_run_without_a_context_is_kept_under_its_run_id():
    async with HoldfastRuntime("memory:") as runtime:
        hold = Hold(runtime=runtime)
        await hold.run(run_id="named", value=[1])
        assert await runtime.outcome(hold, "named") == StopEvent(result=[1])
        # To begin it again is refused: it would overwrite what is there.
        with pytest.raises(CheckpointConflictError):
            await Hold(runtime=HoldfastRuntime(await runtime.service())).run(run_id="named", value=[2])


@in_a_loop
async def test_a_typed_state_comes_back_as_its_type():
    async with HoldfastRuntime("memory:") as runtime:
        typed = Typed(runtime=runtime)
        await typed.run(ctx=await runtime.context(typed, "t"), question="which?")
        context = await runtime.context(typed, "t")
        assert await context.store.get_state() == Kept(question="which?", offers=[Offer(vendor="B", price=0)])
        assert await typed.run(ctx=context, question="and now?") == 2


@in_a_loop
async def test_models_of_named_classes_come_back_and_others_are_refused_when_they_are_written():
    async with holdfast.open_async("memory:") as service:
        runtime = HoldfastRuntime(service, types=[Offer])
        value = {"best": Offer(vendor="B", price=3), "others": [Offer(vendor="A", price=4)]}
        assert await runtime.run(Hold(runtime=runtime), "named", value=value) == value
        assert await runtime.run(Hold(runtime=runtime), "named") == value
        assert await (await runtime.context(Hold(runtime=runtime), "named")).store.get("value") == value
        strict = HoldfastRuntime(service)
        with pytest.raises((UnsupportedTypeError, ValueError), match=r"types=\[\.\.\.\]"):
            await strict.run(Hold(runtime=strict), "unnamed", value=value)


@in_a_loop
async def test_a_retry_that_was_counted_stays_counted():
    class Flaky(Workflow):
        seen: list[int]

        @step(retry_policy=retry_policy(wait=wait_fixed(0), stop=stop_after_attempt(3)))
        async def flaky(self, ctx: Context, ev: StartEvent) -> StopEvent:
            self.seen.append(ctx.retry_info().retry_number)
            raise OSError("down")

    async with HoldfastRuntime("memory:") as runtime:
        flaky = Flaky(runtime=runtime)
        flaky.seen = []
        with pytest.raises(OSError, match="down"):
            await runtime.run(flaky, "r")
        state = await (await runtime.service()).load_latest("llama-run:r")
        assert state is not None and flaky.seen == [0, 1, 2]
        [attempt] = state.context["run"]["workers"]["flaky"]["in_progress"]
        assert attempt["attempts"] == 2 and attempt["last_exception"]["exception_message"] == "down"


@in_a_loop
async def test_a_run_that_had_no_time_left_may_go_on():
    class Slow(Workflow):
        is_slow = True

        @step
        async def wait(self, ev: StartEvent) -> StopEvent:
            if self.is_slow:
                await asyncio.Event().wait()
            return StopEvent(result="done")

    async with HoldfastRuntime("memory:") as runtime:
        with pytest.raises(WorkflowTimeoutError):
            await runtime.run(Slow(runtime=runtime, timeout=0.05), "slow")
        quick = Slow(runtime=runtime)
        quick.is_slow = False
        assert await runtime.run(quick, "slow") == "done"


@in_a_loop
async def test_a_step_that_is_gone_while_it_had_work_is_told():
    class Renamed(Workflow):
        @step
        async def start(self, ev: StartEvent) -> StopEvent:
            return StopEvent()

    async with HoldfastRuntime("memory:") as runtime:
        chat = Chat(runtime=runtime)
        chat.fails_at = 1
        with pytest.raises(ValueError, match="this turn fails"):
            await runtime.run(chat, "r")
        service = await runtime.service()
        # As it stands when a kill comes while the step works.
        state = await service.restore_checkpoint("llama-run:r@1")
        state.checkpoint_id = None
        await service.create_checkpoint("llama-run:r", state)
        with pytest.raises(InvalidStateError, match="begin"):
            await runtime.context(Renamed(runtime=runtime), "r")


def test_what_would_undo_the_safety_is_refused():
    by_name: Any = ["os.system"]
    with pytest.raises(ConfigError, match="is not a class"):
        HoldfastRuntime("memory:", types=by_name)
    runtime = HoldfastRuntime("memory:")
    for own in (PickleSerializer(), JsonSerializer()):
        with pytest.raises(ConfigError, match="serializer of its own"):
            runtime.get_serializer(Hold(runtime=runtime, serializer=own))


@in_a_loop
async def test_a_context_with_another_serializer_is_refused():
    async with HoldfastRuntime("memory:") as runtime:
        hold = Hold(runtime=runtime)
        with pytest.raises(ConfigError, match="PickleSerializer"):
            hold.run(ctx=Context(hold, serializer=PickleSerializer()), value=1)


@in_a_loop
async def test_a_workflow_with_another_runtime_is_refused_and_a_verbose_one_is_kept(capsys: Any):
    async with HoldfastRuntime("memory:") as runtime:
        with pytest.raises(ConfigError, match="another runtime"):
            await runtime.context(Hold(), "r")
        assert await runtime.run(Hold(runtime=runtime, verbose=True), "r", value=1) == 1
        assert await runtime.outcome(Hold(runtime=runtime), "r") == StopEvent(result=1)


# Concurrency


@in_a_loop
async def test_eight_tasks_with_one_run_lose_nothing_silently(url: str):
    async with holdfast.open_async(url) as service:
        runtimes = [HoldfastRuntime(service) for _ in range(8)]
        holds = [Hold(runtime=runtime) for runtime in runtimes]
        contexts = [await runtime.context(hold, "one") for runtime, hold in zip(runtimes, holds, strict=True)]
        runs = [
            hold.run(ctx=context, value=n)
            for n, (hold, context) in enumerate(zip(holds, contexts, strict=True))
        ]
        ended = await asyncio.gather(*runs, return_exceptions=True)
        won = [answer for answer in ended if isinstance(answer, int)]
        assert len(won) == 1
        assert sum(isinstance(answer, CheckpointConflictError) for answer in ended) == 7
        assert await runtimes[0].outcome(holds[0], "one") == StopEvent(result=won[0])


@in_a_loop
async def test_eight_tasks_with_many_runs_keep_them_all(url: str):
    async with holdfast.open_async(url) as service:
        runtime = HoldfastRuntime(service)
        chat = Chat(runtime=runtime)
        await asyncio.gather(*(runtime.run(chat, f"chat {n}", line=f"{n}") for n in range(8)))
        for n in range(8):
            lines = await (await runtime.context(chat, f"chat {n}")).store.get("lines")
            assert lines == [f"{n}", "line 1", "line 2", "line 3"]


@in_a_loop
async def test_a_history_that_grows_costs_what_was_added(tmp_path: Path):
    class Long(Workflow):
        @step
        async def begin(self, ev: StartEvent) -> Counted:
            return Counted(turn=0)

        @step
        async def add(self, ctx: Context, ev: Counted) -> Counted | StopEvent:
            line = f"{ev.turn:4} " + "".join(chr(97 + (ev.turn * 7 + n * n) % 26) for n in range(2000))
            await ctx.store.set("history", [*await ctx.store.get("history", default=[]), line])
            return Counted(turn=ev.turn + 1) if ev.turn < 299 else StopEvent()

    async with holdfast.open_async(f"file:{tmp_path}/store", warn_bytes=2**20) as service:
        runtime = HoldfastRuntime(service)
        await runtime.run(Long(runtime=runtime, timeout=None), "long")
    assert sum(len(data) for data in contents(tmp_path).values()) < 3 * 300 * 2005 + 302 * 2048


# What an attacker could write


def hostile(canary: str) -> list[dict[str, Any]]:
    """Contexts that name what they must not: each would import or call something where names are believed."""
    popen = {"__is_component": True, "qualified_name": "subprocess.Popen", "value": {"args": ["true"]}}
    model = {"__is_pydantic": True, "qualified_name": f"{canary}.Model", "value": {}}
    pickled = base64.b64encode(pickle.dumps(print)).decode()
    run: dict[str, Any] = {"version": 2, "is_running": True}
    json_text = SafeSerializer().serialize
    tree = {"_tree": "dict", "_data": {"x": model}}
    waiter = {
        "waiter_id": "w",
        "event": json_text(StartEvent()),
        "waiting_for_event": f"{canary}.Model",
    }
    states = [
        tree,
        {"_tree": "model", **model},
        {"_data": {"x": pickled}},
        {"_tree": "dict", "_data": {"x": popen}},
        {"_tree": "dict", "_data": {"x": {"__is_plain": [["a", model]]}}},
        {"_tree": "dict", "_data": {"x": {"__is_plain": 7}}},
        pickled,
        f'{{"__is_pydantic": true, "qualified_name": "{canary}.Model", "value": {{}}}}',
        7,
    ]
    workers = [
        {
            "queue": [
                {"event": f'{{"__is_component": true, "qualified_name": "{canary}.Model", "value": {{}}}}'}
            ]
        },
        {"queue": [{"event": pickled}]},
        {"collected_waiters": [waiter]},
        {"queue": 7},
    ]
    in_states = [{"run": run, "state": {"store_type": "in_memory", "state_data": data}} for data in states]
    in_workers = [{"run": {**run, "workers": {"hold": worker}}, "state": {}} for worker in workers]
    legacy = {"run": {"queues": {"hold": f'["{canary}"]'}}, "state": {"state_data": tree}}
    strange = {"run": {"version": 2}, "state": {"store_type": f"{canary}.Store", "state_data": {}}}
    return [*in_states, *in_workers, legacy, strange, {"run": {"version": 99}, "state": {}}]


@in_a_loop
async def test_nothing_in_a_store_is_imported_or_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "canary_of_runs.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with HoldfastRuntime("memory:") as runtime:
        service, hold = await runtime.service(), Hold(runtime=runtime)
        for n, context in enumerate(hostile("canary_of_runs")):
            state = WorkflowState(context=context, metadata={"run": f"r{n}"})
            await service.create_checkpoint(f"llama-run:r{n}", state)
            with pytest.raises(ContextSerdeError):
                await runtime.context(hold, f"r{n}")
        assert "canary_of_runs" not in sys.modules


@pytest.mark.parametrize(
    "told",
    [
        {"__is_pydantic": True, "qualified_name": "canary_of_runs.Model", "value": {}},
        {"__is_pydantic": True, "qualified_name": "workflows.events.StartEvent", "value": {}},
        {"result": {"__is_component": True, "qualified_name": "os.system", "value": "true"}},
        {},
    ],
)
@in_a_loop
async def test_an_end_that_is_none_is_refused(told: dict[str, Any]):
    async with HoldfastRuntime("memory:") as runtime:
        state = WorkflowState(outputs=[told], metadata={"run": "r"})
        await (await runtime.service()).create_checkpoint("llama-run:r", state)
        with pytest.raises(ContextSerdeError):
            await runtime.run(Hold(runtime=runtime), "r")


@in_a_loop
async def test_exceptions_of_retries_are_made_only_of_built_in_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "canary_of_faults.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    async with HoldfastRuntime("memory:") as runtime:
        queued = {
            "event": SafeSerializer().serialize(StartEvent(value=1)),
            "last_exception": {"exception_type": "canary_of_faults.Fault", "exception_message": "x"},
        }
        run = {"version": 2, "is_running": True, "workers": {"hold": {"queue": [queued]}}}
        state = WorkflowState(context={"run": run, "state": {}}, metadata={"run": "r"})
        await (await runtime.service()).create_checkpoint("llama-run:r", state)
        assert await runtime.run(Hold(runtime=runtime), "r") == 1
        assert "canary_of_faults" not in sys.modules


@in_a_loop
async def test_the_context_of_one_run_is_not_accepted_as_another():
    async with HoldfastRuntime("memory:") as runtime:
        hold = Hold(runtime=runtime)
        await runtime.run(hold, "mine", value=1)
        service = await runtime.service()
        await service.fork_workflow("llama-run:mine@latest", "llama-run:yours")
        with pytest.raises(CheckpointCorruptError, match="another run"):
            await runtime.run(hold, "yours")


@in_a_loop
async def test_bytes_that_were_changed_in_the_store_are_found(tmp_path: Path):
    async with HoldfastRuntime(f"file:{tmp_path}/store") as runtime:
        await runtime.run(Hold(runtime=runtime), "r", value="a value to be changed")
    found = {path: data for path, data in contents(tmp_path).items() if b"a value to be changed" in data}
    assert found
    for path, data in found.items():
        path.write_bytes(data.replace(b"to be changed", b"that was here"))
    async with HoldfastRuntime(f"file:{tmp_path}/store") as runtime:
        with pytest.raises(holdfast.CheckpointError):
            await runtime.run(Hold(runtime=runtime), "r")


# Properties

TAGS = ["__is_pydantic", "__is_component", "__is_plain", "qualified_name", "value", "_data", "_tree"]
KEYS = st.text(max_size=5) | st.sampled_from(TAGS)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=150)
def test_any_plain_value_comes_back_as_it_was_whatever_it_looks_like(value: Any):
    serializer = SafeSerializer([Offer])
    assert serializer.deserialize(serializer.serialize(value)) == value
    assert serializer.deserialize_value(serializer.serialize_value(value)) == value


@given(st.lists(PLAIN, max_size=4))
@settings(max_examples=15, deadline=None)
def test_any_plain_value_comes_back_from_a_store(values: list[Any]):
    async def there_and_back() -> None:
        async with holdfast.open_async("memory:", redact=False) as service:
            runtime = HoldfastRuntime(service)
            hold = Hold(runtime=runtime)
            for n, value in enumerate([*values, "\ud800 lone", "nul \0"]):
                assert await runtime.run(hold, f"r{n}", value=value) == value
                assert await runtime.run(hold, f"r{n}") == value
                assert await (await runtime.context(hold, f"r{n}")).store.get("value") == value

    asyncio.run(there_and_back())


@pytest.mark.parametrize("name", ["../../x", "a\0b", "\ud800", "@latest", "n" * 5000, " ", "run:a/b%2F"])
@in_a_loop
async def test_a_hostile_name_is_just_a_name(name: str, tmp_path: Path):
    async with HoldfastRuntime(f"file:{tmp_path}/store") as runtime:
        hold = Hold(runtime=runtime)
        assert await runtime.run(hold, name, value=[name]) == [name]
        assert await runtime.run(hold, name) == [name]
    assert all(path.is_relative_to(tmp_path / "store") for path in contents(tmp_path))
