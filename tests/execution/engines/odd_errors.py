"""Things that cannot be sent from one process to another."""

from __future__ import annotations

import threading
from typing import Any

from holdfast.execution.stopping import Unwinding


class Death(Unwinding):
    """Ends an attempt as if its worker had died: nothing is recorded of it."""


class OddError(Exception):
    """Is sent as its text, and cannot be made of that alone."""

    def __init__(self, number: int, unit: str) -> None:
        super().__init__(f"{number} is odd{unit}")


class LockedError(Exception):
    """Holds something that cannot be sent."""

    def __init__(self) -> None:
        super().__init__("it is locked", threading.Lock())


def fail_oddly() -> None:
    raise OddError(7, "")


def answer_oddly() -> Any:
    return threading.Lock()
