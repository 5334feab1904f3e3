"""Results are found by step and by agent, of items and of rounds, and only once they are all there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidStateError, StateTooLargeError
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_SKIPPED, STAGE_UPDATED
from holdfast.execution.journal import Fact, Journal
from holdfast.execution.plan import Agent, Plan, Stage, StageKind, make_plan
from holdfast.execution.results import Results, parted, step_name
from tests.application.services import make_service
from tests.execution.journals import at_once, begun
from tests.execution.narrow_stores import LARGE, NarrowStore
from tests.execution.runs import opened


def work(ctx: object, item: object = None) -> None:
    """Do nothing."""


def several(view: object) -> list[int]:
    return [1, 2]


def plan() -> Plan:
    judge = Agent("judge", work, "l", is_evaluator=True)
    stages = [
        Stage("plan", StageKind.SEQUENTIAL, (Agent("plan", work, "plan"),)),
        Stage("research", StageKind.SEQUENTIAL, (Agent("research", work, "research", each=several),)),
        Stage(
            "l", StageKind.LOOP, (Agent("draft", work, "l"), Agent("parts", work, "l", each=several), judge)
        ),
    ]
    return make_plan("w", {stage.name: stage for stage in stages})


@pytest.fixture
def journal() -> Iterator[Journal]:
    with opened() as service:
        yield begun(service)


def finish(journal: Journal, step_id: str, result: Any) -> None:
    journal.note(Fact(AGENT_COMPLETED, {"attempt": 1, "result": result}, step_id, step_id))


def know(journal: Journal, stage: str, **state: Any) -> None:
    journal.note(Fact(STAGE_UPDATED, {"stage": stage, "state": state}, "run"))


def items(*keys: str) -> list[dict[str, Any]]:
    return [{"key": key, "item": key} for key in keys]


agents = st.text(st.characters(exclude_characters="#[]>/", codec="utf-8"), min_size=1, max_size=5)
keys = st.none() | st.text(max_size=5)
rounds = st.integers(1, 12)


@given(agents, keys, rounds, agents, keys, rounds)
def test_different_steps_have_different_names(agent, key, iteration, agent2, key2, iteration2) -> None:
    same = (agent, key, iteration) == (agent2, key2, iteration2)
    assert (step_name(agent, key, iteration) == step_name(agent2, key2, iteration2)) is same


@given(agents, keys, rounds, st.sampled_from(["", ">calc", ">calc#2>more"]))
def test_the_agent_is_found_in_the_name_of_a_step(agent, key, iteration, spawned) -> None:
    step = step_name(agent, key, iteration) + spawned
    found, rest = parted(step)
    assert found == agent and found + rest == step


def test_steps_are_named_after_item_and_round() -> None:
    assert step_name("plan") == "plan"
    assert step_name("research", "0") == "research[0]"
    assert step_name("draft", None, 2) == "draft#2"
    assert step_name("parts", "ü", 3) == "parts[ü]#3"


def test_a_result_is_there_once_it_is_recorded(journal: Journal) -> None:
    results = Results(journal, plan())
    assert not results.has("plan")
    with pytest.raises(InvalidStateError, match="'plan' has no result yet"):
        results.of_agent("plan")
    finish(journal, "plan", None)
    assert results.has("plan") and results.of_agent("plan") is None
    assert results.by_step() == {"plan": None}


def test_a_skipped_agent_is_over_without_a_result(journal: Journal) -> None:
    results = Results(journal, plan())
    journal.note(Fact(AGENT_SKIPPED, {"reason": "no"}, "plan", "plan"))
    assert results.has("plan") and results.of_agent("plan") is None
    assert results.by_step() == {}


def test_items_come_in_their_order_and_all_or_none(journal: Journal) -> None:
    results = Results(journal, plan())
    with pytest.raises(InvalidStateError, match="'research' has no result yet"):
        results.of_agent("research")
    know(journal, "research", items={"research": items("b", "a")})
    finish(journal, "research[a]", 1)
    # Half of it is no result: whoever asks too early has to hear so, and not get a list with holes.
    with pytest.raises(InvalidStateError, match=r"'research\[b\]' has no result yet"):
        results.of_agent("research")
    finish(journal, "research[b]", 2)
    assert results.of_agent("research") == [2, 1]


def test_an_item_that_was_given_up_is_a_hole(journal: Journal) -> None:
    know(journal, "research", items={"research": items("a", "b")})
    finish(journal, "research[a]", 1)
    journal.note(Fact(AGENT_SKIPPED, {"reason": "it failed"}, "research[b]", "research"))
    assert Results(journal, plan()).of_agent("research") == [1, None]


def test_no_items_are_an_empty_result(journal: Journal) -> None:
    know(journal, "research", items={"research": []})
    assert Results(journal, plan()).of_agent("research") == []


def test_a_fan_out_that_was_skipped_is_over(journal: Journal) -> None:
    journal.note(Fact(AGENT_SKIPPED, {"reason": "no"}, "research", "research"))
    assert Results(journal, plan()).of_agent("research") is None


def test_of_a_loop_the_last_round_counts_in_which_it_was_done(journal: Journal) -> None:
    results = Results(journal, plan())
    with pytest.raises(InvalidStateError):
        results.of_agent("draft")
    finish(journal, "draft", "first")
    assert results.of_agent("draft") == "first"
    know(journal, "l", iterations=[{"iteration": 1}])
    assert results.of_agent("draft") == "first"
    finish(journal, "draft#2", "second")
    assert results.of_agent("draft") == "second"


def test_so_it_is_with_items_in_a_loop(journal: Journal) -> None:
    results = Results(journal, plan())
    with pytest.raises(InvalidStateError):
        results.of_agent("parts")
    know(journal, "l", items={"parts": items("a", "b")})
    finish(journal, "parts[a]", 1)
    with pytest.raises(InvalidStateError):
        results.of_agent("parts")
    finish(journal, "parts[b]", 2)
    assert results.of_agent("parts") == [1, 2]
    know(
        journal,
        "l",
        iterations=[{"iteration": 1}],
        items={"parts": items("a", "b"), "parts#2": items("c")},
    )
    assert results.of_agent("parts") == [1, 2]
    finish(journal, "parts[c]#2", 3)
    assert results.of_agent("parts") == [3]


def test_an_agent_of_an_earlier_version_keeps_its_result(journal: Journal) -> None:
    finish(journal, "gone", 1)
    results = Results(journal, plan())
    assert results.of_agent("gone") == 1
    with pytest.raises(InvalidStateError, match="'never' has no result yet"):
        results.of_agent("never")


def test_a_renamed_agent_keeps_all_its_results(journal: Journal) -> None:
    for step in ("old", "old[a]", "old#2", "old>calc", "old[a]>calc#2"):
        finish(journal, step, step)
    results = Results(journal, plan(), {"old": "plan"})
    for step in ("plan", "plan[a]", "plan#2", "plan>calc", "plan[a]>calc#2"):
        assert results.has(step) and results.of_step(step) == step.replace("plan", "old")
    assert not results.has("plan[b]") and not results.has("draft")
    finish(journal, "plan", "new")
    assert results.of_step("plan") == "new"


def test_the_last_agent_of_the_plan_answers_for_the_run(journal: Journal) -> None:
    assert Results(journal, make_plan("empty", {})).of_last() is None
    results = Results(journal, plan())
    assert results.of_last() is None
    finish(journal, "judge", "content")
    assert results.of_last() == "content"


def test_tasks_of_an_application_are_none_of_a_run() -> None:
    with opened() as service:
        journal = begun(service, tasks=["just text", {"id": "own", "title": "x"}, {"title": "y"}])
        results = Results(journal, plan())
        finish(journal, "plan", 1)
        assert results.by_step() == {"plan": 1}


def test_threads_read_while_results_come_in(journal: Journal) -> None:
    results = Results(journal, plan())

    def write() -> None:
        for number in range(150):
            finish(journal, f"research[{number}]", number)

    def read() -> None:
        seen = 0
        while seen < 150:
            known = results.by_step()
            assert len(known) >= seen and all(
                known[f"research[{number}]"] == number for number in range(seen)
            )
            seen = len(known)

    at_once(write, read, read)


class Overtaken(tuple[Any, ...]):
    """What one thread found: nothing yet; while it counts that, another looks for results, and finds some."""

    results: Results | None = None

    def __len__(self) -> int:
        if self.results is not None:
            results, self.results = self.results, None
            other = threading.Thread(target=results.by_step)
            other.start()
            # Where one waits for the other it does not come; else it is there at once.
            other.join(0.2)
        return 0


def test_who_looked_before_another_took_results_in_spoils_nothing() -> None:
    before, tasks = Overtaken(), ({"id": "plan", "result": 1}, {"id": "draft", "result": 2})
    found = iter([before])
    fields = SimpleNamespace(get=lambda name, default: next(found, tasks))
    results = before.results = Results(cast("Journal", SimpleNamespace(fields=fields)), plan())
    assert results.by_step() in ({}, {"plan": 1, "draft": 2})
    assert results.by_step() == {"plan": 1, "draft": 2}


def test_a_result_that_was_taken_back_is_none() -> None:
    with make_service(NarrowStore()) as service:
        journal = begun(service)
        results = Results(journal, make_plan("w", {}))
        journal.commit(Fact(AGENT_COMPLETED, {"attempt": 1, "result": 0}, "first", "first"))
        queued = journal.queued(Fact(AGENT_COMPLETED, {"attempt": 1, "result": LARGE}, "big", "big"))
        assert list(results.by_step()) == ["first", "big"]
        with pytest.raises(StateTooLargeError):
            journal.settled(queued)
        journal.note(Fact(AGENT_COMPLETED, {"attempt": 1, "result": 1}, "small", "small"))
        assert results.by_step() == {"first": 0, "small": 1}


def test_what_an_agent_answered_alone_is_no_result_once_it_runs_for_items(journal: Journal) -> None:
    results = Results(journal, plan())
    finish(journal, "research", "alone")
    know(journal, "own", items=["of an application"])
    assert not results.is_over(plan().agents["research"])
    with pytest.raises(InvalidStateError, match="'research' has no result yet"):
        results.of_agent("research")


def test_results_are_recorded_under_names_that_are_nobody_elses(journal: Journal) -> None:
    results = Results(journal, plan(), {"plan": "research", "plan~2": "plan"})
    finish(journal, "plan", "of research")
    assert not results.has("plan") and results.has("research") and results.begun_as("plan") == "plan~2"
    assert results.recorded("plan") == ("of research",) and results.recorded("plan~2") is None
