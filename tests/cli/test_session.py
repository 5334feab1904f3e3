from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from tests.cli.conftest import Run


def test_work_passes_on_from_the_command_line(run: Run, store: Path):
    assert run("session", "hand-off", "s-1", "--summary", "Half done.", "--store", store).exit_code == 0
    briefing = run("session", "resume", "s-1", "--as", "s-2", "--store", store).out
    assert "s-2 continues s-1" in briefing and "Half done." in briefing
    listed = run("session", "list", "--json", "--store", store).data["sessions"]
    assert {one["session_id"]: one["status"] for one in listed} == {"s-1": "resumed", "s-2": "open"}
    with bootstrap.open(str(store)) as service:
        assert service.audit.verify().fault_count == 0
