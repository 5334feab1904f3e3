"""Attempts are put together from whatever a journal tells, in whatever order it does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.attempts import End, attempts_of
from holdfast.application.insight.sample import look_at
from tests.application.insight.teams import kit_of, open_at, run, team
from tests.application.insight.told_journals import Told


def ends(told: Told) -> list[tuple[str, int, End, float | None]]:
    return [(one.step_id, one.number, one.end, one.seconds) for one in attempts_of(told.looked())]


def test_a_result_ends_an_attempt_and_tells_how_long_it_took() -> None:
    assert ends(Told().started("plan").completed("plan", 7.5)) == [("plan", 1, End.COMPLETED, 7.5)]


def test_where_nothing_is_measured_the_clock_tells() -> None:
    assert ends(Told().started("plan").completed("plan")) == [("plan", 1, End.COMPLETED, 1.0)]


def test_failures_are_told_apart_by_whether_somebody_tries_again() -> None:
    told = Told().started("p").failed("p").started("p", 2).failed("p", 2, retries=False)
    assert ends(told) == [("p", 1, End.FAILED, 1.0), ("p", 2, End.GAVE_UP, 1.0)]
    assert [one.error for one in attempts_of(told.looked())] == ["ValueError", "ValueError"]


def test_what_begins_with_the_result_before_has_begun() -> None:
    following = {"step_id": "write", "agent": "write", "attempt": 1}
    told = Told().started("plan").completed("plan", 1.0, next=following).completed("write", 2.0)
    assert ends(told) == [("plan", 1, End.COMPLETED, 1.0), ("write", 1, End.COMPLETED, 2.0)]
    nameless = Told().completed("plan", 1.0, next={"step_id": "write"})
    assert [one.agent for one in attempts_of(nameless.looked())] == ["plan", "write"]


def test_a_process_that_died_loses_what_was_at_work() -> None:
    told = Told().started("plan").event("NOTE").recovered().started("plan", 2)
    assert [end for _, _, end, _ in ends(told)] == [End.LOST, End.OPEN]
    first = attempts_of(told.looked())[0]
    assert first.ended is not None and (first.ended - first.began).total_seconds() == 1.0
    assert [end for _, _, end, _ in ends(Told().started("plan").started("plan", 2))] == [End.LOST, End.OPEN]


def test_a_run_that_ends_stops_what_is_at_work() -> None:
    assert ends(Told().started("ask").status("waiting")) == [("ask", 1, End.STOPPED, None)]
    assert ends(Told().started("ask").status("in_progress")) == [("ask", 1, End.OPEN, None)]


def test_the_end_of_an_attempt_is_enough_where_its_beginning_was_not_read() -> None:
    assert ends(Told().completed("plan", 3.0, attempt=2)) == [("plan", 2, End.COMPLETED, 3.0)]
    assert ends(Told().failed("plan")) == [("plan", 1, End.FAILED, None)]


def test_events_of_an_application_under_the_same_names_are_left_alone() -> None:
    told = Told().event("AGENT_STARTED", {"who": "me"}, agent="a", step="a")
    assert ends(told.event("AGENT_COMPLETED", {"attempt": "one"}, agent="a", step="a")) == []
    assert ends(Told().event("AGENT_STARTED", {"attempt": 1})) == []
    assert ends(Told().event("AGENT_SKIPPED", {"attempt": 1}, step="a")) == []


def test_what_was_used_is_added_up_and_what_is_no_number_is_not() -> None:
    told = Told().started("plan")
    data = {"attempt": 1, "metrics": {"tokens": 5, "model": "m", "usd": 0.5}}
    told.event("AGENT_COMPLETED", data, agent="plan", step="plan", cost={"tokens": 2})
    (attempt,) = attempts_of(told.looked())
    assert attempt.spent == {"tokens": 7.0, "usd": 0.5}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["started", "completed", "failed", "recovered", "paused", "noted"]),
            st.sampled_from(["a", "b", "b#2"]),
        ),
        max_size=40,
    )
)
def test_whatever_a_journal_tells_each_step_has_at_most_one_attempt_at_work(deeds) -> None:
    told = Told()
    for deed, step in deeds:
        if deed == "recovered":
            told.recovered()
        elif deed == "paused":
            told.status("paused")
        elif deed == "noted":
            told.event("NOTE", {"attempt": 1})
        else:
            getattr(told, deed)(step[0], step=step)
    found = attempts_of(told.looked())
    at_work = [one.step_id for one in found if one.end is End.OPEN]
    assert len(at_work) == len(set(at_work))
    completed = sum(event.type == "AGENT_COMPLETED" for event in told.events)
    assert sum(one.end is End.COMPLETED for one in found) == completed


def test_attempts_of_a_real_run_are_those_that_were_made(tmp_path) -> None:
    with open_at("file:", tmp_path) as service:
        assert run(service, team(), "WF-1", rounds=2, failures=1) == "completed"
        found = attempts_of(look_at(kit_of(service), "WF-1"))
    assert [(one.step_id, one.number, one.end) for one in found] == [
        ("plan", 1, End.COMPLETED),
        ("research[0]", 1, End.COMPLETED),
        ("research[1]", 1, End.COMPLETED),
        ("write", 1, End.COMPLETED),
        ("judge", 1, End.COMPLETED),
        ("write#2", 1, End.COMPLETED),
        ("judge#2", 1, End.COMPLETED),
        ("publish", 1, End.FAILED),
        ("publish", 2, End.COMPLETED),
    ]
