"""The process of one contender: answers each line of JSON on its input with one on its output."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import traceback
from importlib import import_module, metadata
from typing import Any

from benchmarks.compare.contender import NotEqualError
from benchmarks.compare.workloads import Answer, Make, run


def named(maker: str) -> tuple[Make, tuple[str, ...]]:
    """Import `module:name`; answer what opens a contender, and the packages it is made of."""
    module, _, name = maker.partition(":")
    imported = import_module(module)
    return getattr(imported, name), imported.PACKAGES


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {package: metadata.version(package) for package in packages}
    return {"python": sys.version.split()[0], "sqlite3": sqlite3.sqlite_version, **found}


def main() -> None:
    # Whatever a peer prints must not stand among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    make, packages = named(sys.argv[1])
    _tell(answers, {"versions": versions(packages)})
    for line in sys.stdin:
        _tell(answers, _answered(make, json.loads(line)))


def _answered(make: Make, asked: Any) -> Answer:
    try:
        return run(make, asked["url"], asked["workload"], asked["arguments"])
    except NotEqualError as error:
        return {"not_equal": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"}


def _tell(answers: Any, answer: Answer) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
