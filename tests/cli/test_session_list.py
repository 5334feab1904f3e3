from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_sessions_are_listed_as_they_stand(run: Run, store: Path):
    none = run("session", "list", "--store", store).err
    assert "No session" in none and "`holdfast audit log`" in none
    run("session", "hand-off", "s-1", "--to", "critic", "--store", store)
    head, row = run("session", "list", "--store", store).out.splitlines()
    assert head.split()[:2] == ["SESSION", "STATUS"] and row.split()[:2] == ["s-1", "handed_off"]
    assert "critic" in row
    [listed] = run("session", "list", "--json", "--store", store).data["sessions"]
    assert (listed["target_agent"], listed["workflow_ids"]) == ({"id": "critic"}, ["WF-1"])


def test_only_those_that_stand_so_are_listed(run: Run, store: Path):
    run("session", "hand-off", "s-1", "--store", store)
    assert (
        len(run("session", "list", "--status", "handed_off", "--json", "--store", store).data["sessions"])
        == 1
    )
    assert run("session", "list", "--status", "open", "--json", "--store", store).data == {"sessions": []}
    assert "that is open" in run("session", "list", "--status", "open", "--store", store).err
