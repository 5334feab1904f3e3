"""The executor beside DBOS: what a durable step costs, and how soon a killed run goes on."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import crowd, saves
from benchmarks.measure import Row, machine
from benchmarks.peers.environment import python_of
from benchmarks.peers.server import Server, running
from benchmarks.peers.steps import STEPS

RAW = Path("build/bench/execution.json")
ROUNDS = 3
CROWD_ROUNDS = 1
KILL_AT = 500
COST_BAR = 3.0
RESUME_BAR = 5.0
HOLDFAST, DBOS = "Holdfast", "DBOS"
WAL = "SQLite in WAL mode"
#: Settings of a DBOS cloud, and what makes Python compile at each start: a peer was compiled when installed.
UNWANTED = ("DBOS", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True, slots=True)
class Lane:
    """One contender on one store."""

    contender: str
    store: str


#: In turns, so that what disturbs one disturbs the other.
LANES = (
    Lane(DBOS, "SQLite"),
    Lane(HOLDFAST, "SQLite"),
    Lane(DBOS, "PostgreSQL"),
    Lane(HOLDFAST, "PostgreSQL"),
    Lane(DBOS, WAL),
    Lane(HOLDFAST, "files"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One undisturbed run, and one that was killed and resumed."""

    whole: dict[str, Any]
    resumed: dict[str, Any]
    repeated: int
    lost: int


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    runs: dict[Lane, list[Run]] = defaultdict(list)
    with running(folder / "server") as server:
        places = Places(folder.resolve(), server)
        for _ in range(ROUNDS):
            for lane in LANES:
                runs[lane].append(_measured(lane, places))
        crowds = crowd.measure(places.holdfast_urls, CROWD_ROUNDS)
        saved = saves.measure(places.holdfast_urls)
    _keep(runs, crowds, saved)
    return [*_rows(runs), *crowd.rows(crowds), *saves.rows(saved)]


class Places:
    """Hands out URLs of stores that nobody has used yet, as each contender writes them."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder = folder
        self._server = server
        self._numbers = itertools.count(1)

    def new_file(self) -> Path:
        return self._folder / f"{next(self._numbers)}"

    def url(self, lane: Lane) -> str:
        if lane.store == "PostgreSQL":
            return self._server.new_database()
        path = self.new_file()
        if lane.contender == HOLDFAST:
            return str(path) if lane.store == "files" else f"sqlite:{path}"
        if lane.store == WAL:
            # The mode is kept in the file, and so is found by whoever opens it next.
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("pragma journal_mode=wal")
        return f"sqlite:///{path}"

    def holdfast_urls(self) -> dict[str, str]:
        return {store: self.url(Lane(HOLDFAST, store)) for store in ("files", "SQLite", "PostgreSQL")}


def _measured(lane: Lane, places: Places) -> Run:
    url, journal = places.url(lane), places.new_file()
    _child(lane, url, journal, "--kill-at", str(KILL_AT))
    resumed = _child(lane, url, journal, "--resume")
    whole = _child(lane, places.url(lane), places.new_file())
    return Run(whole, resumed, *strays(map(int, journal.read_text().split())))


def strays(entered: Iterable[int]) -> tuple[int, int]:
    """Count the steps that were repeated though they were done, and those that nobody entered."""
    counts = Counter(entered)
    # The step in flight had begun and was not done: it is to be entered twice.
    counts[KILL_AT] -= 1
    return sum(count > 1 for count in counts.values()), STEPS - sum(count > 0 for count in counts.values())


def _child(lane: Lane, url: str, journal: Path, *more: str) -> dict[str, Any]:
    """Run the steps in a process of their own; what it prints, unless it is told to kill itself."""
    python = str(python_of("dbos")) if lane.contender == DBOS else sys.executable
    module = f"benchmarks.peers.{lane.contender.lower()}_steps"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    command = [python, "-m", module, url, str(journal), "--started-at", str(time.monotonic()), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    expected = -signal.SIGKILL if "--kill-at" in more else 0
    if done.returncode != expected:
        raise AssertionError(f"{lane} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = {} if expected else json.loads(done.stdout.splitlines()[-1])
    return told


def _rows(runs: dict[Lane, list[Run]]) -> list[Row]:
    rows = []
    for store in ("SQLite", "PostgreSQL"):
        ours, theirs = runs[Lane(HOLDFAST, store)], runs[Lane(DBOS, store)]
        rows += [_cost(store, ours, theirs, COST_BAR), _work(store, ours, theirs)]
        rows += [_resume(store, ours, theirs, RESUME_BAR), _started(store, ours, theirs)]
        rows += [_finished(store, ours, theirs)]
    files, wal = runs[Lane(HOLDFAST, "files")], runs[Lane(DBOS, WAL)]
    rows += [_cost("SQLite, DBOS in WAL mode", runs[Lane(HOLDFAST, "SQLite")], wal)]
    rows += [_resume("SQLite, DBOS in WAL mode", runs[Lane(HOLDFAST, "SQLite")], wal)]
    rows += [_alone("files", files)]
    return [*rows, *(_once(contender, runs) for contender in (HOLDFAST, DBOS))]


def _cost(store: str, ours: list[Run], theirs: list[Run], bar: float | None = None) -> Row:
    mine, other = _median(ours, _whole("p50_seconds")), _median(theirs, _whole("p50_seconds"))
    tails = [_median(runs, _whole("p95_seconds")) for runs in (ours, theirs)]
    told = f"p50 {_ms(mine)}, p95 {_ms(tails[0])}; DBOS p50 {_ms(other)}, p95 {_ms(tails[1])}"
    return compared(f"{store}: per step", told, other / mine, bar)


def _work(store: str, ours: list[Run], theirs: list[Run]) -> Row:
    """Tell what other programs on the machine change least; a server's part is not in it."""
    mine, other = (_median(runs, _whole("cpu_seconds")) for runs in (ours, theirs))
    return compared(f"{store}: CPU per step", f"{_ms(mine)}; DBOS {_ms(other)}", other / mine)


