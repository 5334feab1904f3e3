"""Agents over runs: how long, how often in vain, and what they used."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.agents import agents, agents_of, most_failing
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import Told, sample


@pytest.mark.parametrize("url", STORES)
def test_agents_of_real_runs_are_counted(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        for workflow_id, failures in (("A", 0), ("B", 1), ("C", 2)):
            run(service, team(), workflow_id, rounds=2, failures=failures)
        found = {one.agent: one for one in agents(kit_of(service))}
        of_one = {one.agent: one for one in agents(kit_of(service), "B")}
    assert set(found) == {"plan", "research", "write", "judge", "publish"}
    publish = found["publish"]
    assert (publish.workflows, publish.attempts, publish.completed) == (3, 5, 2)
    assert (publish.failed, publish.gave_up, publish.retries) == (3, 1, 2)
    assert publish.failure_rate == pytest.approx(3 / 5)
    assert publish.errors == {"ValueError": 3}
    assert found["plan"].used == {"cost_usd": 1.5, "tokens": 300.0}
    assert found["research"].attempts == 6 and found["write"].attempts == 6
    assert found["plan"].median_seconds is not None and found["plan"].max_seconds is not None
    assert (of_one["publish"].workflows, of_one["publish"].attempts) == (1, 2)


def test_an_agent_that_never_finished_has_no_duration() -> None:
    (one,) = agents_of(sample(Told().started("a").recovered().started("a", 2)))
    assert (one.attempts, one.lost, one.failure_rate) == (2, 1, 0.0)
    assert (one.median_seconds, one.p95_seconds, one.max_seconds, one.total_seconds) == (None, None, None, 0)


def test_whoever_took_most_time_is_first_and_whoever_fails_most_often_is_first_among_those() -> None:
    told = Told().ran("fast", 1.0).ran("slow", 60.0).started("bad").failed("bad").started("bad", 2)
    told.completed("bad", 2.0, attempt=2).started("worse").failed("worse", retries=False)
    found = agents_of(sample(told))
    assert [one.agent for one in found] == ["slow", "bad", "fast", "worse"]
    assert [one.agent for one in most_failing(found)] == ["worse", "bad"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.01, 1e4), st.booleans()), max_size=30))
def test_no_attempt_is_lost_or_counted_twice(deeds) -> None:
    told = Told()
    for number, (agent, seconds, fails) in enumerate(deeds):
        told.started(agent, step=f"{agent}[{number}]")
        if fails:
            told.failed(agent, step=f"{agent}[{number}]")
        else:
            told.completed(agent, seconds, f"{agent}[{number}]")
    found = agents_of(sample(told))
    assert sum(one.attempts for one in found) == len(deeds)
    assert sum(one.failed for one in found) == sum(fails for _, _, fails in deeds)
    assert sum(one.total_seconds for one in found) == pytest.approx(
        sum(seconds for _, seconds, fails in deeds if not fails)
    )
