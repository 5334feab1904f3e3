"""What to type to have the same done on the command line, quoted for a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any


def command(store: str, name: str, names: Sequence[str], options: Sequence[str] = ()) -> str:
    """Write a command of `holdfast` for a store; a name with a hyphen first is not taken for an option."""
    separator = ["--"] if any(one.startswith("-") for one in names) else []
    return shlex.join(["holdfast", name, *options, f"--store={store}", *separator, *names])


def option(name: str, value: Any) -> list[str]:
    """Write an option with its value; nothing where there is none."""
    if value is None or value is False:
        return []
    return [f"--{name}"] if value is True else [f"--{name}={value}"]


def assignment(pointer: str, value: Any) -> str:
    """Write that a place of a state is set."""
    return f"--set={pointer}={json.dumps(value, ensure_ascii=False)}"
