from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.cli.conftest import Run, entries


def test_the_rights_of_others_are_taken_away(run: Run, store: Path):
    for path in (store, store / "holdfast.json"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (store / "link").symlink_to("nowhere")
    tried = run("doctor", "--fix", "--dry-run", "--store", store).out
    assert "would mend  permissions: the rights of group and others" in tried
    assert 0o044 in rights_of(store)
    told = run("doctor", "--fix", "--json", "--store", store).data
    assert told["fixed"] == ["permissions: the rights of group and others"]
    assert rights_of(store) == {0}
    assert run("doctor", "--fix", "--json", "--store", store).data["fixed"] == []


def rights_of(store: Path) -> set[int]:
    """Tell what group and others may do with anything in a store."""
    paths = [path for path in (store, *store.rglob("*")) if not path.is_symlink()]
    return {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths}


def test_a_file_is_closed_to_others_as_well(run: Run):
    run("init", "--store", "sqlite:own.db")
    os.chmod("own.db", 0o644)
    told = run("doctor", "--fix", "--json", "--store", "sqlite:own.db").data
    assert told["fixed"] and stat.S_IMODE(Path("own.db").stat().st_mode) == 0o600


def test_what_a_dead_process_left_is_settled_and_the_reason_told(run: Run, store: Path, monkeypatch):
    from holdfast.cli import doctor
    from holdfast.cli.machine import INFO, OK, Check

    found = [Check("journal", INFO, "1 KB committed and not yet settled"), Check("journal", OK, "settled")]
    monkeypatch.setattr(doctor, "_journal", lambda folder, pending: found.pop(0))
    told = run("doctor", "--fix", "--reason", "after a crash", "--json", "--store", store).data
    assert told["fixed"] == ["journal: what was left unsettled"]
    assert [one["data"]["command"] for one in entries(run, store, "REQUEST_MADE")] == ["doctor"]
