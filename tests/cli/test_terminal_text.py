from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.terminal_text import (
    counted,
    json_line,
    json_safe,
    json_text,
    safe,
    size_text,
    table_lines,
    wants_color,
    width,
)

HOSTILE = "\x1b[2J\x07\x9b31m\x7f\r\n\t\u202edrow\u2028\u200b\ufeff\ud800"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_are_spelled_out():
    assert safe(HOSTILE) == ("\\x1b[2J\\x07\\x9b31m\\x7f\\r\\n\\t\\u202edrow\\u2028\\u200b\\ufeff\\ud800")
    assert safe("\U000e0041") == "\\U000e0041"


def test_letters_of_all_languages_stay():
    assert safe("Grüße, 世界, שלום") == "Grüße, 世界, שלום"


@given(st.text(st.characters()))
def test_safe_text_is_one_line_without_anything_a_terminal_obeys(text):
    shown = safe(text)
    assert shown.isprintable() or not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in shown)
    assert len(shown.splitlines()) <= 1


@given(st.dictionaries(st.text(), st.text()))
def test_json_for_programs_is_ascii_and_the_same_value(value):
    text = json_text(value)
    assert text.isascii() and "\x7f" not in text
    assert json.loads(text) == value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text()))
def test_json_for_people_is_the_same_value_with_nothing_to_obey(value):
    text = json_safe(json.dumps(value, indent=2, ensure_ascii=False))
    assert json.loads(text) == value
    assert all(safe(line) == line for line in text.split("\n"))


def test_json_nested_deeper_than_the_encoder_goes_is_written_all_the_same():
    deep: list[object] = ["\u00e9"]
    for _ in range(5_000):
        deep = [deep]
    for text in (json_text(deep), json_line(deep)):
        assert text.isascii() and text.count("[") == 5_001


def test_columns_are_aligned_by_what_a_terminal_shows():
    lines = table_lines(("NAME", "N"), [("世界", "1"), ("e\u0301", "22"), ("a\x1bb", "3")], right=" r")
    assert lines == ["NAME     N", "世界     1", "e\u0301       22", "a\\x1bb   3"]
    assert {width(line) for line in lines} == {10}


def test_a_row_of_the_wrong_length_is_a_mistake():
    with pytest.raises(ValueError, match="zip"):
        table_lines(("A", "B"), [("1",)])


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 KB"),
        (20_480, "20.5 KB"),
        (123_456_789, "123 MB"),
        (5e15, "5000 TB"),
    ],
)
def test_sizes_are_written_for_people(count, text):
    assert size_text(count) == text


def test_nouns_follow_their_number():
    assert [counted(n, "checkpoint") for n in (0, 1, 1_200)] == [
        "0 checkpoints",
        "1 checkpoint",
        "1,200 checkpoints",
    ]
    assert (counted(2, "entry"), counted(2, "key")) == ("2 entries", "2 keys")


@pytest.mark.parametrize(
    ("choice", "environment", "expected"),
    [
        ("auto", {}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_on_a_terminal(choice, environment, expected):
    assert wants_color(Terminal(), choice, environment) is expected


def test_colour_off_a_terminal_only_when_asked_for():
    assert not wants_color(io.StringIO(), "auto", {})
    assert wants_color(io.StringIO(), "auto", {"FORCE_COLOR": "1"})
    assert wants_color(io.StringIO(), "always", {})
