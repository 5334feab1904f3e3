"""What is told of channels comes back, and no name in it stands before a text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.integrations.langgraph_told import read_told, write_told

names = st.text(max_size=8)
versions = st.dictionaries(names, st.one_of(st.integers(), st.text(max_size=6)), max_size=4)
kinds = st.dictionaries(
    names, st.one_of(st.just("messages"), st.fixed_dictionaries({"dict": versions})), max_size=3
)


@given(versions, st.dictionaries(names, versions, max_size=3), st.none() | st.lists(names, max_size=3), kinds)
def test_it_comes_back(versions, seen, updated, kinds):
    told = {"versions": versions, "seen": seen, "updated": updated, "kinds": kinds}
    assert read_told(write_told(told)) == told


def test_a_channel_that_is_called_like_a_secret_does_not_hide_its_version():
    written = write_told({"versions": {"password": "0001.5"}, "seen": {}, "updated": None, "kinds": {}})
    plain, listed, numbered = json.loads(written)
    assert plain == {} and "password" in listed
    assert "password" not in json.dumps(numbered)
