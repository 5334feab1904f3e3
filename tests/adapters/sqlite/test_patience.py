"""Others are waited for, but not for ever, and nothing else is repeated."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from holdfast.adapters.sqlite import faults
from holdfast.adapters.sqlite.driver import through_sqlite3
from holdfast.adapters.sqlite.patience import Patience


def failing(times: int, code: int) -> Callable[[], str]:
    """Make a call that fails so often before it succeeds."""
    left = [times]

    def call() -> str:
        left[0] -= 1
        if left[0] >= 0:
            error = sqlite3.OperationalError("in the way")
            error.sqlite_errorcode = code
            raise error
        return f"after {times}"

    return call


def test_a_call_is_repeated_while_others_are_in_the_way() -> None:
    patience = Patience(through_sqlite3(), 30)
    assert patience.run(failing(0, faults.BUSY)) == "after 0"
    assert patience.run(failing(5, faults.BUSY)) == "after 5"
    patience.let_others_in()
    assert patience.run(failing(1, faults.LOCKED)) == "after 1"


def test_no_other_error_is_repeated() -> None:
    with pytest.raises(sqlite3.OperationalError):
        Patience(through_sqlite3(), 30).run(failing(1, faults.IOERR))


def test_patience_ends() -> None:
    with pytest.raises(sqlite3.OperationalError):
        Patience(through_sqlite3(), 0).run(failing(1, faults.BUSY))
