"""Placeholders are keyed, stable, and known again."""

from __future__ import annotations

import hashlib
import hmac
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import msgpack, plainjson
from holdfast.domain.errors import ConfigError
from holdfast.domain.placeholders import (
    Placeholders,
    is_placeholder,
    is_redacted,
    masked,
    may_hold,
    may_show,
    redacted_paths,
    replace,
    spans,
)
from holdfast.domain.plain import TypeRegistry, to_plain

KEY = b"sixteen bytes or more"
ONE = "[REDACTED:token:0123abcd]"


@given(st.binary(max_size=50))
def test_a_placeholder_is_eight_digits_of_an_hmac(secret: bytes) -> None:
    made = Placeholders(KEY).make("api-key", secret)
    assert made == f"[REDACTED:api-key:{hmac.new(KEY, secret, hashlib.sha256).hexdigest()[:8]}]"
    assert is_placeholder(made)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="15 bytes"):
        Placeholders(b"x" * 15)


def test_placeholders_are_found_and_blotted_out() -> None:
    text = f"a {ONE}{ONE} [REDACTED:x:nothex!!] [REDACTED]"
    assert [text[start:end] for start, end in spans(text)] == [ONE, ONE]
    assert masked(text) == text.replace(ONE, "\x00" * len(ONE))
    assert len(masked(text)) == len(text)
    assert spans("nothing") == []
    assert masked("nothing") == "nothing"


@pytest.mark.parametrize(
    "text", [f" {ONE}", f"{ONE}x", "[REDACTED:token:0123ABCD]", "[REDACTED::0123abcd]", ""]
)
def test_only_a_whole_placeholder_is_one(text: str) -> None:
    assert not is_placeholder(text)


def test_the_paths_of_what_was_hidden_can_be_read_off_a_restored_tree() -> None:
    tree = {"a": [1, f"x {ONE}"], ONE: {"b": ONE.encode()}, "c": {"$hf": "tuple", "v": [ONE]}, "d": None}
    assert redacted_paths(tree) == [[ONE], ["a", 1], [ONE, "b"], ["c", "v", 0]]
    assert redacted_paths({"a": 1}) == []


def test_the_form_is_the_documented_one() -> None:
    assert re.fullmatch(r"\[REDACTED:[a-z0-9-]+:[0-9a-f]{8}\]", Placeholders(KEY).make("url-password", b"x"))


def test_a_key_is_asked_for_when_the_first_secret_is_met() -> None:
    asked = []

    def key() -> bytes:
        asked.append(1)
        return KEY

    placeholders = Placeholders(key)
    assert asked == []
    assert placeholders.make("a", b"x") == placeholders.make("a", b"x") == Placeholders(KEY).make("a", b"x")
    assert asked == [1]
    with pytest.raises(ConfigError, match="5 bytes"):
        Placeholders(lambda: b"short").make("a", b"x")


def test_placeholders_are_replaced_one_by_one() -> None:
    assert replace(f"a {ONE} b {ONE}", lambda found: "x" if found == ONE else "y") == "a x b x"


@given(st.binary(max_size=5), st.binary(max_size=5))
def test_a_placeholder_anywhere_is_seen_in_the_tree_and_in_its_bytes(before: bytes, after: bytes) -> None:
    for value in (
        before + ONE.encode() + after,
        f"\ud800{before!r} {ONE}",
        [1, f"x {ONE}"],
        {ONE: 1},
        (ONE,),
    ):
        tree = to_plain({"a": value}, TypeRegistry())
        assert is_redacted(tree)
        assert may_hold(plainjson.dumps(tree)) and may_show(msgpack.pack(tree))
        assert redacted_paths(tree)


@given(
    st.recursive(
        st.text() | st.binary() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_holds_none_is_not_taken_for_it(value: object) -> None:
    tree = to_plain({"a": value}, TypeRegistry())
    assert not is_redacted(tree)
    assert not may_hold(plainjson.dumps(tree))
    assert redacted_paths(tree) == []


def test_packed_bytes_without_mark_and_tag_show_none() -> None:
    assert not may_show(msgpack.pack({"a": ["[REDACTED", b"REDACTED:", 1.5]}))
