"""`make compare`: Holdfast beside its peers, in one run on one machine."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.compare.driver import ROOT, Places, PythonOf
from benchmarks.compare.lanes import LANES, POSTGRES, Lane
from benchmarks.compare.pages import write
from benchmarks.compare.rounds import Results, Run, tell
from benchmarks.compare.sizes import FULL, SMALL, USUAL, Sizes
from benchmarks.measure import machine
from benchmarks.peers.environment import python_of
from benchmarks.peers.server import running

BUILD = Path("build/compare")
RESULTS = "results.json"
ROUNDS = 3
MINUTES = 13.0


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _asked(arguments)
    # Whoever ends the run ends the server and the contenders too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    problems: list[str] = []
    if not asked.tables:
        sizes = SMALL if asked.small else FULL if asked.full else USUAL
        lanes = [lane for lane in LANES if re.search(asked.only, lane.name)]
        minutes = asked.minutes or (float("inf") if asked.full else MINUTES)
        problems = compare(lanes, sizes, asked.rounds, minutes, asked.build, python_of).problems()
    # The tables are made from the file and nothing else.
    results: dict[str, Any] = json.loads((asked.build / RESULTS).read_text())
    for path in write(results, asked.build, ROOT, into_pages=asked.write):
        tell(f"wrote {path}")
    print((asked.build / "comparison.md").read_text())
    for problem in problems:
        tell(f"FAILED {problem}")
    return 1 if problems else 0


def compare(
    lanes: Sequence[Lane], sizes: Sizes, rounds: int, minutes: float, build: Path, python_of: PythonOf
) -> Results:
    """Measure; what is stored meanwhile lies below `build` and is removed."""
    work = build.resolve() / "work"
    shutil.rmtree(work, ignore_errors=True)
    results = Results(machine() | {"load_before": os.getloadavg()[0]}, asdict(sizes))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        needs_server = any(lane.store == POSTGRES for lane in lanes)
        server = stack.enter_context(running(work / "server")) if needs_server else None
        run = Run(lanes, Places(work, server), results, lambda results: _keep(results, build / RESULTS))
        stack.callback(run.stop)
        run.start(python_of, build / "logs")
        run.rounds(sizes, rounds, minutes * 60)
    return results


def _keep(results: Results, path: Path) -> None:
    """Keep every number, after each round: a run that is stopped leaves what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results.as_json()))


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="contenders whose name matches")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--minutes", type=float, help=f"no round begins that would end later; {MINUTES:g} unless --full"
    )
    parser.add_argument("--full", action="store_true", help="2,000 turns of everybody, more steps")
    parser.add_argument("--small", action="store_true", help="only show that everything works")
    parser.add_argument("--tables", action="store_true", help="make tables and pictures of the last run anew")
    parser.add_argument("--write", action="store_true", help="put them into docs/comparison.md and README.md")
    parser.add_argument("--build", type=Path, default=BUILD, help=f"where results go; {BUILD} by default")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
