"""Fuzz every decoder for some minutes: `python -m tests.fuzz --minutes 20`.

The time is divided among the targets, those that had least of it first. Corpora stay in build/fuzz, so that
the next run goes on with what this one found; counts of all runs add up in build/fuzz/result.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

SECONDS_MIN = 5
BROKEN = "broken"
ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    arguments = _arguments()
    # What refuses a million inputs would log each of them.
    logging.disable(logging.CRITICAL)
    atheris: Any = importlib.import_module("atheris")
    # Whoever sees which lines an input reaches, and what it is compared with, finds more, and sooner. Nothing
    # of ours may be imported before.
    with atheris.instrument_imports(include=["holdfast", "tests.fuzz.broken"]):
        known = _targets(arguments.targets)
        fuzz = importlib.import_module("tests.fuzz.driver").fuzz
    source = importlib.import_module("tests.campaign").fingerprint(ROOT)
    result = Result(arguments.folder, source)
    names = sorted(arguments.targets or known, key=result.seconds_of)
    deadline = time.monotonic() + 60 * arguments.minutes
    for at, name in enumerate(names):
        left = deadline - time.monotonic()
        seconds = max(SECONDS_MIN, round(left / (len(names) - at)))
        if left < SECONDS_MIN:
            break
        began = time.monotonic()
        fuzzed = fuzz(atheris, known[name], arguments.folder, seconds, arguments.seed)
        result.add(name, fuzzed, time.monotonic() - began, arguments.seed)
        print(result.line(name), flush=True)
    print(result.summary())
    return int(bool(result.crashes()))


def _targets(names: list[str]) -> dict[str, Any]:
    """Import what is to be fed; the one that is broken on purpose only where it is asked for."""
    if names == [BROKEN]:
        return {BROKEN: importlib.import_module("tests.fuzz.broken").TARGET}
    known: dict[str, Any] = importlib.import_module("tests.fuzz.table").TARGETS
    return known


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no target after so long")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "fuzz", help="where everything is kept"
    )
    parser.add_argument("--seed", type=int, default=1, help="of chance")
    parser.add_argument("targets", nargs="*", help="decoders, or `broken`; all decoders where none is named")
    return parser.parse_args()


class Result:
    """What all runs together gave, written after each target."""

    def __init__(self, folder: Path, source: str) -> None:
        self._folder = folder
        self._source = source
        self._path = folder / "result.json"
        self._targets: dict[str, dict[str, Any]] = {}
        if self._path.exists():
            self._targets = json.loads(self._path.read_text(encoding="utf-8"))["targets"]

    def seconds_of(self, name: str) -> float:
        seconds: float = self._targets.get(name, {}).get("seconds", 0.0)
        return seconds

    def add(self, name: str, fuzzed: Any, seconds: float, seed: int) -> None:
        before = self._targets.get(name, {"executions": 0, "seconds": 0.0, "coverage_new": 0})
        self._targets[name] = {
            "executions": before["executions"] + fuzzed.executions,
            "seconds": round(before["seconds"] + seconds, 1),
            "coverage": fuzzed.coverage,
            "coverage_new": before["coverage_new"] + fuzzed.coverage_new,
            "crashes": self.crashes(f"{name}-"),
            "exit": fuzzed.exit,
            "seed": seed,
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        told = {"source": self._source, "targets": dict(sorted(self._targets.items()))}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self._path)

    def crashes(self, prefix: str = "") -> list[str]:
        """Name the inputs that were kept."""
        kept = sorted(path.name for path in (self._folder / "crashes").glob(f"{prefix}*"))
        return [name for name in kept if not name.endswith(".txt")]

    def line(self, name: str) -> str:
        told = self._targets[name]
        return (
            f"{name}: {told['executions']:,} executions in {told['seconds']:.0f} s, "
            f"coverage {told['coverage']} (+{told['coverage_new']}), {len(told['crashes'])} crashes"
        )

    def summary(self) -> str:
        executions = sum(one["executions"] for one in self._targets.values())
        seconds = sum(one["seconds"] for one in self._targets.values())
        return (
            f"{len(self._targets)} decoders, {executions:,} executions in {seconds / 60:.1f} minutes, "
            f"{len(self.crashes())} crashes in {self._folder / 'crashes'}"
        )


if __name__ == "__main__":
    sys.exit(main())
