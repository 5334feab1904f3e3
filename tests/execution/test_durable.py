from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService, Retry
from holdfast.domain.errors import (
    AttemptOverError,
    CheckpointError,
    DeclarationError,
    GraphChangedError,
    InvalidIdError,
    LeaseHeldError,
    NoValidCheckpointError,
    ResultLostError,
    UnsupportedTypeError,
)
from tests.execution.gates import Gates
from tests.execution.runs import damage, kinds, latest, opened, types


class Counted:
    """Counts what is called, and fails where it is told to."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.failing: set[Any] = set()

    def __call__(self, value: Any) -> Any:
        self.calls.append(value)
        if value in self.failing:
            raise ValueError(f"no {value}")
        return [value]


@pytest.fixture
def counted() -> Counted:
    return Counted()


def doubled(service: CheckpointService, counted: Counted, **options: Any) -> Any:
    """A durable function of two steps."""
    one = holdfast.step(name="one")(counted)
    two = holdfast.step(name="two")(counted)

    @holdfast.durable(service, id="run-{value}", **options)
    def double(value: str) -> list[str]:
        return [*one(value), *two(value + "!")]

    return double


def test_a_call_that_failed_goes_on_after_the_steps_that_were_done(counted: Counted) -> None:
    with opened() as service:
        double = doubled(service, counted)
        counted.failing = {"a!"}
        with pytest.raises(ValueError, match="no a!"):
            double("a")
        assert latest(service, "run-a").status == "failed"
        counted.failing = set()
        assert double("a") == ["a", "a!"]
    assert counted.calls == ["a", "a!", "a!"]


def test_a_call_under_an_id_that_is_over_answers_its_result(counted: Counted) -> None:
    with opened() as service:
        double = doubled(service, counted)
        assert double("a") == double("a") == ["a", "a!"]
        assert len(counted.calls) == 2
        assert double("b") == ["b", "b!"]


def test_a_run_is_a_workflow_like_any_other(counted: Counted) -> None:
    with opened() as service:
        doubled(service, counted)("a")
        state = latest(service, "run-a")
        assert state.status == "completed" and not state.resumable
        assert [task["id"] for task in state.tasks] == ["one", "two"]
        assert state.context == {"inputs": {"value": "a"}} and state.outputs == [["a", "a!"]]
        assert kinds(service, "run-a") == ["workflow_start", "workflow_complete"]
        assert types(service, "run-a").count("AGENT_COMPLETED") == 2
        [newest, _] = service.list_checkpoints("run-a")
        assert str(newest.status) == "completed"


def test_what_a_caller_does_to_a_result_is_not_recorded() -> None:
    @holdfast.step
    def found() -> list[int]:
        return [1]

    with opened() as service:

        @holdfast.durable(service)
        def gather() -> list[int]:
            found().append(2)
            return found()

        gather()
        assert [task["result"] for task in latest(service, "gather").tasks] == [[1], [1]]


def test_a_result_comes_back_with_its_types_and_as_a_copy() -> None:
    value = ({1, 2}, (b"x", 2**70), {"nested": [None]})
    fails = [True]
    seen: list[Any] = []
    step = holdfast.step(name="value")(lambda: value)

    with opened() as service:

        @holdfast.durable(service)
        def typed() -> Any:
            seen.append(step())
            seen[-1][2]["nested"].append(1)
            if fails:
                raise ValueError(fails.pop())
            return step()

        with pytest.raises(ValueError, match="True"):
            typed()
        value = ({1, 2}, (b"x", 2**70), {"nested": [None]})
        assert typed() == value
    assert [type(one) for one in seen] == [tuple, tuple]


def test_outside_of_a_durable_function_a_step_is_the_function(counted: Counted) -> None:
    @holdfast.step(retry=Retry(attempts=3, delay_seconds=0))
    async def fetch(value: str) -> Any:
        return counted(value)

    assert holdfast.step(name="plain")(counted)("a") == ["a"]
    assert asyncio.run(fetch("b")) == ["b"]
    counted.failing = {"c"}
    with pytest.raises(ValueError, match="no c"):
        asyncio.run(fetch("c"))
    assert counted.calls == ["a", "b", "c"]


def test_async_steps_at_once_are_each_done_once(counted: Counted) -> None:
    @holdfast.step
    async def fetch(page: int) -> Any:
        await asyncio.sleep(0)
        return counted(page)

    with opened() as service:

        @holdfast.durable(service)
        async def gather() -> Any:
            # One that fails does not stop the others: they are under way.
            results = await asyncio.gather(*(fetch(page) for page in range(4)), return_exceptions=True)
            if faults := [one for one in results if isinstance(one, BaseException)]:
                raise faults[0]
            return results

        counted.failing = {2}
        with pytest.raises(ValueError, match="no 2"):
            asyncio.run(gather())
        counted.failing = set()
        assert asyncio.run(gather()) == [[0], [1], [2], [3]]
    assert sorted(counted.calls) == [0, 1, 2, 2, 3]


def test_async_durable_functions_run_beside_each_other(counted: Counted) -> None:
    @holdfast.step
    async def fetch(page: int) -> Any:
        await asyncio.sleep(0)
        return counted(page)

    async def main(service: CheckpointService) -> Any:
        @holdfast.durable(service, id="page-{page}")
        async def run(page: int) -> Any:
            return await fetch(page)

        return await asyncio.gather(*(run(page) for page in range(8)))

    with opened() as service:
        assert asyncio.run(main(service)) == [[page] for page in range(8)]
        assert len(service.workflows()) == 8


def test_a_sync_durable_function_works_while_an_event_loop_runs(counted: Counted) -> None:
    async def main(double: Any) -> Any:
        return double("a")

    with opened() as service:
        assert asyncio.run(main(doubled(service, counted))) == ["a", "a!"]


def test_a_step_is_tried_again_as_often_as_it_says(counted: Counted) -> None:
    counted.failing = {"a"}

    @holdfast.step(name="slow", retry=Retry(attempts=3, delay_seconds=0))
    def slow(value: str) -> Any:
        if len(counted.calls) == 2:
            counted.failing = set()
        return counted(value)

    with opened() as service:

        @holdfast.durable(service)
        def work() -> Any:
            return slow("a")

        assert work() == ["a"]
        assert types(service, "work").count("AGENT_FAILED") == 2
        [task] = latest(service, "work").tasks
        assert task["attempt"] == 3


def test_what_differs_from_call_to_call_is_refused_by_name(counted: Counted) -> None:
    step = holdfast.step(name="told")(counted)
    given = ["first", "second"]

    with opened() as service:

        @holdfast.durable(service)
        def work() -> Any:
            step(given[0])
            raise ValueError("stop")

        with pytest.raises(ValueError, match="stop"):
            work()
        given.pop(0)
        with pytest.raises(GraphChangedError, match="'told' has a result for other arguments"):
            work()
    assert counted.calls == ["first"]


def test_a_key_is_what_a_step_is_known_by_whatever_it_is_given(counted: Counted) -> None:
    step = holdfast.step(name="told", key=lambda value: value[0])(counted)
    given = ["a1", "a2"]

    with opened() as service:

        @holdfast.durable(service)
        def work() -> Any:
            found = step(given[0]), step("b")
            if len(given) == 2:
                raise ValueError("stop")
            return found

        with pytest.raises(ValueError, match="stop"):
            work()
        given.pop(0)
        assert work() == (["a1"], ["b"])
        assert [task["id"] for task in latest(service, "work").tasks] == ["told[a]", "told[b]"]
    assert counted.calls == ["a1", "b"]


def test_steps_inside_of_steps_are_kept_apart(counted: Counted) -> None:
    inner = holdfast.step(name="inner")(counted)

    @holdfast.step
    def chapter(number: int) -> Any:
        inner(f"{number}a")
        return inner(f"{number}b")

    with opened() as service:

        @holdfast.durable(service)
        def book() -> Any:
            return [chapter(1), chapter(2)]

        counted.failing = {"2b"}
        with pytest.raises(ValueError, match="no 2b"):
            book()
        counted.failing = set()
        assert book() == [["1b"], ["2b"]]
        ids = {task["id"] for task in latest(service, "book").tasks}
    assert ids == {"chapter", "chapter>inner", "chapter>inner#2"} | {
        name.replace("chapter", "chapter#2") for name in ("chapter", "chapter>inner", "chapter>inner#2")
    }
    assert counted.calls == ["1a", "1b", "2a", "2b", "2b"]


def test_a_step_that_is_kept_from_another_workflow_has_failed_as_by_any_error(counted: Counted) -> None:
    @holdfast.step(retry=Retry(attempts=2, delay_seconds=0))
    def asks(value: str) -> Any:
        return other(value)

    with opened() as service:
        other = doubled(service, counted)

        @holdfast.durable(service)
        def work() -> Any:
            return asks("a")

        lease = service.acquire_lease("run-a", "somebody")
        with pytest.raises(LeaseHeldError):
            work()
        assert types(service, "work").count("AGENT_FAILED") == 2
        assert latest(service, "work").status == "failed"
        service.release_lease(lease)
        assert work() == ["a", "a!"]


def test_a_child_that_is_forked_inside_and_exits_leaves_the_run_to_its_parent(tmp_path: Path) -> None:
    parent, one = os.getpid(), holdfast.step(name="one")(lambda: 1)

    @holdfast.durable(str(tmp_path / "store"))
    def work() -> tuple[int, int]:
        child = os.fork()
        if child == 0:
            sys.exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), one()

    try:
        assert work() == (7, 1)
    except SystemExit as end:
        if os.getpid() != parent:
            os._exit(int(str(end.code)))
        raise
    finally:
        if os.getpid() != parent:
            os._exit(1)
    with holdfast.open(str(tmp_path / "store")) as service:
        assert latest(service, "work").status == "completed"


@pytest.mark.parametrize("at_once", [True, False])
def test_results_inside_of_steps_are_found_by_what_those_were_given(at_once: bool) -> None:
    people, is_dying, told = ["ann", "bob"], [True], list[str]()

    @holdfast.step
    async def new_id() -> int:
        told.append("id")
        return len(told)

    @holdfast.step
    async def entry() -> list[int]:
        return [await new_id()]

    @holdfast.step
    async def order(who: str) -> str:
        number = await entry()
        if is_dying and (at_once or who == people[-1]):
            raise ValueError("dies after its id is recorded")
        return f"{who}: {number}"

    with opened() as service:

        @holdfast.durable(service)
        async def orders() -> list[str]:
            if at_once:
                found = await asyncio.gather(*map(order, people), return_exceptions=True)
            else:
                found = [await order(who) for who in people]
            if is_dying:
                raise ValueError("dies")
            return [str(one) for one in found]

        with pytest.raises(ValueError, match="dies"):
            asyncio.run(orders())
        is_dying.clear()
        people.reverse()
        assert asyncio.run(orders()) == ["bob: [2]", "ann: [1]"]
        assert told == ["id", "id"]
        assert types(service, "orders").count("AGENT_STARTED") == 4


def test_a_step_around_others_is_told_to_begin_with_the_first_result_inside_of_it(counted: Counted) -> None:
    inner = holdfast.step(name="inner")(counted)
    alone = holdfast.step(name="alone")(counted)

    @holdfast.step
    def chapter(number: int) -> Any:
        return [inner(1), inner(number)]

    with opened() as service:

        @holdfast.durable(service)
        def book() -> Any:
            return [alone(0), chapter(2)]

        book()
        steps = [(event.type, event.step_id) for event in service.events("book") if "AGENT" in event.type]
        assert steps == [
            ("AGENT_COMPLETED", "alone"),
            ("AGENT_STARTED", "chapter"),
            ("AGENT_COMPLETED", "chapter>inner"),
            ("AGENT_COMPLETED", "chapter>inner#2"),
            ("AGENT_COMPLETED", "chapter"),
        ]
        assert latest(service, "book").agent_states["chapter"]["status"] == "completed"


def test_threads_with_the_context_of_the_function_record_their_steps(counted: Counted) -> None:
    step = holdfast.step(name="part")(counted)

    with opened() as service, ThreadPoolExecutor(4) as pool:

        @holdfast.durable(service)
        def work() -> Any:
            contexts = [contextvars.copy_context() for _ in range(8)]
            futures = [pool.submit(one.run, step, part) for part, one in enumerate(contexts)]
            return sorted(future.result()[0] for future in futures)

        assert work() == list(range(8))
        assert len(latest(service, "work").tasks) == 8


@pytest.mark.parametrize("url", ["file:{}", "sqlite:{}.db"])
def test_two_callers_of_one_id_keep_each_other_out(tmp_path: Path, url: str) -> None:
    inside, go_on = threading.Event(), threading.Event()
    store = url.format(tmp_path / "store")

    @holdfast.durable(store)
    def work() -> str:
        inside.set()
        go_on.wait(60)
        return "done"

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        assert inside.wait(60)
        with pytest.raises(LeaseHeldError):
            work()
        go_on.set()
        assert first.result() == "done"
    assert work() == "done"


def test_another_process_that_has_the_id_is_respected_and_its_death_is_noticed(tmp_path: Path) -> None:
    program = (
        "import sys, holdfast\n"
        "@holdfast.durable(sys.argv[1])\n"
        "def work():\n"
        "    print('inside', flush=True)\n"
        "    sys.stdin.read()\n"
        "work()\n"
    )
    store = str(tmp_path / "store")

    @holdfast.durable(store)
    def work() -> str:
        return "done"

    command = [sys.executable, "-c", program, store]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"inside\n"
        with pytest.raises(LeaseHeldError):
            work()
        other.kill()
        other.wait()
    assert work() == "done"


def test_an_id_belongs_to_one_function_and_one_set_of_arguments(counted: Counted) -> None:
    with opened() as service:
        assert doubled(service, counted)("a") == ["a", "a!"]

        @holdfast.durable(service, id="run-a")
        def other() -> None: ...

        with pytest.raises(GraphChangedError, match="belongs to 'double'"):
            other()

        @holdfast.durable(service, id="run-a", name="double")
        def renamed(value: str) -> None: ...

        assert renamed("a") == ["a", "a!"]
        with pytest.raises(GraphChangedError, match="other arguments"):
            renamed("b")
        service.create_checkpoint("by-hand", {"i": 1})
        with pytest.raises(GraphChangedError, match="a workflow of another kind"):
            holdfast.durable(service, id="by-hand")(other)()


def test_what_cannot_be_stored_of_the_arguments_does_not_count(counted: Counted) -> None:
    class Client:
        def ask(self, value: str) -> Any:
            return counted(value)

    @holdfast.step
    def asked(client: Client, value: str) -> Any:
        return client.ask(value)

    class Agent:
        def __init__(self, name: str) -> None:
            self.name = name

        def answer(self, client: Client, question: str) -> Any:
            return asked(client, question)

    with opened() as service:
        run = holdfast.durable(service, id="{self.name}-{question}")(Agent.answer)
        assert run(Agent("ann"), Client(), "why") == ["why"]
        assert run(Agent("ann"), Client(), question="why") == ["why"]
        assert latest(service, "ann-why").context == {"inputs": {"question": "why"}}
    assert counted.calls == ["why"]


def test_types_of_the_application_are_arguments_and_results(tmp_path: Path) -> None:
    registry = holdfast.TypeRegistry()

    @registry.register
    @dataclass
    class Offer:
        vendor: str

    calls: list[str] = []

    @holdfast.step
    def cheaper(offer: Offer) -> Offer:
        calls.append(offer.vendor)
        return Offer(offer.vendor.lower())

    app = holdfast.App(types=registry)

    @holdfast.durable(str(tmp_path / "store"), id=lambda offer: f"buy-{offer.vendor}", app=app)
    def buy(offer: Offer) -> Offer:
        return cheaper(offer)

    assert buy(Offer("B")) == buy(Offer("B")) == Offer("b")
    assert calls == ["B"]


def test_a_result_that_cannot_be_stored_is_the_callers_error_where_it_happens() -> None:
    strange = holdfast.step(name="strange")(object)

    with opened() as service:

        @holdfast.durable(service)
        def work() -> Any:
            return strange()

        with pytest.raises(UnsupportedTypeError, match="object"):
            work()
        assert latest(service, "work").status == "failed"

        @holdfast.durable(service)
        def last() -> Any:
            return object()

        with pytest.raises(UnsupportedTypeError, match="object"):
            last()
        assert latest(service, "last").status == "failed"


def test_an_interrupted_call_is_stopped_and_can_be_resumed(counted: Counted) -> None:
    step = holdfast.step(name="one")(counted)
    stops = [True]

    with opened() as service:

        @holdfast.durable(service)
        def work() -> Any:
            found = step("a")
            if stops and stops.pop():
                raise KeyboardInterrupt
            return found

        with pytest.raises(KeyboardInterrupt):
            work()
        assert latest(service, "work").status == "stopped"
        assert work() == ["a"]
    assert counted.calls == ["a"]


def test_a_cancelled_coroutine_is_stopped_and_leaves_no_lease() -> None:
    async def main(service: CheckpointService) -> None:
        begun = asyncio.Event()

        @holdfast.step
        async def fetch() -> Any:
            begun.set()
            await asyncio.Event().wait()

        @holdfast.durable(service)
        async def work() -> Any:
            return await fetch()

        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with opened() as service:
        asyncio.run(main(service))
        assert latest(service, "work").status == "stopped"
        assert service.lease_of("work") is None


def test_a_step_that_outlives_its_function_records_nothing() -> None:
    left: list[asyncio.Task[Any]] = []
    go_on = asyncio.Event()

    @holdfast.step
    async def slow() -> int:
        await go_on.wait()
        return 1

    async def main(service: CheckpointService) -> Any:
        @holdfast.durable(service)
        async def work() -> str:
            left.append(asyncio.create_task(slow()))
            await asyncio.sleep(0)
            return "done"

        assert await work() == "done"
        go_on.set()
        return await asyncio.gather(*left, return_exceptions=True)

    with opened() as service:
        [fault] = asyncio.run(main(service))
        assert isinstance(fault, AttemptOverError)
        assert latest(service, "work").tasks == []


def test_a_durable_function_inside_of_another_is_a_run_of_its_own(counted: Counted) -> None:
    with opened() as service:
        inner = doubled(service, counted)

        @holdfast.durable(service)
        def outer() -> Any:
            return inner("a")

        assert outer() == ["a", "a!"]
        assert service.workflows() == ["outer", "run-a"]
        assert latest(service, "outer").tasks == []


def test_many_steps_are_consolidated_by_checkpoints(counted: Counted) -> None:
    step = holdfast.step(name="one")(counted)

    with opened() as service:

        @holdfast.durable(service)
        def work() -> int:
            return sum(step(number)[0] for number in range(250))

        assert work() == sum(range(250))
        assert len(kinds(service, "work")) == 4
        assert len(latest(service, "work").tasks) == 250


def test_a_run_of_which_nothing_verifies_is_refused_or_goes_on_from_its_events(
    tmp_path: Path, counted: Counted
) -> None:
    store = tmp_path / "store"
    counted.failing = {"a!"}
    with holdfast.open(str(store)) as service, pytest.raises(ValueError, match="no a!"):
        doubled(service, counted)("a")
    damage(store)
    counted.failing = set()
    with holdfast.open(str(store)) as service, pytest.raises(NoValidCheckpointError):
        doubled(service, counted)("a")
    with holdfast.open(str(store), on_no_valid="fresh") as service:
        assert doubled(service, counted)("a") == ["a", "a!"]
    assert counted.calls == ["a", "a!", "a!"]


@pytest.mark.parametrize("room", ["events", "journal", "checkpoints", ""])
def test_a_result_that_somebody_changed_in_the_store_is_never_used(
    tmp_path: Path, counted: Counted, room: str
) -> None:
    store = tmp_path / "store"
    counted.failing = {"kelp!"}
    with holdfast.open(str(store)) as service, pytest.raises(ValueError, match="no kelp!"):
        doubled(service, counted)("kelp")
    for path in (path for path in (store / room).rglob("*") if path.is_file()):
        path.write_bytes(path.read_bytes().replace(b'["kelp"]', b'["gold"]'))
    counted.failing = set()
    with holdfast.open(str(store)) as service:
        try:
            assert doubled(service, counted)("kelp") == ["kelp", "kelp!"]
        except CheckpointError:
            # Told, and not worked with.
            assert counted.calls == ["kelp", "kelp!"]


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: holdfast.durable("memory:")(lambda: 1), "has no name"),
        (lambda: holdfast.durable("memory:")(len), "nothing says which calls"),
        (lambda: holdfast.durable("memory:", id="{b}", name="f")(lambda a: a), "names 'b'"),
        (lambda: holdfast.step(name="a>b")(len), "holds one of"),
        (lambda: holdfast.step(_generator), "generator"),
    ],
)
def test_what_cannot_be_found_again_is_refused_when_it_is_declared(declare: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        declare()


def _generator() -> Any:
    yield 1


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 300, "\ud800"])
def test_an_argument_that_makes_no_id_is_refused_before_anything_runs(value: str, counted: Counted) -> None:
    with opened() as service:
        run = holdfast.durable(service, id="{value}", name="run")(counted.__call__)
        with pytest.raises(InvalidIdError):
            run(value)
        assert service.workflows() == [] and counted.calls == []


def test_the_names_and_the_docs_of_a_function_stay(counted: Counted) -> None:
    with opened() as service:
        double = doubled(service, counted)
        assert double.__name__ == "double" and not asyncio.iscoroutinefunction(double)

        @holdfast.durable(service)
        async def other() -> None:
            """Say so."""

        assert other.__doc__ == "Say so." and asyncio.iscoroutinefunction(other)


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_answer_that_is_kept_nowhere_is_raised_with_the_error(
    is_kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = Gates(monkeypatch, tmp_path)
    if not is_kept:
        gates.without_a_second()

    @holdfast.durable(gates.url)
    def work() -> int:
        gates.shut()
        return 7

    if is_kept:
        assert work() == 7 and len(gates.kept) == 1
        return
    with pytest.raises(ResultLostError, match="LOST") as told:
        work()
    assert told.value.result == 7 and told.value.place == "work"
