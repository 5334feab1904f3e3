"""The view for people who query with SQL: the same states that the service restores, or NULL."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CheckpointService, Config, WorkflowState
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.bootstrap import build_kit
from holdfast.domain.record import Removal
from tests.adapters.postgres import server

#: What both JSON here and `jsonb` there hold without loss.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: n != 0 or math.copysign(1, n) > 0)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
LARGE = st.integers(0, 9).map(lambda n: f"{n} long enough for a blob \U0001f980" * 40)
KINDS = ("set", "insert", "remove", "replace", "append", "large", "grow", "drop")


@st.composite
def edits(draw):
    """A change of a state: of keys, of items anywhere in a list, of a text that grows."""
    kind = draw(st.sampled_from(KINDS))
    value = draw(LARGE if kind in ("large", "grow") else VALUES)
    return kind, draw(st.integers(0, 10)), value, draw(TEXTS)


def change(state, edit):
    kind, number, value, text = edit
    items, context = state.messages, state.context
    if kind == "set":
        context[text] = value
    elif kind == "drop" and context:
        del context[sorted(context)[number % len(context)]]
    elif kind == "insert":
        items.insert(number % (len(items) + 1), {"value": value})
    elif kind == "remove" and items:
        del items[number % len(items)]
    elif kind == "replace" and items:
        items[number % len(items)] = {"value": [value, text]}
    elif kind == "append":
        state.context_summary = (state.context_summary or "") + text
    elif kind == "large":
        context["large"] = value
    elif kind == "grow" and "large" in context:
        context["large"] += text if number % 2 else value


@contextmanager
def service_at(url, **settings):
    config = Config(background=False, blob_threshold_bytes=512, **settings)
    with CheckpointService(build_kit(PostgresStore.open(url), config)) as service:
        yield service


def shown(url):
    """What the view says, by layer index."""
    query = """
        select id, workflow_id, timestamp, layer_index,
            state::text, dag_structure::text, execution_config::text
        from workflow_checkpoints order by timestamp, id
    """
    with server.connected(url) as connection:
        rows = connection.execute(query).fetchall()
    return {
        row[0]: (*row[1:4], *(None if text is None else json.loads(text) for text in row[4:])) for row in rows
    }


def fields(state):
    return json.loads(json.dumps(state.to_fields()))


@pytest.fixture(scope="module")
def shared():
    """A service for many histories, each a workflow of its own, and a look at its tables."""
    url = server.url()
    with service_at(url, compression="none") as service, server.connected(url) as connection:
        yield service, connection


@pytest.mark.sweep
@given(st.lists(st.lists(edits(), min_size=1, max_size=4), min_size=1, max_size=8))
def test_the_view_shows_the_state_that_is_restored(shared, histories):
    service, connection = shared
    name = str(uuid4())
    state = WorkflowState(workflow_id=name, messages=[{"value": n} for n in range(3)])
    ids = [service.create_checkpoint(name, state)]
    for history in histories:
        for edit in history:
            change(state, edit)
        ids.append(service.create_checkpoint(name, state, force=True))
    service.flush()
    query = "select id, state::text from workflow_checkpoints where workflow_id = %s"
    found = dict(connection.execute(query, [name]).fetchall())
    assert set(found) == {made.uuid for made in ids}
    for made in ids:
        assert_alike(json.loads(found[made.uuid]), fields(service.restore_checkpoint(str(made))))


def assert_alike(found, expected):
    """Equal, but that `jsonb` has decimal numbers and no order of keys."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert_alike(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, float):
        assert float(found) == expected
    else:
        assert type(found) is type(expected) and found == expected


def test_the_columns_are_those_that_were_asked_for(url):
    with service_at(url) as service:
        state = WorkflowState(
            workflow_id="W", phase=3, dag_structure={"a": ["b"]}, execution_config={"retries": 2}
        )
        made = service.create_checkpoint("W", state)
    [(uuid, row)] = shown(url).items()
    workflow_id, timestamp, layer_index, whole, dag, config = row
    assert (uuid, workflow_id, layer_index) == (made.uuid, "W", 3)
    assert timestamp == made.timestamp.astimezone(UTC) and isinstance(timestamp, datetime)
    assert dag == whole["dag_structure"] == {"a": ["b"]}
    assert config == whole["execution_config"] == {"retries": 2}


