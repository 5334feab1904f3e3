from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.cli.exits import Exit
from holdfast.config import Config
from holdfast.testing import FixedClock
from tests.cli.conftest import Run, entries

OLD = ("--older-than-days", "200")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store with two decisions of last year."""
    config = Config(store=str(tmp_path / "store"), session="s-1")
    clock = FixedClock(datetime.now(UTC) - timedelta(days=300))
    service = CheckpointService(bootstrap.build_kit(bootstrap.open_store(config), config, clock=clock))
    with service:
        for number in range(2):
            service.record_decision("WF-1", f"decision {number}")
    return tmp_path / "store"


def test_old_payloads_go_and_the_trail_verifies(run: Run, place: Path):
    plan = run("audit", "prune", *OLD, "--dry-run", "--json", "--store", place).data
    assert plan == {"payloads": 2, "held": 0, "dry_run": True}
    assert run("audit", "prune", *OLD, "--store", place).exit_code == Exit.REFUSED
    done = run("audit", "prune", *OLD, "--yes", "--reason", "the year is over", "--store", place)
    [why] = entries(run, place, "REQUEST_MADE")
    assert why["correlation"] == entries(run, place, "PAYLOADS_PRUNED")[0]["correlation"]
    assert done.out == "Removed 2 payloads; 0 kept by a legal hold\n"
    again = run("audit", "prune", *OLD, "--yes", "--store", place)
    assert again.out == "Would remove 0 payloads; 0 kept by a legal hold\n"
    assert run("audit", "verify", "--payloads", "--store", place).exit_code == 0


def test_below_the_minimum_it_is_refused(run: Run, place: Path):
    result = run("audit", "prune", "--older-than-days", "30", "--yes", "--store", place)
    assert result.exit_code == Exit.USAGE
    assert "kept for 183 days at least" in result.err
