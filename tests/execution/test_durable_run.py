"""How the steps of a durable function are known again: by name and by what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import CheckpointService, Retry
from holdfast.domain.errors import AttemptOverError, GraphChangedError, LeaseLostError
from holdfast.domain.plain import TypeRegistry
from holdfast.execution.claim import Claim
from holdfast.execution.durable_run import DurableRun, Scope, StepSpec, current
from holdfast.execution.given import digest_of, numbered
from holdfast.execution.journal import Journal
from tests.execution.runs import latest, opened

TYPES = TypeRegistry()


def spec(name: str = "step", **more: Any) -> StepSpec:
    return StepSpec(name, lambda value: value, is_async=False, **more)


def run_after(
    service: CheckpointService,
    *calls: tuple[str, Any],
    claim: Claim | None = None,
    begun: Mapping[str, Any] | None = None,
) -> DurableRun:
    """A run in which an earlier process has recorded some steps: their ids and what they were given."""
    tasks: list[Any] = [
        {"id": step_id, "agent": "step", "result": f"of {value}", "given": _digest(value)}
        for step_id, value in calls
    ]
    states: dict[str, Any] = {
        step_id: {"status": "running", "attempt": 1, "given": _digest(value)}
        for step_id, value in (begun or {}).items()
    }
    states["x"] = "another state"
    fields = {"workflow_id": "WF-1", "tasks": [*tasks, "another task"], "agent_states": states}
    journal = Journal(service.recording, "WF-1", fields)
    return DurableRun(journal, claim or Claim(), TYPES)


def _digest(value: Any) -> str:
    return digest_of(numbered((value,), {}), TYPES)


def named(run: DurableRun, *values: Any, scope: Scope | None = None) -> list[tuple[str, bool]]:
    """Call a step several times: which steps these are, and whether their results are known."""
    place = scope or Scope(run)
    slots = [run.slot(spec(), place, (value,), {}) for value in values]
    return [(slot.step_id, slot.known is not None) for slot in slots]


def test_steps_are_numbered_in_the_order_of_their_calls() -> None:
    with opened() as service:
        assert named(run_after(service), "a", "b", "a") == [
            ("step", False),
            ("step#2", False),
            ("step#3", False),
        ]


def test_a_recorded_step_is_found_by_what_it_was_given_wherever_it_stands() -> None:
    with opened() as service:
        run = run_after(service, ("step", "a"), ("step#2", "b"))
        assert named(run, "b", "a", "c") == [("step#2", True), ("step", True), ("step#3", False)]


def test_equal_calls_have_their_results_in_order() -> None:
    with opened() as service:
        run = run_after(service, ("step#2", "a"), ("step#10", "a"), ("step", "a"))
        assert named(run, "a", "a", "a") == [("step", True), ("step#2", True), ("step#10", True)]


def test_a_step_that_was_at_work_beside_one_that_was_done_keeps_its_number() -> None:
    with opened() as service:
        run = run_after(service, ("step#2", "b"))
        assert named(run, "a", "b") == [("step", False), ("step#2", True)]


def test_a_step_that_was_begun_is_found_by_what_it_was_given_and_keeps_its_number_from_others() -> None:
    with opened() as service:
        run = run_after(service, ("step#2", "b"), begun={"step": "a", "step#3": "c"})
        assert named(run, "c", "b", "d", "a") == [
            ("step#3", False),
            ("step#2", True),
            ("step#4", False),
            ("step", False),
        ]


def test_results_inside_of_a_step_whose_start_was_not_told_are_found_by_its_number() -> None:
    with opened() as service:
        run = run_after(service, ("step>step", "x"))
        assert named(run, "a") == [("step", False)]
        assert named(run, "x", scope=Scope(run, "step>")) == [("step>step", True)]


def test_a_number_that_somebody_has_is_not_given_again() -> None:
    with opened() as service:
        run = run_after(service, ("step#2", "b"))
        assert named(run, "b", "a") == [("step#2", True), ("step#3", False)]


def test_a_call_with_other_arguments_than_the_recorded_one_is_refused() -> None:
    with opened() as service:
        run = run_after(service, ("step", "a"))
        with pytest.raises(GraphChangedError, match="other arguments"):
            named(run, "b")


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_any_order_finds_all_that_was_recorded_and_repeats_nothing(order: list[int], done: set[int]) -> None:
    first = {value: "step" if value == 0 else f"step#{value + 1}" for value in range(5)}
    with opened() as service:
        run = run_after(service, *((first[value], value) for value in sorted(done)))
        scope, slots = Scope(run), {}
        for value in order:
            try:
                slots[value] = run.slot(spec(), scope, (value,), {})
            except GraphChangedError:
                # Loud, and nothing is done: what is new stands where something else was recorded.
                assert value not in done
        assert all((slots[value].known or {})["result"] == f"of {value}" for value in done)
        assert len({slot.step_id for slot in slots.values()}) == len(slots)


def test_a_key_counts_only_its_own_repetitions() -> None:
    keyed = spec(key=lambda value: value[0])
    with opened() as service:
        run = run_after(service, ("step[a]", "whatever"))
        scope = Scope(run)
        slots = [run.slot(keyed, scope, (value,), {}) for value in ("a1", "b1", "a2")]
    assert [(slot.step_id, slot.known is not None, slot.given) for slot in slots] == [
        ("step[a]", True, None),
        ("step[b]", False, None),
        ("step[a]#2", False, None),
    ]


def test_scopes_count_for_themselves() -> None:
    with opened() as service:
        run = run_after(service, ("chapter#2>step", "a"))
        assert named(run, "a", scope=Scope(run, "chapter>")) == [("chapter>step", False)]
        assert named(run, "a", scope=Scope(run, "chapter#2>")) == [("chapter#2>step", True)]


def test_nothing_is_begun_for_somebody_who_lost_the_run() -> None:
    claim = Claim()
    with opened() as service:
        run = run_after(service, claim=claim)
        claim.lose()
        with pytest.raises(LeaseLostError):
            named(run, "a")
        run.fail(ValueError("is not recorded"))
        assert service.workflows() == []


def test_steps_belong_to_the_function_that_was_entered() -> None:
    with opened() as service:
        run = run_after(service)
        assert current() is None
        with run.entered():
            scope = current()
            assert scope is not None and scope.run is run and scope.prefix == ""
        assert current() is None


AT_ONCE = Retry(attempts=3, delay_seconds=0)


def retried(service: CheckpointService, work: Callable[[int], Any], **more: Any) -> Any:
    """Run a step that is tried again, which is told the number of its attempt."""
    attempts: list[int] = []

    @holdfast.step(name="settle", retry=more.pop("retry", AT_ONCE))
    def settle() -> Any:
        attempts.append(len(attempts) + 1)
        return work(attempts[-1])

    return holdfast.durable(service, id="WF-1", name="month", **more)(settle)()


def ids(service: CheckpointService) -> list[str]:
    return [task["id"] for task in latest(service).tasks]


class Paid:
    """Counts who was paid; a list is answered, which its caller may change."""

    def __init__(self, **step: Any) -> None:
        self.calls: list[str] = []
        self.failing: set[str] = set()
        self.step = holdfast.step(name="pay", **step)(self._pay)

    def _pay(self, who: str) -> list[Any]:
        self.calls.append(who)
        if who in self.failing:
            raise ConnectionError(f"no {who}")
        return [who, len(self.calls)]


def failing(attempt: int, until: int = 3) -> None:
    if attempt < until:
        raise ConnectionError("the archive is away")


@pytest.mark.parametrize("key", [None, lambda who: who])
def test_the_next_attempt_of_a_step_finds_what_the_one_before_has_recorded(key: Any) -> None:
    paid = Paid(key=key)

    def work(attempt: int) -> Any:
        found = [paid.step("ann"), paid.step("bob"), paid.step("ann")]
        answer = [*map(tuple, found)]
        found[0].append("changed by who has it")
        failing(attempt)
        return answer

    with opened() as service:
        # Equal calls have their results in the order that they were made in.
        assert retried(service, work) == [("ann", 1), ("bob", 2), ("ann", 3)]
        expected = ["pay", "pay#2", "pay#3"] if key is None else ["pay[ann]", "pay[bob]", "pay[ann]#2"]
        assert ids(service) == [*(f"settle>{name}" for name in expected), "settle"]
    assert paid.calls == ["ann", "bob", "ann"]


def test_what_an_earlier_process_recorded_is_found_by_every_attempt() -> None:
    paid, is_mended = Paid(), list[bool]()

    def work(attempt: int) -> Any:
        answer = paid.step("ann")
        failing(attempt, until=2 if is_mended else 9)
        return answer

    with opened() as service:
        with pytest.raises(ConnectionError):
            retried(service, work)
        is_mended.append(True)
        assert retried(service, work) == ["ann", 1]
    assert paid.calls == ["ann"]


def test_an_attempt_finds_what_was_recorded_deep_inside_of_the_one_before() -> None:
    paid, attempts = Paid(), list[int]()

    @holdfast.step
    def chapter(number: int) -> Any:
        answer = paid.step(f"of {number}")
        failing(attempts[-1] if number == 2 else 3)
        return answer

    def work(attempt: int) -> Any:
        attempts.append(attempt)
        # In whatever order: each is known by what it was given.
        numbers = (1, 2) if attempt == 1 else (2, 1)
        return sorted(chapter(number) for number in numbers)

    with opened() as service:
        assert retried(service, work) == [["of 1", 1], ["of 2", 2]]
        assert sorted(ids(service)) == [
            *("settle", "settle>chapter", "settle>chapter#2"),
            *("settle>chapter#2>pay", "settle>chapter>pay"),
        ]
    assert paid.calls == ["of 1", "of 2"]


def test_a_step_that_failed_is_tried_again_under_its_name_and_those_before_it_are_not() -> None:
    paid = Paid()

    def work(attempt: int) -> Any:
        paid.failing = {"bob"} if attempt == 1 else set()
        return paid.step("ann"), paid.step("bob"), paid.step("eve")

    with opened() as service:
        retried(service, work)
        assert ids(service) == ["settle>pay", "settle>pay#2", "settle>pay#3", "settle"]
    assert paid.calls == ["ann", "bob", "bob", "eve"]


def test_other_arguments_in_the_next_attempt_are_refused_as_they_are_after_a_crash() -> None:
    paid, told = Paid(), list[BaseException]()

    def work(attempt: int) -> Any:
        try:
            paid.step(f"ann {attempt}")
        except GraphChangedError as refusal:
            told.append(refusal)
            raise
        raise ConnectionError

    with opened() as service, pytest.raises(GraphChangedError, match="'settle>pay' has a result for other"):
        retried(service, work)
    assert paid.calls == ["ann 1"] and len(told) == 2


def test_what_is_left_behind_of_an_attempt_takes_no_step_while_the_next_one_is_made() -> None:
    calls, left = list[str](), list[asyncio.Task[Any]]()
    is_paid, go_on = asyncio.Event(), asyncio.Event()

    @holdfast.step
    async def pay(who: str) -> str:
        calls.append(who)
        return who

    async def both() -> Any:
        await pay("ann")
        is_paid.set()
        await go_on.wait()
        return await pay("ann")

    @holdfast.step(retry=AT_ONCE)
    async def settle() -> Any:
        if not left:
            left.append(asyncio.ensure_future(both()))
            await pay("bob")
            await is_paid.wait()
            raise ConnectionError
        go_on.set()
        with pytest.raises(AttemptOverError, match="something of it goes on"):
            await left[0]
        return [await pay("ann"), await pay("bob")]

    with opened() as service:
        assert asyncio.run(holdfast.durable(service)(settle)()) == ["ann", "bob"]
    assert sorted(calls) == ["ann", "bob"]


def test_a_step_that_is_still_at_work_keeps_its_name_from_the_next_attempt() -> None:
    left, is_at_work, go_on = list[asyncio.Task[str]](), asyncio.Event(), asyncio.Event()

    @holdfast.step
    async def pay(who: str) -> str:
        if is_at_work.is_set():
            return "again"
        is_at_work.set()
        await go_on.wait()
        return "late"

    @holdfast.step(retry=AT_ONCE)
    async def settle() -> Any:
        if left:
            answer = await pay("ann")
            go_on.set()
            return answer, await left[0]
        left.append(asyncio.ensure_future(pay("ann")))
        await is_at_work.wait()
        raise ConnectionError

    with opened() as service:
        assert asyncio.run(holdfast.durable(service, id="WF-1")(settle)()) == ("again", "late")
        assert ids(service) == ["settle>pay#2", "settle>pay", "settle"]


def test_a_step_that_finds_nothing_more_says_so_to_whoever_called_it() -> None:
    raised = [StopIteration("once"), StopIteration("twice"), StopIteration("thrice")]
    told = list(raised)

    @holdfast.step(retry=AT_ONCE)
    def take() -> None:
        raise told.pop(0)

    with opened() as service:
        with pytest.raises(StopIteration) as caught:
            holdfast.durable(service, id="WF-1", name="all")(lambda: take())()
        assert caught.value is raised[-1] and told == []
        failed = [event.data["error"]["message"] for event in service.events("WF-1", type="AGENT_FAILED")]
        assert failed == ["once", "twice", "thrice"]
        assert latest(service).status == "failed"


def test_branches_that_come_in_another_order_in_the_next_attempt_find_their_own() -> None:
    calls, orders = list[str](), iter([("ann", "bob"), ("bob", "ann")])

    @holdfast.step
    def pay(who: str) -> str:
        calls.append(who)
        if calls == ["ann", "bob"]:
            raise ConnectionError("the bank is away")
        return f"paid {who}"

    @holdfast.step(retry=Retry(attempts=2, delay_seconds=0))
    def settle() -> list[str]:
        # As branches do that run at once, and of which one is quicker the next time.
        return sorted([pay(who) for who in next(orders)])

    with opened() as service:
        assert holdfast.durable(service, id="W", name="month")(settle)() == ["paid ann", "paid bob"]
    assert calls == ["ann", "bob", "bob"]
