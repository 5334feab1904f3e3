"""Threads may be called anything: each has a workflow of its own, and its name comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ids import MAX_ID_CHARS, check_workflow_id
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_names import thread_of, workflow_of
from tests.integrations.langgraph_stores import LASTING, channels, config_of, put, url_of

#: With surrogates, with what has a meaning in names of ours, and long enough to be cut.
SIGNS = st.one_of(st.characters(), st.characters(categories=["Cs", "Cc", "Zs"]), st.sampled_from("%@~/:.|# "))
NAMES = st.text(SIGNS, min_size=1, max_size=60) | st.text("%@~\x00é ", min_size=230, max_size=300)
HOSTILE = [
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\con",
    "a" * 5_000,
    "a" * 4_999 + "b",
    "\x00",
    "a\x00b",
    "\ud800",
    " a ",
    "a",
    "A",
    "'; drop table checkpoints; --",
    "%s%n",
    "a@1",
    "a@latest",
    "a~b",
    "a%7Eb",
    "\u202egnp",
    "\u2028",
    "é",
    "e\u0301",
    "langgraph/a",
    ".",
    "~",
    "\n",
]


@given(NAMES)
def test_every_name_makes_a_valid_workflow_id_and_a_short_one_comes_back(name: str):
    workflow_id = workflow_of(name)
    check_workflow_id(workflow_id)
    known = thread_of(workflow_id)
    assert known == name or (
        known is None and len(workflow_id) <= MAX_ID_CHARS < len(name.encode("utf-8", "replace")) * 9
    )


@given(NAMES, NAMES)
def test_two_names_never_share_a_workflow(one: str, other: str):
    assert (workflow_of(one) == workflow_of(other)) == (one == other)


def test_long_names_that_begin_alike_are_told_apart():
    one, other = workflow_of("n" * 400 + "1"), workflow_of("n" * 400 + "2")
    assert one != other and thread_of(one) is None
    assert workflow_of(one.removeprefix("langgraph/")) != one


def test_a_workflow_that_is_no_thread_has_no_name_of_one():
    assert thread_of("research/42") is None


def test_a_thread_without_a_name_is_refused_and_told_what_to_do():
    with pytest.raises(InvalidIdError, match=r"thread id is empty.*thread_id"):
        workflow_of("")
    with HoldfastSaver.open("memory:") as saver, pytest.raises(InvalidIdError, match="thread_id"):
        saver.get_tuple({"configurable": {}})


@pytest.mark.parametrize("kind", LASTING)
def test_hostile_names_are_threads_like_any_other(kind: str, tmp_path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as saver:
        for number, name in enumerate(HOSTILE):
            put(saver, config_of(name), {"n": number})
    with HoldfastSaver.open(url) as saver:
        assert [channels(saver, config_of(name)) for name in HOSTILE] == [
            {"n": number} for number in range(len(HOSTILE))
        ]
        listed = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
        assert listed == set(HOSTILE)
        saver.delete_thread(HOSTILE[4])
        assert saver.get_tuple(config_of(HOSTILE[4])) is None
        assert channels(saver, config_of(HOSTILE[5])) == {"n": 5}
    assert sorted(path.name for path in tmp_path.parent.iterdir() if path.name == "etc") == []


def test_a_number_is_as_good_a_name_as_its_text():
    with HoldfastSaver.open("memory:") as saver:
        put(saver, config_of(7), {"n": 1})
        assert channels(saver, config_of("7")) == {"n": 1}
