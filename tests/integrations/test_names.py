"""In a framework anything may be a name: each has a workflow of its own, and comes back from it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.ids import MAX_ID_CHARS, check_id, check_workflow_id, parse_ref
from holdfast.integrations.names import names_begin, names_in, stage_name, workflow_name

ROOMS = st.sampled_from(["adk/", "agent-framework/", "agents-session:", "conversation:", "langgraph/"])
#: With surrogates, with what has a meaning in names of ours, and long enough to be cut.
SIGNS = st.characters(codec=None, exclude_categories=()) | st.sampled_from("/@~%#:. \x00\u2028\xa0\ud800")
NAMES = st.text(SIGNS, max_size=40) | st.text("/@~%\x00é ab", min_size=60, max_size=300)
HOSTILE = [
    "",
    " ",
    " a ",
    ".",
    "..",
    "../../etc",
    "a/b",
    "a@1",
    "a@latest",
    "a#b",
    "a%",
    "a%7Eb",
    "~",
    "a\x00",
    "\ud800",
]
TUPLES = st.lists(NAMES | st.sampled_from(HOSTILE), min_size=1, max_size=3).map(tuple)


def told_apart(first: str, second: str, *names: str) -> bool:
    return workflow_name("burr/", first, *names) != workflow_name("burr/", second, *names)


@given(ROOMS, TUPLES)
@example("langgraph/", ("checkpoint_1.json",))
def test_all_names_make_a_workflow_id_that_a_selector_may_follow(room: str, names: tuple[str, ...]):
    workflow_id = workflow_name(room, *names)
    assert check_workflow_id(workflow_id).startswith(room) and "@" not in workflow_id
    assert parse_ref(f"{workflow_id}@latest").workflow_id == workflow_id


@given(ROOMS, TUPLES)
def test_names_come_back_unless_one_is_told_by_its_hash(room: str, names: tuple[str, ...]):
    workflow_id = workflow_name(room, *names)
    assert names_in(room, workflow_id) == (None if "~" in workflow_id else names)


@given(st.lists(st.sampled_from(HOSTILE) | st.text(SIGNS, max_size=6), min_size=1, max_size=3))
def test_names_that_are_short_enough_all_come_back(names: list[str]):
    assert names_in("agent-framework/", workflow_name("agent-framework/", *names)) == tuple(names)


@given(TUPLES, TUPLES)
@example(("a:b", "c"), ("a", "b:c"))
@example(("a/b", "c"), ("a", "b/c"))
@example(("a", ""), ("a",))
@example(("\ud83d\ude00",), ("\U0001f600",))
@example(("é",), ("e\u0301",))
def test_others_have_another_workflow(names: tuple[str, ...], others: tuple[str, ...]):
    assert (workflow_name("adk/", *names) == workflow_name("adk/", *others)) == (names == others)


@given(ROOMS, ROOMS, TUPLES, TUPLES)
def test_rooms_never_share_a_workflow(room: str, other: str, names: tuple[str, ...], others: tuple[str, ...]):
    workflow_id = workflow_name(room, *names)
    assert room == other or workflow_id != workflow_name(other, *others)
    assert room == other or names_in(other, workflow_id) is None


@given(ROOMS, TUPLES, NAMES, NAMES)
def test_a_name_begins_as_its_first_names_do_and_as_no_others(
    room: str, names: tuple[str, ...], first: str, other: str
):
    workflow_id = workflow_name(room, first, *names[:2])
    assert workflow_id.startswith(names_begin(room, first))
    assert workflow_id.startswith(names_begin(room, other)) == (first == other)
    assert names_begin(room) == room


@given(st.text())
@example("langgraph/a b")
@example("langgraph/%ff")
@example("langgraph/%FF")
@example("langgraph/%41")
@example("langgraph/a~0")
@example("research/42")
def test_a_workflow_that_was_not_named_so_is_of_no_names(workflow_id: str):
    names = names_in("langgraph/", workflow_id)
    assert names is None or workflow_name("langgraph/", *names) == workflow_id


def test_what_people_choose_stays_as_it_is_and_the_rest_is_escaped_as_in_a_url():
    assert workflow_name("conversation:", "ann-1") == "conversation:ann-1"
    assert workflow_name("burr/", "", "Bericht_7.ä:ö#1") == "burr//Bericht_7.ä:ö#1"
    assert workflow_name("adk/", "reef", "ann@a.org", "a b/~%") == "adk/reef/ann%40a.org/a%20b%2F%7E%25"


@pytest.mark.parametrize("after", [(), ("app",), ("user", "session")])
def test_long_names_that_begin_alike_are_told_apart(after: tuple[str, ...]):
    assert told_apart("n" * 400 + "1", "n" * 400 + "2", *after)
    named = workflow_name("burr/", "n" * 400, *after)
    # Somebody who calls a thing by what another's long name became does not get the other's workflow.
    assert told_apart("n" * 400, named.removeprefix("burr/").split("/")[0], *after)
    assert (
        named.startswith("burr/nnnnnnn") and len(named) <= MAX_ID_CHARS and names_in("burr/", named) is None
    )


@given(NAMES.filter(bool), NAMES.filter(bool))
@example(".", "..")
def test_stages_are_named_in_the_same_way(name: str, other: str):
    stage = check_id("stage", stage_name(name))
    assert (stage == stage_name(other)) == (name == other)
    assert names_in("", stage) == (None if "~" in stage else (name,))
