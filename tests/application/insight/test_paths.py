"""Ways through agents: each run has one, and circles are found wherever one enters them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.paths import (
    SHOWN_MAX,
    Loop,
    contracted,
    loops_in,
    paths,
    paths_of,
    rounds_in,
    way_of,
)
from holdfast.application.insight.sample import Sample
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import START, Told, sample

ways = st.lists(st.sampled_from("abcd"), max_size=40)


def walked(name: str, agents: str, status: str = "completed") -> Told:
    told, seen = Told(name), dict.fromkeys(agents, 0)
    for agent in agents:
        seen[agent] += 1
        told.ran(agent, step=agent if seen[agent] == 1 else f"{agent}#{seen[agent]}")
    return told.status(status)


@pytest.mark.parametrize("url", STORES)
def test_runs_that_differ_in_rounds_only_took_the_same_way(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        for workflow_id, rounds, failures in (("A", 1, 0), ("B", 3, 1), ("C", 2, 2)):
            run(service, team(), workflow_id, rounds=rounds, failures=failures)
        service.create_checkpoint("D", {"no": "agents"})
        found = paths(kit_of(service))
        of_one = paths(kit_of(service), "B")
    (way,) = found.paths
    assert way.agents == ("plan", "research", "write", "judge", "publish")
    assert (way.runs, way.completed, way.failed, way.unfinished, way.share) == (3, 2, 1, 0, 1.0)
    assert (found.looked_at, found.total, found.runs, found.without_agents) == (4, 4, 3, 1)
    assert found.loops == (Loop(("write", "judge"), 2, 2.5, 3),)
    assert {(one.before, one.after): one.count for one in found.steps} == {
        ("plan", "research"): 3,
        ("research", "write"): 3,
        ("write", "judge"): 6,
        ("judge", "write"): 3,
        ("judge", "publish"): 3,
    }
    assert of_one.runs == 1 and of_one.loops == (Loop(("write", "judge"), 1, 3, 3),)


@given(st.lists(st.tuples(ways, st.sampled_from(["completed", "failed", "paused"])), max_size=12))
def test_every_run_is_counted_once_and_every_step_between_agents_too(told) -> None:
    journals = [walked(f"W-{number}", "".join(way), status) for number, (way, status) in enumerate(told)]
    found = paths_of(sample(*journals))
    walks = [way_of(one.looked()) for one in journals]
    assert sum(one.runs for one in found.paths) == found.runs == sum(bool(way) for way in walks)
    assert found.runs + found.without_agents + found.cut == len(told)
    assert all(one.runs == one.completed + one.failed + one.unfinished for one in found.paths)
    assert sum(one.share for one in found.paths) == pytest.approx(1.0 if found.runs else 0.0)
    assert sum(one.count for one in found.steps) == sum(max(len(way) - 1, 0) for way in walks)


@given(ways)
def test_contracting_again_changes_nothing_of_what_repeats_at_once_and_keeps_everybody(way) -> None:
    short = contracted(way)
    assert set(short) == set(way)
    assert short[:1] == tuple(way[:1])
    assert all(before != after for before, after in pairwise(short))


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True), st.integers(1, 8))
def test_a_circle_is_counted_round_by_round(circle, rounds) -> None:
    told = rounds_in(circle * rounds)
    assert told == ({tuple(circle): rounds} if rounds > 1 else {})
    assert contracted(circle * rounds) == tuple(circle)


def test_a_circle_is_the_same_wherever_one_enters_it() -> None:
    (loop,) = loops_in([("write", "judge", "write", "judge"), ("judge", "write", "judge")])
    assert loop == Loop(("write", "judge"), 2, 2.0, 2)


def test_items_of_one_agent_are_one_and_tries_again_are_no_way() -> None:
    told = Told().ran("a", step="a[0]").ran("a", step="a[1]").started("b").failed("b").started("b", 2)
    assert way_of(told.looked()) == ("a", "b")
    again = Told().ran("a").ran("a", step="a#2").ran("a", step="a#3")
    assert way_of(again.looked()) == ("a", "a", "a")
    assert rounds_in(way_of(again.looked())) == {("a",): 3}


def test_runs_whose_beginning_was_not_read_do_not_count() -> None:
    whole, cut = walked("A", "ab"), walked("B", "b").looked(is_cut=True)
    broken = walked("C", "a").looked(problem="damaged")
    found = paths_of(Sample((whole.looked(), cut, broken), 3, START))
    assert (found.runs, found.cut) == (1, 2)


def test_very_many_ways_are_cut_and_told() -> None:
    journals = [
        walked(f"W-{number}", "a" + format(number, "06b").translate({48: "b", 49: "c"}))
        for number in range(64)
    ]
    found = paths_of(sample(*journals))
    assert len(found.paths) <= SHOWN_MAX
    assert sum(one.runs for one in found.paths) + found.left_off <= 64
