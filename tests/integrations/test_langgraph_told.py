"""What is told of channels comes back, and no name in it stands before a text."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.domain.errors import CheckpointSchemaError
from holdfast.integrations.langgraph_told import Told, names_told, spaces_in, take_told, write_told

names = st.text(max_size=8)
versions = st.dictionaries(names, st.one_of(st.integers(), st.text(max_size=6)), max_size=4)
kinds = st.recursive(
    st.none() | st.sampled_from(["messages", "typed"]),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"dict": st.dictionaries(names, inner, max_size=3)}),
        st.fixed_dictionaries({"tuple": st.lists(inner, max_size=3)}),
    ),
    max_leaves=5,
)
tellings = st.fixed_dictionaries(
    {"id": st.text(), "versions": versions, "kinds": st.dictionaries(names, kinds, max_size=3)},
    optional={
        "seen": st.dictionaries(names, versions, max_size=3),
        "updated": st.none() | st.lists(names, max_size=3),
    },
)


def told(versions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "1", "versions": versions, "seen": {}, "updated": [], "kinds": {}, **more}


@given(st.lists(tellings, min_size=1, max_size=5))
def test_it_comes_back_whatever_was_told_before(history: list[dict[str, Any]]):
    known: tuple[str, ...] = ()
    for telling in history:
        written = write_told(telling, known)
        stored = {"v": 4, **written.fields()}
        assert names_told(stored) == written.names
        assert take_told(stored) == telling and stored == {"v": 4}
        known = written.names


def test_names_are_told_once():
    first = write_told(told({"messages": 1, "topic": 1}))
    later = write_told(told({"messages": 2, "topic": 1}, updated=["messages"]), first.names)
    assert later.names == first.names
    assert later.text == '["1",[0,2,1,1],[],[0],[]]'


def test_names_that_nobody_uses_any_more_are_dropped_in_the_end():
    known: tuple[str, ...] = ()
    for number in range(100):
        known = write_told(told({f"task-{number}": 1}), known).names
    assert len(known) < 20 and "task-99" in known and "task-0" not in known


def test_what_the_first_version_wrote_is_read():
    text = (
        '[{"versions":{"a":2},"seen":{"__input__":{}},"updated":["a"]},["kinds","a"],{"0":{"1":"messages"}}]'
    )
    stored = {"v": 4, "id": "x", "told": text}
    assert names_told(stored) == ()
    assert take_told(stored) == {
        "id": "x",
        "versions": {"a": 2},
        "seen": {"__input__": {}},
        "updated": ["a"],
        "kinds": {"a": "messages"},
    }


def test_a_channel_that_is_called_like_a_secret_does_not_hide_its_version():
    written = write_told(told({"password": "0001.5"}))
    assert "password" in json.loads(written.fields()["names"])
    assert "password" not in written.text


def test_nothing_of_it_is_hidden_as_a_secret():
    """Names may be those of secrets, in any order, and versions long numbers, as texts or not."""
    with holdfast.open("memory:") as service:
        said = service.append_event("w", "SAID", {"password": "0001.5"})
        assert said.data["password"] != "0001.5"
        for sample in permutations(["password", "messages", "api_key", "token"], 2):
            for version in (7, 123_456, f"{41:032}.0.8365141241520346"):
                written = write_told(told(dict.fromkeys(sample, version), seen={"b": {sample[0]: version}}))
                assert kept(service, written) == written.fields()


HIDDEN = "[REDACTED:token:3b7d5483]"
WRONG = [
    HIDDEN,
    "",
    "[]",
    "{}",
    "7",
    '["1",[0,1],[],[],[]',
    '["1",[9,1],0,0,[]]',
    '["1",[0],0,0,[]]',
    None,
    7,
]


@pytest.mark.parametrize("text", WRONG)
def test_what_was_hidden_or_written_by_somebody_else_is_told_as_such(text: Any):
    fields = write_told(told({"a": 1})).fields()
    with pytest.raises(CheckpointSchemaError, match="cannot be read"):
        take_told({**fields, "told": text})
    with pytest.raises(CheckpointSchemaError, match="cannot be read"):
        take_told({"told": fields["told"], "names": "7"})


@pytest.mark.parametrize("text", [HIDDEN, "", "7", None])
def test_names_that_were_hidden_are_told_as_such(text: Any):
    with pytest.raises(CheckpointSchemaError, match="cannot be read"):
        names_told({"names": text})


def test_a_namespace_that_was_hidden_stops_no_other():
    plain = write_told(told({"a": 1})).fields()
    found = spaces_in({"": dict(plain), "password": dict.fromkeys(plain, HIDDEN), "secret": HIDDEN})
    assert list(found) == [""] and found[""].versions == {"a": 1}


def kept(service: Any, written: Told) -> Any:
    event = service.append_event("w", "SAID", {"langgraph": {"": written.fields()}})
    return event.data["langgraph"][""]
