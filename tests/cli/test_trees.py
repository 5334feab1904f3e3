from __future__ import annotations

from holdfast.cli.output import Output
from holdfast.cli.trees import Branch


def test_a_tree_is_drawn_with_letters_that_every_terminal_has(capsys):
    root = Branch("a\x1b", [Branch("b", [Branch("c")]), Branch("d", [Branch("e")])])
    Output().tree(root)
    assert capsys.readouterr().out == "a\\x1b\n|- b\n|  `- c\n`- d\n   `- e\n"


def test_a_tree_may_be_deeper_than_calls_may_nest():
    root = leaf = Branch("0")
    for _ in range(5_000):
        leaf.below.append(Branch("x"))
        leaf = leaf.below[0]
    assert sum(1 for _ in root.lines()) == 5_001