def _resume(store: str, ours: list[Run], theirs: list[Run], bar: float | None = None) -> Row:
    """Tell the time from `run()` and `launch()`, everything imported, to the step that was in flight."""
    mine, other = _median(ours, _again("first_seconds")), _median(theirs, _again("first_seconds"))
    waited = _median(theirs, _again("workflow_seconds"))
    told = f"{_ms(mine)}; DBOS {_ms(other)}, {_ms(waited)} of it waiting"
    return compared(f"{store}: killed, first new step", told, other / mine, bar)


def _started(store: str, ours: list[Run], theirs: list[Run]) -> Row:
    mine, other = (_median(runs, _again("first_since_start_seconds")) for runs in (ours, theirs))
    return compared(
        f"{store}: the same from the process's start", f"{_ms(mine)}; DBOS {_ms(other)}", other / mine
    )


def _finished(store: str, ours: list[Run], theirs: list[Run]) -> Row:
    mine, other = (_median(runs, _again("end_seconds")) for runs in (ours, theirs))
    return compared(f"{store}: killed, to the end", f"{_ms(mine)}; DBOS {_ms(other)}", other / mine)


def _alone(store: str, runs: list[Run]) -> Row:
    p50, p95 = _median(runs, _whole("p50_seconds")), _median(runs, _whole("p95_seconds"))
    again = _median(runs, _again("first_seconds"))
    told = f"p50 {_ms(p50)}, p95 {_ms(p95)}; killed, first new step {_ms(again)}"
    return Row("execution", f"{store}: per step", told)


def _once(contender: str, runs: dict[Lane, list[Run]]) -> Row:
    mine = [one for lane, several in runs.items() if lane.contender == contender for one in several]
    repeated, lost = sum(one.repeated for one in mine), sum(one.lost for one in mine)
    told = f"{repeated} repeated, {lost} lost, in {len(mine)} killed runs"
    held = repeated == lost == 0 if contender == HOLDFAST else None
    return Row("execution", f"{contender}: committed steps", told, "none" if held is not None else "", held)


def compared(what: str, told: str, ratio: float, bar: float | None = None) -> Row:
    wanted, held = ("", None) if bar is None else (f">= {bar:g}x", ratio >= bar)
    return Row("execution", what, f"{told}: {ratio:.1f}x", wanted, held)


def _whole(name: str) -> Callable[[Run], float]:
    return lambda run: float(run.whole[name])


def _again(name: str) -> Callable[[Run], float]:
    return lambda run: float(run.resumed[name])


def _median(runs: list[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(map(value, runs))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"


def _keep(runs: dict[Lane, list[Run]], crowds: dict[str, Any], saved: dict[str, Any]) -> None:
    """Leave every number of every round to whoever wants to judge them."""
    lanes = [{**asdict(lane), "rounds": [asdict(one) for one in several]} for lane, several in runs.items()]
    RAW.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine(), "lanes": lanes, "crowd": crowds, "saves": saved}
    RAW.write_text(json.dumps(told, indent=2))