def test_a_keyframe_in_the_middle_is_where_rebuilding_starts(url):
    with service_at(url, compression="none") as service:
        state = WorkflowState(workflow_id="W", messages=[])
        ids = []
        for number in range(20):
            state.messages.append({"role": "user", "content": f"{number} " * 700})
            ids.append(service.create_checkpoint("W", state))
        service.flush()
        restored = {made.uuid: fields(service.restore_checkpoint(str(made))) for made in ids}
    with server.connected(url) as administrator:
        assert len(administrator.execute("select 1 from keyframes").fetchall()) > 1
    assert {uuid: row[3] for uuid, row in shown(url).items()} == restored


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "performance"},
        {"mode": "compliance"},
        {"compression": "gzip", "compression_threshold_bytes": 1},
    ],
    ids=str,
)
def test_what_is_not_plain_json_is_null(url, settings):
    with service_at(url, **settings) as service:
        state = WorkflowState(workflow_id="W", messages=[{"content": "again and again " * 20}] * 9)
        service.create_checkpoint("W", state)
        state.messages += [{"content": "more and more " * 20}] * 9
        service.create_checkpoint("W", state)
    assert [row[3:] for row in shown(url).values()] == [(None, None, None)] * 2


def test_a_value_that_jsonb_cannot_hold_makes_its_own_states_null_and_no_other(url):
    with service_at(url, compression="none") as service:
        state = WorkflowState(workflow_id="W")
        ids = [service.create_checkpoint("W", state)]
        for value in ("nul \0", "fine", datetime(2026, 1, 1, tzinfo=UTC)):
            state.context["value"] = value
            ids.append(service.create_checkpoint("W", state))
        service.create_checkpoint("V", WorkflowState(workflow_id="V"))
    found = shown(url)
    states = [found[made.uuid][3] for made in ids]
    # What comes after it is built on it, until there is a keyframe.
    assert states[0] is not None and states[1:] == [None, None, None]
    assert sum(row[3] is not None for row in found.values()) == 2


def test_bytes_in_blobs_stay_references_and_values_beyond_json_stay_tagged(url):
    with service_at(url, compression="none") as service:
        state = WorkflowState(
            workflow_id="W", context={"raw": b"x" * 1000, "when": datetime(2026, 1, 1, tzinfo=UTC)}
        )
        service.create_checkpoint("W", state)
    [row] = shown(url).values()
    assert row[3]["context"]["raw"]["$hf"] == "blob"
    assert row[3]["context"]["when"] == {"$hf": "datetime", "v": "2026-01-01T00:00:00+00:00"}


def test_removed_checkpoints_are_not_shown(url):
    with service_at(url, compression="none") as service:
        state = WorkflowState(workflow_id="W")
        for number in range(4):
            state.current_step = number
            service.create_checkpoint("W", state)
    store = PostgresStore.open(url)
    store.remove("W", Removal(sequences=(1, 2)))
    store.close()
    assert sorted(row[3]["current_step"] for row in shown(url).values()) == [2, 3]


def calls(connection):
    """How often a state was rebuilt in this session."""
    connection.execute("select pg_stat_force_next_flush()")
    counted = "select calls from pg_stat_user_functions where funcid = 'checkpoint_state'::regproc"
    return sum(count for (count,) in connection.execute(counted).fetchall())


def test_a_query_that_does_not_look_at_states_rebuilds_none(url):
    with service_at(url) as service:
        for number in range(3):
            service.create_checkpoint("W", WorkflowState(workflow_id="W", current_step=number))
    with server.connected(url) as administrator:
        administrator.execute("set track_functions = 'all'")
        administrator.execute("select id, workflow_id, timestamp, layer_index from workflow_checkpoints")
        assert calls(administrator) == 0
        administrator.execute("select state, dag_structure, execution_config from workflow_checkpoints")
        assert calls(administrator) == 3


def test_people_read_it_without_setting_a_path(url):
    with service_at(url) as service:
        service.create_checkpoint("W", WorkflowState(workflow_id="W"))
    schema = url.partition("schema=")[2].partition("&")[0]
    with server.connected(url) as administrator:
        administrator.execute("set search_path = pg_catalog")
        [(state,)] = administrator.execute(f"select state from {schema}.workflow_checkpoints").fetchall()
        [(comment,)] = administrator.execute(
            "select obj_description(%s::regclass)", [f"{schema}.workflow_checkpoints"]
        ).fetchall()
    assert state["workflow_id"] == "W"
    assert "NULL" in comment
