from __future__ import annotations

import csv
import io
import json
import time

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.output import Output, safe
from holdfast.cli.tables import Table
from holdfast.cli.terminal_text import Cell, size_text

TABLE = Table(
    ("NAME", "NEWEST (UTC)", "SIZE"), [("a", "2026-01-11 14:30:00", "1 B"), ("b", "-", "2 B")], "  r"
)


def test_columns_are_named_without_their_zone_and_chosen_in_any_order():
    chosen = TABLE.only(["size", "newest"])
    assert chosen.head == ("SIZE", "NEWEST (UTC)")
    assert chosen.rows == [("1 B", "2026-01-11 14:30:00"), ("2 B", "-")]
    assert chosen.right == "r "


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(click.UsageError, match="the columns are name, newest, size"):
        TABLE.only(["sise"])


def test_times_are_shown_as_the_clock_on_the_wall_and_the_head_says_so(monkeypatch):
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    try:
        local = TABLE.in_local_time()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local.head == ("NAME", "NEWEST (local)", "SIZE")
    assert [row[1] for row in local.rows] == ["2026-01-11 16:30:00", "-"]
    assert local.names == TABLE.names


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=5))
def test_csv_says_what_the_table_shows(rows):
    text = "\n".join(Table(TABLE.head, rows).csv_lines())
    head, *cells = csv.reader(io.StringIO(text))
    assert head == ["name", "newest", "size"]
    assert cells == [[safe(cell) for cell in row] for row in rows]


def test_a_table_is_printed_as_it_is_asked_for(capsys):
    Output(layout="jsonl", columns=("name",)).table(TABLE.head, TABLE.rows)
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == [{"name": "a"}, {"name": "b"}]
    Output(layout="csv", columns=("size", "name")).table(TABLE.head, TABLE.rows)
    assert capsys.readouterr().out == "size,name\n1 B,a\n2 B,b\n"
    Output().table(TABLE.head, TABLE.rows, right=TABLE.right)
    assert capsys.readouterr().out.splitlines()[0] == "NAME  NEWEST (UTC)         SIZE"


def test_programs_are_told_values_and_people_what_they_mean(capsys):
    head = ("NAME", "NEWEST (UTC)", "SIZE", "COUNT", "RATE", "LAST")
    stored = "2026-01-11T14:30:00.123456Z"
    row = ("1,234", Cell("2026-01-11 14:30:00", stored), size_text(20_512), "1,234", "-1.5", "-")
    Output(layout="jsonl").table(head, [row], right="  rrrr")
    told = json.loads(capsys.readouterr().out)
    assert list(told.values()) == ["1,234", stored, 20_512, 1234, -1.5, None]
    Output(layout="csv", is_local_time=True).table(head, [row], right="  rrrr")
    assert capsys.readouterr().out.splitlines()[1] == f'"1,234",{stored},20512,1234,-1.5,'
    Output().table(head, [row], right="  rrrr")
    assert "20.5 KB  1,234" in capsys.readouterr().out


def test_a_word_in_a_column_of_numbers_stays_one():
    table = Table(("A",), [("about 3",), ("1.2.3",), (",",), ("",)], "r")
    assert [row["a"] for row in table.objects()] == ["about 3", "1.2.3", ",", None]
