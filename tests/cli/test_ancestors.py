from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run


def test_parents_are_listed_the_nearest_first_and_across_forks(run: Run, store: Path):
    run("fork", "WF-1@2", "WF-9", "--store", store)
    run("fork", "WF-9@event:1", "WF-10", "--store", store)
    rows = run("show", "WF-10", "--parents", "--store", store).out.splitlines()
    assert [row.split()[0] for row in rows] == ["CHECKPOINT", "WF-9@1", "WF-1@2", "WF-1@1"]
    data = run("show", "WF-1@3", "--parents", "--json", "--store", store).data
    assert ([one["id"] for one in data["parents"]], data["is_cut"]) == (["WF-1@2", "WF-1@1"], False)
    assert run("show", "WF-2", "--parents", "--store", store).err.startswith("It grew out of nothing")


def test_very_many_parents_are_cut(run: Run, store: Path, monkeypatch):
    monkeypatch.setattr("holdfast.cli.ancestors.SHOWN_MAX", 1)
    result = run("show", "WF-1@3", "--parents", "--store", store)
    assert len(result.out.splitlines()) == 2 and "there are more" in result.err


def test_parents_that_were_erased_end_the_line(run: Run, store: Path):
    run("fork", "WF-1@event:2", "WF-9", "--store", store)
    run("erase", "--workflow", "WF-1", "--reason", "asked for", "--yes", "--store", store)
    assert run("show", "WF-9", "--parents", "--store", store).exit_code == 0
