"""How the steps of a durable function are known again: by name and by what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointService
from holdfast.domain.errors import GraphChangedError, LeaseLostError
from holdfast.domain.plain import TypeRegistry
from holdfast.execution.claim import Claim
from holdfast.execution.durable_run import DurableRun, Scope, StepSpec, current
from holdfast.execution.given import digest_of, numbered
from holdfast.execution.journal import Journal
from tests.execution.runs import opened

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
