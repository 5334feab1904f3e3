"""A changed graph is told in words, by the agents that are concerned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import GraphChangedError
from holdfast.execution.drift import check_drift, drift, news, renames
from holdfast.execution.plan import Agent, Stage, StageKind, make_plan

NOBODY: frozenset[str] = frozenset()


def work(ctx: object) -> None:
    """Do nothing."""


def structure(*names: str, kind: StageKind = StageKind.SEQUENTIAL, chained: bool = False) -> dict[str, Any]:
    stages = dict[str, Stage]()
    before: tuple[str, ...] = ()
    for name in names:
        stages[name] = Stage(name, kind, (Agent(name, work, name),), before)
        before = (name,) if chained else ()
    return make_plan("w", stages).structure()


graphs = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(graphs, st.booleans())
def test_the_same_graph_has_not_changed(names: list[str], chained: bool) -> None:
    assert drift(structure(*names, chained=chained), structure(*names, chained=chained), NOBODY) == ()


@given(graphs, graphs, st.booleans(), st.frozensets(st.sampled_from("abcdef")))
def test_every_agent_that_came_or_went_is_told(
    before: list[str], now: list[str], chained: bool, done: frozenset[str]
) -> None:
    told = drift(structure(*before, chained=chained), structure(*now, chained=chained), done)
    assert bool(told) is (before != now)
    came = {name for name in "abcdef" if any(text.startswith(f"agent '{name}' is new") for text in told)}
    went = {name for name in "abcdef" if any(text.startswith(f"agent '{name}' is gone") for text in told)}
    assert came == set(now) - set(before)
    assert went == set(before) - set(now)
    for name in went:
        kept = "its results are kept" if name in done else "it has no results yet"
        assert f"agent '{name}' is gone: {kept}" in told


def test_an_agent_that_stands_elsewhere_is_told() -> None:
    told = drift(structure("a", "b"), structure("a", "b", chained=True), frozenset("b"))
    assert told == ("agent 'b' stands elsewhere: its results are kept",)
    parallel = structure("a", kind=StageKind.PARALLEL)
    assert drift(structure("a"), parallel, NOBODY) == ("agent 'a' stands elsewhere: it has no results yet",)


def test_a_change_that_concerns_no_agent_is_told_as_such() -> None:
    first = make_plan("w", {"x": Stage("x", StageKind.BARRIER)}).structure()
    second = make_plan("w", {"y": Stage("y", StageKind.BARRIER)}).structure()
    assert drift(first, second, NOBODY) == ("stages were renamed or reordered, and no agent is concerned",)


def test_an_agent_that_is_called_otherwise_now_is_neither_new_nor_gone() -> None:
    before, now = structure("plan", "write", chained=True), structure("scheme", "write", chained=True)
    told = drift(before, now, frozenset({"plan"}), {"plan": "scheme", "never": "there"})
    assert told == ("agent 'plan' is called 'scheme' now: its results are kept",)


def test_an_agent_that_is_called_otherwise_now_and_was_not_done_keeps_nothing() -> None:
    told = drift(
        structure("plan", "write"), structure("scheme", "write"), frozenset({"write"}), {"plan": "scheme"}
    )
    assert told == ("agent 'plan' is called 'scheme' now: it has no results yet",)


def test_who_renamed_an_agent_without_saying_so_is_told_how_to_say_it() -> None:
    hint = "if one of them was only renamed, say so"
    assert drift(structure("plan"), structure("scheme"), NOBODY)[-1].startswith(hint)
    for before, now in ((structure("a"), structure("a", "b")), (structure("a", "b"), structure("a"))):
        assert not any(text.startswith(hint) for text in drift(before, now, NOBODY))


def test_names_of_before_are_followed_through_several_changes() -> None:
    fields = {"metadata": {"renamed": {"a": "b", "x": "y"}}}
    assert renames(fields, {"b": "c"}) == {"a": "c", "b": "c", "x": "y"}
    assert renames({}, {"b": "c"}) == {"b": "c"}


def test_a_run_that_has_no_graph_yet_has_not_changed() -> None:
    assert drift({}, structure("a"), NOBODY) == ()


def test_a_graph_of_the_applications_own_is_none_to_compare_with() -> None:
    assert drift({"stages": ["a", "b"], "nodes": 3}, structure("a"), NOBODY) == ()


def test_a_changed_graph_is_refused_only_where_that_was_asked_for() -> None:
    check_drift(("agent 'a' is new",), "W", strict=False)
    check_drift((), "W", strict=True)
    with pytest.raises(GraphChangedError, match="agent 'a' is new") as refused:
        check_drift(("agent 'a' is new", "agent 'b' is gone"), "W", strict=True)
    assert refused.value.place == "W" and "'b' is gone" in refused.value.message


def test_a_new_agent_under_the_name_of_another_is_recorded_under_one_more() -> None:
    names = renames({}, {"b": "c"}, ["b", "c"])
    assert names == {"b": "c", "b~2": "b"}
    fields = {"metadata": {"renamed": names}}
    assert news(fields, {"b": "c"}, ["b", "c"]) == {} and renames(fields, {}, ["b", "c"]) == names
    assert renames(fields, {"b": "d"}, ["c", "d"]) == {"b": "c", "b~2": "d"}


def test_names_can_be_exchanged_and_told_again() -> None:
    names = renames({}, {"a": "b", "b": "a"}, ["a", "b"])
    assert names == {"a": "b", "b": "a"}
    assert news({"metadata": {"renamed": names}}, names, ["a", "b"]) == {}


def test_graphs_of_before_that_tell_no_shapes_have_not_changed() -> None:
    now = structure("a", "b")
    before = {name: value for name, value in now.items() if name not in ("each", "limits")}
    assert drift(before, now, NOBODY) == ()
    assert "'a' runs for several items" in drift(now, {**now, "each": ["a"]}, NOBODY)[0]
