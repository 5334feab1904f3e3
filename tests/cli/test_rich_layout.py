from __future__ import annotations

import io
from collections import Counter
from itertools import chain
from typing import Literal

import pytest
from rich.console import Console, RenderableType

from holdfast.cli.output import Output, safe, width
from holdfast.cli.rich_layout import grown, laid_out
from holdfast.cli.tables import Table
from holdfast.cli.trees import Branch
from holdfast.cli.watch_rows import HEAD, RIGHT

HOSTILE = "\x1b[2J[red]x[/red]"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


#: Tables as commands have them, with cells that are wider than some terminals.
TABLES = {
    "events": Table(
        ("SEQ", "TIME (UTC)", "TYPE", "AGENT", "WHAT"),
        [("2", "2026-11-18 02:33:12", "CHECKPOINT_CREATED", "worker-1", "checkpoint 2 was made")],
        "r",
    ),
    "list": Table(
        ("CHECKPOINT", "CREATED (UTC)", "TYPE", "STATUS", "STATE", "STORED", "STAGE", "AGENT"),
        [("WF-1@3", "2026-11-18 02:33:12", "agent_complete", "active", "157 B", "431 B", "work", "w " * 30)],
        "    rr",
    ),
    "audit log": Table(
        ("ENTRY", "TIME (UTC)", "TYPE", "OUTCOME", "WORKFLOW", "WHO", "FACTS"),
        [
            (
                "cli-2026-11-18#1",
                "2026-11-18 02:33:12",
                "READ",
                "success",
                "-",
                "root",
                f"a=1 b={'x' * 70} c=2",
            )
        ],
    ),
    "watch": Table(
        HEAD, [("WF-1", "failed", "12", "1", "0", "2026-11-18 02:33:12", "agent b failed")], RIGHT
    ),
    "shrunk": Table(("A", "B"), [("aaaa " * 10 + "\x1b" * 9, "b" * 19 + " " + "\u6f22" * 30)]),
}


def painted(
    what: RenderableType, *, width: int = 60, color_system: Literal["standard"] | None = "standard"
) -> str:
    stream = io.StringIO()
    Console(
        file=stream, force_terminal=True, color_system=color_system, width=width, legacy_windows=False
    ).print(what)
    return stream.getvalue()


def test_statuses_are_coloured_and_say_it_in_words():
    table = Table(
        ("NAME", "STATUS", "N"), [("failed", "failed", "1"), ("b", "completed, pinned", "22")], "  r"
    )
    shown = painted(laid_out(table, 60))
    assert "\x1b[31mfailed" in shown and "\x1b[32mcompleted, pinned" in shown
    # Only a status is one: a workflow may be called anything.
    assert shown.splitlines()[1].startswith("failed")


def test_nothing_out_of_a_store_is_obeyed():
    table = Table(("NAME", "STATUS"), [(HOSTILE, HOSTILE)])
    tree = Branch(HOSTILE, [Branch(HOSTILE)])
    for shown in (painted(laid_out(table, 60)), painted(grown(tree))):
        assert "\x1b[2J" not in shown and shown.count("[red]x[/red]") == 2


def test_long_cells_are_wrapped_to_the_width_and_not_cut():
    name = "workflow-" * 10
    lines = painted(laid_out(Table(("NAME", "N"), [(name, "1")]), 50), width=50).splitlines()
    assert max(map(len, lines[1:])) <= 50
    assert "".join(line.split()[0] for line in lines[1:]) == name


@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_lost_on_any_terminal(name: str):
    table = TABLES[name]
    wanted = Counter("".join([*table.head, *map(safe, chain(*table.rows))]).replace(" ", ""))
    for columns in range(40, 201):
        lines = painted(laid_out(table, columns), width=columns, color_system=None).splitlines()
        assert Counter("".join(lines).replace(" ", "")) == wanted, (columns, lines)
        assert max(map(width, lines)) <= columns


def test_a_table_that_does_not_fit_has_a_line_for_each_cell_of_a_row():
    table = Table(("NAME", "STATUS", "N"), [("one", "failed", "1"), ("two", "ok", "2")])
    shown = painted(laid_out(table, 16), width=16)
    assert "\x1b[31mfailed" in shown
    plain = painted(laid_out(table, 16), width=16, color_system=None)
    lines = [line.split() for line in plain.splitlines()]
    first = [["NAME", "one"], ["STATUS", "failed"], ["N", "1"], []]
    assert lines == [*first, ["NAME", "two"], ["STATUS", "ok"], ["N", "2"], []]


def test_a_terminal_gets_the_painted_table_and_a_pipe_the_plain_one(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", terminal)
    Output(color="always").table(("NAME", "STATUS"), [("a", "failed")])
    Output(color="never").tree(Branch("a", [Branch("b")]))
    shown = terminal.getvalue()
    assert "\x1b[" in shown.partition("a\n")[0]
    assert "└── b" in shown and "\x1b" not in shown.partition("└")[2]
