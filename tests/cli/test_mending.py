from __future__ import annotations

import hashlib
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


def test_what_killed_writers_left_is_told_with_its_size_and_taken_away(run: Run, store: Path):
    name = hashlib.sha256(b"left").hexdigest()
    blob = store / "blobs" / name[:2] / name
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"left")
    staged = store / "journal" / "staged-0-1.tmp"
    staged.write_bytes(b"half a value")
    said = run("doctor", "--store", store)
    assert said.exit_code == 0 and "doctor --fix" in said.out
    told = [one["detail"] for one in run("doctor", "--json", "--store", store).data["checks"]]
    assert any("leftovers: journal: 1 file with 12 bytes" in one for one in told)
    assert any("leftovers: blobs: 1 file with 4 bytes" in one for one in told)
    noted = run("validate", "--all", "--deep", "--store", store).out
    assert "leftovers: blobs: 1 file with 4 bytes" in noted
    tried = run("doctor", "--fix", "--dry-run", "--store", store).out
    assert "would mend  leftovers: what killed writers left" in tried and blob.exists()
    fixed = run("doctor", "--fix", "--reason", "tidy", "--json", "--store", store).data
    assert "leftovers: what killed writers left" in fixed["fixed"]
    assert not blob.exists() and not staged.exists()
    assert not any("leftovers" in one["detail"] for one in fixed["checks"])
    assert [one["data"]["command"] for one in entries(run, store, "REQUEST_MADE")] == ["doctor"]
