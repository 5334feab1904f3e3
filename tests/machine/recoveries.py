"""Faults during the recovery from a fault: every call of a recovery fails, or is its last.

A store that has grown is killed at some call of its writer. Its recovery (opening, settling, closing) is hurt
at each of its own calls, and half of the time the next recovery is hurt, too. After that one recovery must
bring everything that was acknowledged, and the same as a recovery that nobody disturbed. One that throws
something away must be found out.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from holdfast.domain.errors import CheckpointError
from tests.machine.apart import apart, checked
from tests.machine.images import workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES, WORKFLOWS, Scenario
from tests.machine.subjects import FILES, Told
from tests.machine.syscalls import Stage, _play, ended, stages
from tests.machine.tracing import Fault, Traced, faults_for, traced
from tests.process.child import Report

NAME = "faults during recovery"
_SHUFFLE = 9


def recover(report: Report, scenario: Scenario, lies: bool) -> None:
    """Open, settle, close."""
    if lies:
        _throw_away(scenario)
    try:
        store = scenario.open()
        store.settle()
        store.close()
    except CheckpointError as error:
        report.say("error", "-", 0, type(error).__name__)


def _throw_away(scenario: Scenario) -> None:
    """Recover as nobody may: what lies in the journal, or came last, is taken for garbage."""
    with suppress(OSError, sqlite3.Error):
        if scenario.store == FILES:
            for ring in Path(scenario.root).glob("journal/ring*"):
                ring.unlink()
            return
        with closing(sqlite3.connect(scenario.root, isolation_level=None)) as database:
            newest = "select max(sequence) from checkpoints"
            database.execute(f"delete from checkpoints where sequence = ({newest})")


def run(order: Order) -> Outcome:
    """Hurt so many recoveries of one store that was killed somewhere."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    with workshop() as folder:
        crashed, told = _crashed(order.store, folder, rng)
        outcome.acknowledged = told.count
        reference = crashed.copy("undist.")
        apart(_recovered, reference)
        expected = apart(_heads, reference)
        cases = _faults_of(crashed, folder)
        outcome.counts["cases of this crash"] = len(cases)
        rng.shuffle(cases)
        for fault in cases[: order.cases]:
            if not outcome.goes_on:
                break
            scenario = crashed.copy(f"{outcome.cases:07d}")
            seen = [traced(folder / "log", fault, recover, scenario, order.lies)]
            if rng.random() < 0.5:
                again = rng.choice(cases)
                seen.append(traced(folder / "log", again, recover, scenario, order.lies))
                outcome.count("hurt twice")
            _judge(outcome, fault, seen, scenario, told, expected)
            shutil.rmtree(scenario.folder)
    return outcome


def _crashed(store: str, folder: Path, rng: random.Random) -> tuple[Stage, Told]:
    """Kill a writer at a call of its own choice; give the store as it was left, and what was told."""
    grown = stages(store, folder)[1]
    scenario = grown.copy("counted")
    calls = traced(folder / "log", None, _play, scenario, False).calls_below(scenario.folder)
    shutil.rmtree(scenario.folder)
    writes = [one for one in calls if one[0] in ("pwrite64", "fdatasync", "fsync", "unlink", "ftruncate")]
    call, number = rng.choice(writes[len(writes) // 4 :])
    crashed = grown.copy("crashed")
    seen = traced(folder / "log", Fault(call, number, "KILL"), _play, crashed, False)
    if seen.status != -9:
        raise RuntimeError(f"it was not killed: {seen.status} {seen.said}")
    return Stage(store, Path(crashed.folder), 0), grown.told(seen)


def _faults_of(crashed: Stage, folder: Path) -> list[Fault]:
    scenario = crashed.copy("counted")
    seen = traced(folder / "log", None, recover, scenario, False)
    shutil.rmtree(scenario.folder)
    return faults_for(seen.calls_below(scenario.folder))


def _judge(
    outcome: Outcome, fault: Fault, seen: list[Traced], scenario: Scenario, told: Told, expected: Any
) -> None:
    found = [text for one in seen for text in (ended(one, fault) if one.status not in (0, -9) else ())]
    found += checked(scenario.check, told)
    heads = apart(_heads, scenario) if not found else expected
    found += [] if heads == expected else [f"recovered otherwise: {heads}, undisturbed {expected}"]
    found += [] if found else checked(scenario.go_on) or checked(scenario.check, told)
    outcome.blame(f"{fault}, {len(seen)} times", found)
    outcome.cases += 1
    outcome.count(fault.what)
    outcome.count("errors told", sum(line.startswith("error") for one in seen for line in one.lines))


def _recovered(scenario: Scenario) -> None:
    store = scenario.open()
    store.settle()
    store.close()


def _heads(scenario: Scenario) -> list[list[Any]]:
    store = scenario.open()
    try:
        heads = [store.head(workflow_id) for workflow_id in WORKFLOWS]
        return [[head.sequence, head.checksum, head.event_seq, head.event_hash] for head in heads]
    finally:
        store.close()


HARNESS = Harness(NAME, STORES, run, programs=("strace",), needs_root=False)

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=100))
