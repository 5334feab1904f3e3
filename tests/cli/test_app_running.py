"""Whatever a program prints or ends, the command's own output stays whole."""

from __future__ import annotations

import sys

import pytest

from holdfast.cli.app_running import program_at_work
from holdfast.cli.exits import Exit, Failure


def test_what_a_program_prints_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with program_at_work():
        print("at work")
    print("data")
    assert capsys.readouterr() == ("data\n", "at work\n")


def test_a_program_that_ends_the_process_is_told() -> None:
    with pytest.raises(Failure, match=r"ended itself.*SystemExit: 7") as told, program_at_work():
        sys.exit(7)
    assert told.value.leave is Exit.UNEXPECTED and "return or to raise" in told.value.hint


def test_a_signal_that_ends_us_is_left_alone() -> None:
    with pytest.raises(SystemExit), program_at_work():
        raise SystemExit(Exit.TERMINATED)
