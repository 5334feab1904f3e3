"""What one session gives to the next is written as the documents write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidIdError, InvalidStateError
from holdfast.domain.session_context import Agent, SessionContext, as_agent, check_usage, open_decisions

#: The block of the first document, and that of the second, whose agents have families.
BLOCKS = [
    {
        "session_context": {
            "schema_version": "1.0.0",
            "session_id": "ps-orch-006-test",
            "source_agent": {"id": "ps-architect", "version": "2.1.0"},
            "target_agent": {"id": "ps-validator"},
            "payload": {"data_models": ["CheckpointFile", "EventJournal", "AuditTrail"]},
        }
    },
    {
        "session_context": {
            "schema_version": "1.0.0",
            "session_id": "ps-orch-003-test",
            "source_agent": {"id": "ps-architect", "version": "v2.1.0", "family": "ps"},
            "target_agent": {"id": "ps-critic", "family": "ps"},
            "payload": {"iteration": 1, "key_findings": ["hierarchical"]},
        }
    },
]

names = st.text("abcXYZ-09", min_size=1, max_size=20)
agents = st.none() | st.builds(Agent, names, st.none() | names, st.none() | names)
contexts = st.builds(
    SessionContext,
    names,
    agents,
    agents,
    st.dictionaries(names, st.integers() | st.text()),
    st.text(),
    st.lists(names).map(tuple),
    st.none() | st.floats(0, 1),
)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_blocks_of_the_documents_are_read_and_written_again(block):
    context = SessionContext.from_block(block)
    assert context.source_agent is not None and context.source_agent.id == "ps-architect"
    written = context.to_block()["session_context"]
    assert {name: written[name] for name in block["session_context"]} == block["session_context"]
    assert SessionContext.from_block(block["session_context"]) == context


@given(contexts)
def test_a_context_survives_its_block(context):
    assert SessionContext.from_block(context.to_block()) == context


def test_what_is_not_known_is_left_out():
    assert SessionContext("s-1").to_block()["session_context"] == {
        "schema_version": "1.0.0",
        "session_id": "s-1",
        "summary": "",
        "workflow_ids": [],
        "payload": {},
    }


@pytest.mark.parametrize(
    "block",
    [{}, {"session_context": 7}, {"session_id": "s", "payload": 1}, {"session_id": "s", "workflow_ids": "W"}],
)
def test_what_is_no_block_is_refused(block):
    with pytest.raises(InvalidStateError, match="no session_context"):
        SessionContext.from_block(block)


def test_an_agent_is_named_by_its_id_or_its_fields():
    assert (
        as_agent("planner") == as_agent({"id": "planner"}) == as_agent(Agent("planner")) == Agent("planner")
    )
    assert as_agent(None) is None
    assert as_agent({"id": "a", "version": "1", "family": "f"}) == Agent("a", "1", "f")


@pytest.mark.parametrize("given", [{"name": "a"}, {"id": 1}, {"id": "a", "mood": "good"}, 7])
def test_what_is_no_agent_is_refused(given):
    with pytest.raises(InvalidStateError, match="agent"):
        as_agent(given)


def test_an_agent_without_a_name_is_refused():
    with pytest.raises(InvalidIdError):
        as_agent("")
    with pytest.raises(InvalidIdError):
        as_agent({"id": "a", "version": ""})


@pytest.mark.parametrize("fraction", [-0.1, 1.1, 83, "0.5", None, True, float("nan")])
def test_a_window_is_no_emptier_than_empty_and_no_fuller_than_full(fraction):
    with pytest.raises(InvalidStateError, match="from 0 to 1"):
        check_usage(fraction)


def test_decisions_are_open_until_they_say_that_they_are_settled():
    decisions = [
        {"description": "a"},
        {"description": "b", "status": "Done"},
        {"description": "c", "status": "proposed"},
        {"description": "d", "status": 4},
        "just a word",
        {"description": "e", "status": "superseded"},
    ]
    assert open_decisions(decisions) == [decisions[0], decisions[2], decisions[3], "just a word"]
