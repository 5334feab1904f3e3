"""The nightly part of the campaign: every harness on every store it applies to, in parts, with its control.

Only a campaign runs these. What the machine cannot do is told as not run, with the reason: never left out.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.campaign import Part, all_parts
from tests.machine.outcome import Harness

ROOT = Path(__file__).parent.parent.parent
#: No case of a part begins after so long.
PART_SECONDS, CONTROL_SECONDS = 120, 180
Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A harness on a store: into how many parts it is cut, and how many cases each has."""

    module: str
    store: str
    parts: int
    cases: int

    def __str__(self) -> str:
        return f"{self.module.rpartition('.')[2]} on {self.store}"

    def harness(self) -> Harness:
        module = importlib.import_module(self.module)
        found: Harness = module.harness(self.store) if hasattr(module, "harness") else module.HARNESS
        return found


def pieces(module: str, **sizes: tuple[int, int]) -> list[Piece]:
    """Name stores by words with underscores; answer their pieces."""
    return [Piece(module, store.replace("_", " "), *size) for store, size in sizes.items()]


#: Parts and cases of each. Together: 10,080 cuts on ext4 and 2,000 on XFS besides those of PostgreSQL, 5,200
#: states of a block device, and all calls of the scenarios.
CUTS = {"files": (24, 120), "sqlite_rollback": (24, 100), "sqlite_wal": (24, 100)}
CUTS |= {"service_on_files": (24, 60), "service_on_sqlite": (24, 40), "postgresql": (6, 20)}
XFS_CUTS = {"files": (8, 100), "sqlite_rollback": (4, 100), "sqlite_wal": (4, 100)}
XFS_CUTS |= {"service_on_files": (4, 60), "service_on_sqlite": (4, 40), "postgresql": (2, 20)}
PIECES = [
    *pieces("tests.power.power_cut", **{f"ext4_{store}": size for store, size in CUTS.items()}),
    *pieces("tests.power.power_cut", **{f"xfs_{store}": size for store, size in XFS_CUTS.items()}),
    *pieces("tests.machine.block_states", files=(24, 100), sqlite_rollback=(14, 100), sqlite_wal=(14, 100)),
    *pieces("tests.machine.syscalls", files=(52, 125), sqlite_rollback=(24, 125), sqlite_wal=(16, 125)),
    *pieces("tests.machine.recoveries", files=(24, 60), sqlite_rollback=(24, 60), sqlite_wal=(24, 60)),
    *pieces("tests.machine.sync_failures", files=(6, 30), sqlite_rollback=(6, 30), sqlite_wal=(6, 30)),
    *pieces(
        "tests.machine.full_disks",
        **{"files": (6, 12), "sqlite_rollback": (6, 12), "sqlite_wal": (6, 12), "postgresql": (4, 8)},
    ),
    *pieces("tests.machine.contenders", files=(6, 40), sqlite=(6, 40), postgresql=(6, 40)),
    *pieces(
        "tests.machine.memory_kills",
        **{"files": (6, 40), "sqlite_rollback": (6, 40), "sqlite_wal": (6, 40), "postgresql": (3, 30)},
    ),
    *pieces("tests.machine.clock_jumps", files=(4, 60), sqlite=(4, 60)),
]
PARTS = [(piece, part) for piece in PIECES for part in all_parts(piece.parts)]


def played(piece: Piece, seed: int, *more: str) -> dict[str, Any]:
    """Run a harness in a process, and a view of the file systems, of its own."""
    command = [sys.executable, "-m", piece.module, "--store", piece.store, "--seed", str(seed), *more]
    alone = _as_root() if piece.harness().needs_root else []
    done = subprocess.run([*alone, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        pytest.fail(f"{piece} ended with {done.returncode}: {done.stderr[-3000:]}")
    return answer


def _as_root() -> list[str]:
    """Say how to become root where that needs no password, with mounts that nobody else sees."""
    if os.geteuid() == 0:
        return ["unshare", "--mount"]
    may = shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    return ["sudo", "-n", "unshare", "--mount"] if may else []


def record(outcome: dict[str, Any], property_of: Record) -> None:
    """Keep what the campaign's ledger and its result are made of."""
    is_control = outcome["is_control"]
    property_of("cases", 0 if is_control else outcome["cases"])
    property_of("violations", [] if is_control else outcome["violations"])
    kept = ("harness", "store", "seed", "acknowledged", "counts", "is_control", "not_run")
    about = {name: outcome[name] for name in kept}
    property_of("about", {**about, "is_red": bool(outcome["violations"])})


@pytest.mark.campaign
@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_broken_on_purpose_it_goes_red(piece: Piece, record_property: Record) -> None:
    cases = ("--cases", "150", "--seconds", str(CONTROL_SECONDS))
    outcome = played(piece, 1, "--control", *cases)
    record(outcome, record_property)
    assert outcome["not_run"] or outcome["violations"], (
        "the control found nothing: the harness proves nothing"
    )


@pytest.mark.campaign
@pytest.mark.parametrize(("piece", "section"), PARTS, ids=lambda one: str(one))
def test_nothing_acknowledged_is_lost(piece: Piece, section: Part, record_property: Record) -> None:
    cases = ("--cases", str(piece.cases), "--seconds", str(PART_SECONDS))
    outcome = played(piece, section.number, *cases)
    record(outcome, record_property)
    assert outcome["violations"] == []
