from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "held", retain=False)
    return tmp_path / "held"


def test_a_hold_is_placed_listed_and_released(run: Run, place: Path):
    placed = run(
        "hold", "place", "--workflow", "WF-1", "--reason", "case 17", "--json", "--store", place
    ).data
    listed = run("hold", "list", "--store", place).out.splitlines()
    assert listed[0].split() == ["HOLD", "COVERS", "SINCE", "BY", "REASON"]
    assert listed[1].split()[:2] == [placed["id"], "WF-1"]
    assert listed[1].endswith("case 17")
    assert run("hold", "list", "--json", "--store", place).data == {"holds": [placed]}
    released = run("hold", "release", placed["id"], "--reason", "closed", "--store", place)
    assert released.out == f"Released hold {placed['id']} on WF-1\n"
    assert "No hold stands" in run("hold", "list", "--store", place).err
