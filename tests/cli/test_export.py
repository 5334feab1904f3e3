"""`holdfast export`: one file, whole or not there at all, which is a store that anybody can look into."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from holdfast.application.transport.copying import Copier
from holdfast.cli import export
from holdfast.cli.exits import Exit
from holdfast.domain.errors import DiskFullError
from tests.cli.conftest import Run, damage_record
from tests.cli.encrypted import encrypted_store


def beside(name: str) -> list[str]:
    """Name everything in this folder that has to do with an archive."""
    return sorted(path.name for path in Path().iterdir() if name in path.name)


def test_the_archive_is_one_file_and_a_store(run: Run, store: Path):
    result = run("export", "--all", "--out", "a.holdfast", "--store", store)
    assert result.exit_code == Exit.DONE
    assert beside("a.holdfast") == ["a.holdfast"]
    listed = run("list", "--json", "--store", "sqlite:a.holdfast").data
    assert [one["workflow_id"] for one in listed["workflows"]] == ["WF-2", "WF-1"]
    assert run("validate", "--deep", "--store", "sqlite:a.holdfast").exit_code == Exit.DONE
    shown = run("show", "WF-1", "--state", "--json", "--store", store).data
    assert run("show", "WF-1", "--state", "--json", "--store", "sqlite:a.holdfast").data == shown
    digest = hashlib.sha256(Path("a.holdfast").read_bytes()).hexdigest()
    assert "Wrote a.holdfast" in result.err and len(digest) == 64


def test_it_has_no_write_ahead_log_and_is_private(run: Run, store: Path):
    run("export", "WF-1", "--out", "a.holdfast", "--store", store)
    # 1 and 1 where there is a rollback journal.
    assert Path("a.holdfast").read_bytes()[18:20] == b"\x01\x01"
    assert stat.S_IMODE(os.stat("a.holdfast").st_mode) == 0o600
    with sqlite3.connect("file:a.holdfast?mode=ro", uri=True) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_programs_are_told_the_file_and_its_sum(run: Run, store: Path):
    data = run("export", "WF-1", "WF-1", "--out", "a.holdfast", "--store", store, "--json").data
    assert [one["workflow_id"] for one in data["workflows"]] == ["WF-1"]
    assert data["file"] == "a.holdfast" and data["file_bytes"] == os.path.getsize("a.holdfast")
    assert data["sha256"] == hashlib.sha256(Path("a.holdfast").read_bytes()).hexdigest()
    assert data["trail"] is None


def test_with_everything_the_trail_comes_along_sealed(run: Run, store: Path):
    data = run("export", "--all", "--out", "a.holdfast", "--store", store, "--json").data
    assert data["trail"]["entries"] >= 9 and data["trail"]["id"]


def test_nothing_is_ever_overwritten(run: Run, store: Path):
    Path("a.holdfast").write_text("precious")
    result = run("export", "--all", "--out", "a.holdfast", "--store", store)
    assert result.exit_code == Exit.REFUSED and "already" in result.err
    Path("link").symlink_to("nowhere")
    assert run("export", "--all", "--out", "link", "--store", store).exit_code == Exit.REFUSED
    assert Path("a.holdfast").read_text() == "precious" and beside("a.holdfast") == ["a.holdfast"]


@pytest.mark.parametrize("can_link", [True, False])
def test_a_file_that_somebody_makes_meanwhile_stays(run: Run, store: Path, monkeypatch, can_link):
    look = export._look_again

    def slowly(path, workflow_ids):
        look(path, workflow_ids)
        Path("a.holdfast").write_text("precious")

    monkeypatch.setattr(export, "_look_again", slowly)
    if not can_link:
        monkeypatch.setattr(os, "link", _refuse)
    result = run("export", "--all", "--out", "a.holdfast", "--store", store)
    assert result.exit_code == Exit.REFUSED and "meanwhile" in result.err
    assert Path("a.holdfast").read_text() == "precious" and beside("a.holdfast") == ["a.holdfast"]


def _refuse(*args, **kwargs):
    raise PermissionError(1, "Operation not permitted")


def test_a_disk_without_links_gets_its_archive_too(run: Run, store: Path, monkeypatch):
    monkeypatch.setattr(os, "link", _refuse)
    assert run("export", "--all", "--out", "a.holdfast", "--store", store).exit_code == Exit.DONE
    assert beside("a.holdfast") == ["a.holdfast"]


def test_a_damaged_workflow_makes_no_archive(run: Run, store: Path):
    damage_record(store, 2)
    result = run("export", "--all", "--out", "a.holdfast", "--store", store)
    assert result.exit_code == Exit.CORRUPT and "WF-1@2" in result.err
    assert beside("a.holdfast") == []
    assert run("export", "WF-2", "--out", "a.holdfast", "--store", store).exit_code == Exit.DONE


@pytest.mark.parametrize("fault", [DiskFullError("the disk is full"), KeyboardInterrupt()])
def test_nothing_is_left_of_one_that_fails(run: Run, store: Path, monkeypatch, fault):
    def failing(self, workflow_ids, *, with_trail=False):
        raise fault

    monkeypatch.setattr(Copier, "copy", failing)
    result = run("export", "--all", "--out", "a.holdfast", "--store", store)
    assert result.exit_code in (Exit.UNEXPECTED, Exit.INTERRUPTED)
    assert beside("a.holdfast") == []


def test_a_dry_run_tells_and_writes_nothing(run: Run, store: Path):
    before = run("audit", "log", "--store", store, "--json").out.count("STORE_COPIED")
    result = run("export", "--all", "--out", "a.holdfast", "--store", store, "--dry-run")
    assert result.exit_code == Exit.DONE and "to copy" in result.out and "Nothing was changed." in result.err
    data = run("export", "--all", "--out", "a.holdfast", "--store", store, "--dry-run", "--json").data
    assert data["dry_run"] is True and data["sha256"] is None
    assert beside("a.holdfast") == []
    assert run("audit", "log", "--store", store, "--json").out.count("STORE_COPIED") == before == 0


def test_what_leaves_is_told_in_the_trail_with_the_reason(run: Run, store: Path):
    run("export", "WF-1", "--out", "a.holdfast", "--store", store, "--reason", "case 17")
    log = run("audit", "log", "--type", "STORE_COPIED", "--store", store, "--json").out
    assert log.count("STORE_COPIED") == 1
    [journal] = store.glob("audit/**/cli-*/audit_trail.jsonl")
    assert '"to":"archive"' in journal.read_text() and '"reason":"case 17"' in journal.read_text()


def test_an_encrypted_store_stays_encrypted(run: Run, tmp_path: Path, monkeypatch):
    store = encrypted_store(run, monkeypatch, tmp_path)
    assert run("export", "--all", "--out", "a.holdfast", "--store", store).exit_code == Exit.DONE
    assert b"why not" not in Path("a.holdfast").read_bytes()
    assert run("show", "WF-1", "--store", "sqlite:a.holdfast").exit_code == Exit.DONE
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    assert run("show", "WF-1", "--state", "--store", "sqlite:a.holdfast").exit_code == Exit.NO_KEY


def test_wrong_input_is_told_and_makes_nothing(run: Run, store: Path):
    for args in ((), ("WF-1", "--all")):
        assert run("export", *args, "--out", "a.holdfast", "--store", store).exit_code == Exit.USAGE
    assert run("export", "WF-1", "--store", store).exit_code == Exit.USAGE
    assert run("export", "WF-1", "--out", "nowhere/a", "--store", store).exit_code == Exit.USAGE
    assert run("export", "WF-11", "--out", "a.holdfast", "--store", store).exit_code == Exit.NOT_FOUND
    assert run("export", "--all", "--out", "a.holdfast", "--store", "nowhere").exit_code == Exit.NO_STORE
    assert (
        run("export", "--all", "--out", "a.holdfast", "--store", store, "--reason", " ").exit_code
        == Exit.USAGE
    )
    assert beside("a.holdfast") == []
