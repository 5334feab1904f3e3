"""Which tests the files of this folder define, for pages that name them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent


def undefined(names: Iterable[str]) -> set[str]:
    """Answer those of the names, each `tests/FILE.py::TEST`, that no file defines."""
    files = {name.partition("::")[0] for name in names}
    return set(names) - {name for file in files for name in _defined(file)}


def _defined(file: str) -> set[str]:
    path = ROOT / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {f"{file}::{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
