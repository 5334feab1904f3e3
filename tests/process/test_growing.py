"""Whoever is killed while the journal grows takes nothing along that others commit afterwards."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import holdfast
from tests.process.conftest import fast_folder as fast_folder
from tests.process.evidence import keep
from tests.process.growing import JOURNAL_BYTES

ROOT = Path(__file__).parents[2]
NEVER = 10**9


def grow(store: Path, operation: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.process.growing", str(store), str(operation)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def open_store(store: Path) -> holdfast.CheckpointService:
    return holdfast.open(f"file:{store}", journal_bytes=JOURNAL_BYTES, background=False, retain=False)


def violations(store: Path, operation: int) -> list[str]:
    """Kill whoever makes the journal grow at an operation, beside one who lives and goes on."""
    with open_store(store) as living:
        living.create_checkpoint("WF-1", {"n": 0})
        killed = grow(store, operation)
        if killed.returncode != -signal.SIGKILL:
            return [f"operation {operation}: ended with {killed.returncode}: {killed.stderr}"]
        for number in (1, 2, 3):
            living.create_checkpoint("WF-1", {"n": number})
        with holdfast.open(f"file:{store}", read_only=True) as reader:
            seen = reader.load_latest("WF-1")
        # What is there if that one is killed as well.
        killed_too = store.with_name(f"{store.name}-killed")
        shutil.copytree(store, killed_too)
    wrong = [f"a reader saw {seen}"] if seen is None or seen.context != {"n": 3} else []
    wrong += [text for left in (store, killed_too) for text in wrong_in(left)]
    return [f"operation {operation}: {text}" for text in wrong]


def wrong_in(store: Path) -> list[str]:
    """Open what is left alone, and say what is not as it was acknowledged."""
    with open_store(store) as again:
        newest = again.load_latest("WF-1")
        if newest is None or newest.context != {"n": 3}:
            return [f"the newest of {store.name} is {newest}"]
        there = [again.restore_checkpoint(f"WF-1@{sequence}").context for sequence in (1, 2, 3, 4)]
        wrong = [] if there == [{"n": number} for number in range(4)] else [f"{store.name} holds {there}"]
        return wrong + [str(found) for found in again._engine.kit.store.check() if found.harm]


def test_nothing_is_lost_with_whoever_makes_the_journal_grow(fast_folder: Path) -> None:
    with open_store(fast_folder / "counted") as living:
        living.create_checkpoint("WF-1", {"n": 0})
        count = int(grow(fast_folder / "counted", NEVER).stdout)
    assert count > 8
    points = range(1, count + 1)
    found = [text for at in points for text in violations(fast_folder / str(at), at)]
    keep("growing", "killed while the journal grows", {"kills": len(points)}, found)
    assert found == []
