"""Each rule of an audit entry says what breaks it, and nothing where it is kept."""

import pytest

from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.entry_rules import (
    FACT_CHARS_MAX,
    FACTS_MAX,
    NUMBER_MAX,
    facts_problem,
    is_hash,
    is_short,
    is_type,
    names_text,
    no_short_text,
    start_problem,
    time_problem,
)

TIME, LATER = "2026-01-11T14:30:00.000000Z", "2026-01-11T14:30:02.000000Z"


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ({"n": NUMBER_MAX, "text": "x" * FACT_CHARS_MAX, "yes": True}, ""),
        ({"n": NUMBER_MAX + 1}, "neither"),
        ({"n": 1.5}, "neither"),
        ({"text": "x" * (FACT_CHARS_MAX + 1)}, "neither"),
        ({"Name": 1}, "no name of a fact"),
        ({f"f{n}": n for n in range(FACTS_MAX + 1)}, "more than"),
    ],
)
def test_facts_are_short_and_few(facts, problem):
    found = facts_problem(facts)
    assert problem in found and bool(problem) == bool(found)


def test_names_types_and_hashes_have_one_shape():
    assert [is_short(name) for name in ("a", "", "x" * 513, 1, None)] == [True, False, False, False, False]
    assert no_short_text("agent") == "'agent' is no short text"
    assert [is_type(name) for name in ("AGENT_DECISION", "agent", "", "A-B")] == [True, False, False, False]
    assert is_hash("sha256:" + "0" * 64) and not is_hash("sha256:" + "0" * 63) and not is_hash(None)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("A", "s", None, None, None, "success", None), ""),
        (("a", "s", None, None, None, "success", None), "'type'"),
        (("A", None, None, None, None, "success", None), "'session'"),
        (("A", "s", "", None, None, "success", None), "'workflow'"),
        (("A", "s", None, None, None, "fine", None), "'outcome'"),
        (("A", "s", None, None, None, "success", ""), "'correlation'"),
    ],
)
def test_names_are_written_in_the_order_of_a_line_or_not_at_all(names, problem):
    found, text = names_text(*names)
    assert found.startswith(problem) and bool(found) == bool(problem)
    assert text == ("" if problem else ',"type":"A","session":"s","outcome":"success"')


def test_a_clock_can_only_be_behind_a_time():
    assert time_problem(LATER, TIME) == "" == time_problem(TIME, "")
    assert "not before" in time_problem(TIME, LATER)
    assert "no time" in time_problem("yesterday", "") and "no time" in time_problem(
        "2026-02-30T00:00:00.000000Z", ""
    )


def test_a_session_begins_with_its_start():
    assert start_problem("SESSION_STARTED", TrailHead("s")) == "" == start_problem("X", TrailHead("s", 3))
    assert "begins" in start_problem("X", TrailHead("s")) and "begins" in start_problem(
        "X", TrailHead("s", 3, closed=True)
    )
