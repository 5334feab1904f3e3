from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run, fill


def test_holds_are_listed_with_their_reasons(run: Run, tmp_path: Path):
    place = tmp_path / "store"
    fill(place)
    assert "No hold stands" in run("hold", "list", "--store", place).err
    run("hold", "place", "--reason", "audit of the year", "--store", place)
    head, row = run("hold", "list", "--store", place).out.splitlines()
    assert head.split() == ["HOLD", "COVERS", "SINCE", "BY", "REASON"]
    assert row.endswith("audit of the year")
    [listed] = run("hold", "list", "--json", "--store", place).data["holds"]
    assert (listed["workflow_id"], listed["subject"], listed["reason"]) == (None, None, "audit of the year")
