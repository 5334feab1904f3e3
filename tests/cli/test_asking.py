from __future__ import annotations

import io

import pytest

from holdfast.cli.asking import confirm
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.output import Output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_yes_is_not_asked():
    confirm(Output(), "Erase W for ever?", yes=True)


def test_a_program_has_to_say_yes():
    with pytest.raises(Failure, match="to erase W for ever needs --yes") as refusal:
        confirm(Output(as_json=True), "Erase W for ever?", yes=False)
    assert refusal.value.leave == Exit.REFUSED


@pytest.mark.parametrize("answer", ["n\n", "y\n"])
def test_a_person_is_asked(answer: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if answer == "y\n":
        confirm(Output(), "Erase W for ever?", yes=False)
        return
    with pytest.raises(Failure, match="nothing was changed"):
        confirm(Output(), "Erase W for ever?", yes=False)
