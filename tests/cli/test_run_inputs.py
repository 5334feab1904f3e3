from __future__ import annotations

import io
import sys
from pathlib import Path

import click
import pytest

from holdfast.cli.run_inputs import read_inputs, read_pairs, read_value


def test_inputs_come_from_files_objects_and_pairs_and_the_later_one_wins(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text('{"a": 1, "b": 1}')
    assert read_inputs([str(file), ' {"b": 2, "c": [3]}', "c=4", "d=five words"]) == {
        "a": 1,
        "b": 2,
        "c": 4,
        "d": "five words",
    }


def test_inputs_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": null}'))
    assert read_inputs(["-"]) == {"a": None}


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ('"3"', "3"), ("true", True), ("tide", "tide"), ("", ""), ("{", "{")]
)
def test_a_value_is_json_where_it_is_some_and_else_text(text: str, value: object) -> None:
    assert read_value(text) == value
    assert read_pairs([f"key={text}"], "--config") == {"key": value}


@pytest.mark.parametrize("text", ["{no json", "[1]", "nowhere.json", "{}x"])
def test_what_is_no_input_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.UsageError, match="--input"):
        read_inputs([text])


def test_a_file_that_holds_no_object_is_named(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("[1]")
    with pytest.raises(click.UsageError, match=r"list\.json: that is no JSON object"):
        read_inputs([str(file)])
    file.write_bytes(b"\xff")
    with pytest.raises(click.UsageError, match="cannot be read"):
        read_inputs([str(file)])


def test_a_setting_without_a_value_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError, match="--config tone: write key=value"):
        read_pairs(["tone"], "--config")
