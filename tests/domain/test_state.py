from collections import OrderedDict
from dataclasses import fields
from datetime import UTC, datetime
from enum import IntEnum
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.state import WorkflowState, as_state

NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
FIELD_NAMES = [field.name for field in fields(WorkflowState)]

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(st.text(max_size=4), PLAIN, max_size=3)
LISTS = st.lists(PLAIN, max_size=3)
#: `fold` means nothing in UTC and is not stored.
TIMES = st.none() | st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0))
STATES = st.builds(
    WorkflowState,
    workflow_id=st.text(max_size=5),
    session_id=st.text(max_size=5),
    status=st.text(max_size=5),
    resumable=st.booleans(),
    started_at=TIMES,
    last_activity=TIMES,
    current_step=st.integers(),
    total_steps=st.integers(),
    phase=st.none() | st.integers(),
    dag_structure=OBJECTS,
    execution_config=OBJECTS,
    agent_states=OBJECTS,
    stage_states=OBJECTS,
    tasks=LISTS,
    messages=LISTS,
    decisions=LISTS,
    outputs=PLAIN,
    metrics=OBJECTS,
    confidence=st.none() | st.floats(0, 1) | OBJECTS,
    pending_events=LISTS,
    context=OBJECTS,
    context_summary=st.text(max_size=5),
    metadata=OBJECTS,
    extra=st.dictionaries(st.text(max_size=4).filter(lambda key: key not in FIELD_NAMES), PLAIN, max_size=3),
)


@pytest.mark.sweep
@given(STATES)
def test_a_state_survives_the_round_trip(state):
    restored = WorkflowState.from_fields(state.to_fields())
    assert restored == state
    assert repr(restored) == repr(state)


@pytest.mark.sweep
@given(STATES)
def test_the_fields_stand_in_a_fixed_order_with_the_unknown_ones_last(state):
    names = list(state.to_fields())
    known = [name for name in names if name in FIELD_NAMES]
    assert names == known + list(state.extra)
    assert names[:5] == ["workflow_id", "session_id", "status", "current_step", "total_steps"]
    assert list(WorkflowState.from_fields(state.to_fields()).to_fields()) == names


def test_a_blank_state_stores_its_five_constant_fields():
    assert WorkflowState("WF").to_fields() == {
        "workflow_id": "WF",
        "session_id": "",
        "status": "in_progress",
        "current_step": 0,
        "total_steps": 0,
    }


def test_nested_values_are_not_copied():
    state = WorkflowState("WF", messages=[{"role": "user"}], extra={"mine": [1]})
    stored = state.to_fields()
    assert stored["messages"] is state.messages
    assert stored["mine"] is state.extra["mine"]
    assert WorkflowState.from_fields(stored).messages is state.messages


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outputs", {}),
        ("outputs", None),
        ("tasks", ()),
        ("context", OrderedDict()),
        ("resumable", 1),
        ("confidence", 0),
        ("phase", 0),
        ("metadata", None),
    ],
)
def test_a_value_that_only_resembles_the_default_is_stored(name, value):
    state = WorkflowState("WF", **{name: value})
    assert state.to_fields()[name] is value
    assert getattr(WorkflowState.from_fields(state.to_fields()), name) is value


def test_times_are_stored_as_text():
    assert WorkflowState(started_at=NOW).to_fields()["started_at"] == "2026-01-11T14:30:00.000000Z"


@pytest.mark.parametrize("moment", ["2026-01-11T14:30:00Z", 1768141800, NOW.replace(tzinfo=None)])
@pytest.mark.parametrize("name", ["started_at", "last_activity"])
def test_a_time_that_is_no_aware_datetime_is_refused_by_name(name, moment):
    with pytest.raises(InvalidStateError, match=f": {name}. Use"):
        WorkflowState(**{name: moment}).to_fields()


def test_a_stored_time_that_cannot_be_read_is_refused_by_name():
    with pytest.raises(InvalidStateError, match=": last_activity"):
        WorkflowState.from_fields({"last_activity": "yesterday"})


def test_the_checkpoint_id_is_never_stored():
    assert "checkpoint_id" not in WorkflowState("WF", checkpoint_id="u-1").to_fields()


def test_the_layer_index_is_the_phase():
    assert WorkflowState(phase=3).layer_index == 3


def test_two_states_do_not_share_their_defaults():
    one, other = WorkflowState(), WorkflowState()
    one.messages.append("x")
    assert other.messages == []
    assert WorkflowState().to_fields() == other.to_fields()


@pytest.mark.parametrize("name", FIELD_NAMES)
def test_an_unknown_field_with_a_known_name_is_refused(name):
    with pytest.raises(InvalidStateError, match=f"extra\\['{name}'\\]"):
        WorkflowState(extra={name: 1}).to_fields()


def test_a_name_that_is_not_text_is_refused():
    with pytest.raises(InvalidStateError, match="Use a string"):
        WorkflowState(extra={1: 1}).to_fields()
    with pytest.raises(InvalidStateError, match="Use a string"):
        WorkflowState.from_fields({1: 1})


def test_a_key_called_extra_is_refused_rather_than_nested():
    with pytest.raises(InvalidStateError, match="extra"):
        WorkflowState.from_fields({"workflow_id": "WF", "extra": {}})


def test_a_state_is_taken_as_it_is():
    state = WorkflowState("WF")
    assert as_state("WF", state) is state


def test_a_state_without_a_workflow_id_gets_it_on_a_copy():
    state = WorkflowState(messages=["x"])
    owned = as_state("WF", state)
    assert (owned.workflow_id, state.workflow_id) == ("WF", "")
    assert owned.messages is state.messages


def test_a_state_of_another_workflow_is_refused():
    with pytest.raises(InvalidStateError, match="'OTHER'"):
        as_state("WF", WorkflowState("OTHER"))


def test_a_mapping_becomes_the_context():
    value = {"status": "mine", "n": 1}
    state = as_state("WF", value)
    assert state.context is value
    assert (state.workflow_id, state.status) == ("WF", "in_progress")
    assert as_state("WF", MappingProxyType(value)).context == value


def test_other_values_are_refused():
    with pytest.raises(InvalidStateError, match="a list is not a state"):
        as_state("WF", [])


def test_a_subclass_is_refused_because_its_fields_would_be_lost():
    class Wider(WorkflowState):
        pass

    with pytest.raises(InvalidStateError, match="Wider is a subclass"):
        as_state("WF", Wider("WF"))


class Stage(IntEnum):
    DRAFT = 2


@pytest.mark.parametrize("phase", [None, 0, -3, 2**63 - 1, Stage.DRAFT])
def test_a_phase_is_a_whole_number_or_none(phase):
    listed = WorkflowState(phase=phase).listed_phase
    assert listed == phase and type(listed) in (int, type(None))


@pytest.mark.parametrize(
    "phase", [1.5, 2.0, "draft", True, [1], 2**63, -(2**63), pytest.param(10**5000, id="huge")]
)
def test_another_phase_is_refused_before_anything_is_stored(phase):
    with pytest.raises(InvalidStateError, match="phase") as told:
        _ = WorkflowState(phase=phase).listed_phase
    assert told.value.place == "phase" and len(str(told.value)) < 300
