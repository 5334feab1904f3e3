from __future__ import annotations

import io

from rich.console import Console, RenderableType

from holdfast.cli.output import Output
from holdfast.cli.rich_layout import grown, laid_out
from holdfast.cli.tables import Table
from holdfast.cli.trees import Branch

HOSTILE = "\x1b[2J[red]x[/red]"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def painted(what: RenderableType, *, width: int = 60) -> str:
    stream = io.StringIO()
    Console(
        file=stream, force_terminal=True, color_system="standard", width=width, legacy_windows=False
    ).print(what)
    return stream.getvalue()


def test_statuses_are_coloured_and_say_it_in_words():
    table = Table(
        ("NAME", "STATUS", "N"), [("failed", "failed", "1"), ("b", "completed, pinned", "22")], "  r"
    )
    shown = painted(laid_out(table))
    assert "\x1b[31mfailed" in shown and "\x1b[32mcompleted, pinned" in shown
    # Only a status is one: a workflow may be called anything.
    assert shown.splitlines()[1].startswith("failed")


def test_nothing_out_of_a_store_is_obeyed():
    table = Table(("NAME", "STATUS"), [(HOSTILE, HOSTILE)])
    tree = Branch(HOSTILE, [Branch(HOSTILE)])
    for shown in (painted(laid_out(table)), painted(grown(tree))):
        assert "\x1b[2J" not in shown and shown.count("[red]x[/red]") == 2


def test_long_cells_are_wrapped_to_the_width_and_not_cut():
    name = "workflow-" * 10
    lines = painted(laid_out(Table(("NAME", "N"), [(name, "1")])), width=40).splitlines()
    assert max(map(len, lines[1:])) <= 40
    assert "".join(line.split()[0] for line in lines[1:]) == name


def test_a_terminal_gets_the_painted_table_and_a_pipe_the_plain_one(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", terminal)
    Output(color="always").table(("NAME", "STATUS"), [("a", "failed")])
    Output(color="never").tree(Branch("a", [Branch("b")]))
    shown = terminal.getvalue()
    assert "\x1b[" in shown.partition("a\n")[0]
    assert "└── b" in shown and "\x1b" not in shown.partition("└")[2]
