"""`holdfast import archive`: verified before and after, told in the trail, and nothing by halves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.encrypted import encrypted_store

ARCHIVE = "a.holdfast"


@pytest.fixture
def archive(run: Run, store: Path) -> Path:
    """An archive of everything."""
    assert run("export", "--all", "--out", ARCHIVE, "--store", store).exit_code == 0
    return Path(ARCHIVE).resolve()


def sums(run: Run, place: object) -> list[str]:
    found = run("list", "WF-1", "--json", "--store", place).data["checkpoints"]
    return [one["checksum"] for one in found]


def test_everything_comes_back_as_it_was(run: Run, store: Path, archive: Path):
    result = run("import", "archive", archive, "--store", "new")
    assert result.exit_code == Exit.DONE and "verified on arrival" in result.err
    assert sums(run, "new") == sums(run, store)
    assert run("validate", "--deep", "--store", "new").exit_code == Exit.DONE
    state = run("show", "WF-1", "--state", "--json", "--store", store).data
    assert run("show", "WF-1", "--state", "--json", "--store", "new").data == state


def test_a_store_that_pruned_takes_an_archive_of_what_came_after(run: Run, store: Path, archive: Path):
    run("import", "archive", archive, "WF-1", "--store", "new")
    with bootstrap.open("new") as service:
        assert int(service.prune_checkpoints("WF-1", retain_count=2, retain_days=0)) > 0
    run("copy", "new", store, "WF-1")
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-1", {"made": "later"})
    assert run("export", "WF-1", "--out", "later.holdfast", "--store", store).exit_code == 0
    planned = run("import", "archive", "later.holdfast", "WF-1", "--store", "new", "--dry-run", "--json").data
    assert (planned["checkpoints"], planned["keyframes"]) == (1, 0)
    for _ in range(2):
        assert run("import", "archive", "later.holdfast", "--store", "new").exit_code == Exit.DONE
    assert sums(run, "new") == sums(run, store)[:3]
    assert run("validate", "--deep", "--store", "new").exit_code == Exit.DONE


def test_again_it_is_there_already(run: Run, archive: Path):
    run("import", "archive", archive, "--store", "new")
    result = run("import", "archive", archive, "--store", "new")
    assert result.exit_code == Exit.DONE and result.out.count("already there") == 2


def test_single_workflows_can_be_taken(run: Run, archive: Path):
    data = run("import", "archive", archive, "WF-2", "--store", "new", "--json").data
    assert [one["workflow_id"] for one in data["workflows"]] == ["WF-2"] and data["trail"] is None
    assert run("import", "archive", archive, "WF-22", "--store", "new").exit_code == Exit.NOT_FOUND


def test_a_dry_run_tells_and_makes_nothing(run: Run, archive: Path):
    result = run("import", "archive", archive, "--store", "new", "--dry-run")
    assert result.exit_code == Exit.DONE and result.out.count("to copy") == 2
    assert not Path("new").exists()
    data = run("import", "archive", archive, "--store", "new", "--dry-run", "--json").data
    assert data["dry_run"] is True and data["target"] == "new"


def test_it_is_told_in_the_trail_with_the_reason(run: Run, archive: Path):
    run("import", "archive", archive, "--store", "new", "--reason", "case 17")
    [trail] = Path("new").glob("audit/**/cli-*/audit_trail.jsonl")
    told = [line for line in trail.read_text().splitlines() if "STORE_COPIED" in line]
    assert len(told) == 2 and all(
        '"from":"archive"' in line and '"reason":"case 17"' in line for line in told
    )


def test_nothing_is_told_where_there_is_no_trail(run: Run, archive: Path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_AUDIT", "false")
    assert run("import", "archive", archive, "--store", "new").exit_code == Exit.DONE
    assert list(Path("new").glob("audit/**/cli-*/audit_trail.jsonl")) == []


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"SQLite format 3\x00" + b"x" * 5000])
def test_a_foreign_file_is_refused(run: Run, content):
    Path("foreign").write_bytes(content)
    result = run("import", "archive", "foreign", "--store", "new", "--json")
    assert (result.exit_code, result.error["exit_code"]) == (Exit.CORRUPT, 20)
    assert not Path("new").exists()


def test_the_database_of_another_program_is_refused(run: Run):
    with sqlite3.connect("foreign") as connection:
        connection.execute("create table t (a)")
    result = run("import", "archive", "foreign", "--store", "new")
    assert result.exit_code == Exit.CORRUPT and "another program" in result.err
    assert not Path("new").exists()


def test_a_file_that_is_not_there_is_told(run: Run, tmp_path: Path):
    assert run("import", "archive", "nowhere", "--store", "new").exit_code == Exit.USAGE
    assert run("import", "archive", tmp_path, "--store", "new").exit_code == Exit.USAGE
    assert not Path("new").exists()


def test_an_archive_that_was_cut_is_refused(run: Run, archive: Path):
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    assert run("import", "archive", archive, "--store", "new").exit_code == Exit.CORRUPT
    assert not Path("new").exists()


def test_one_changed_letter_is_found_and_nothing_is_taken_in(run: Run, archive: Path):
    data = archive.read_bytes()
    assert data.count(b"why not") >= 1
    archive.write_bytes(data.replace(b"why not", b"why yes"))
    result = run("import", "archive", archive, "--store", "new")
    assert result.exit_code == Exit.CORRUPT and "the archive is damaged" in result.err
    assert not Path("new").exists()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 0.999), letter=st.integers(0, 255))
def test_whatever_byte_is_changed_nothing_wrong_is_taken_in(run: Run, store: Path, where, letter):
    if not Path("whole").exists():
        assert run("export", "--all", "--out", "whole", "--store", store).exit_code == 0
    data = bytearray(Path("whole").read_bytes())
    data[int(where * len(data))] = letter
    Path("changed").write_bytes(data)
    place = f"memory-{where}-{letter}"
    result = run("import", "archive", "changed", "--store", place)
    assert result.exit_code != Exit.UNEXPECTED
    if result.exit_code == Exit.DONE:
        assert sums(run, place) == sums(run, store)


def test_another_history_is_a_conflict_and_nothing_else_is_taken_in(run: Run, archive: Path):
    with bootstrap.open("new") as service:
        service.create_checkpoint("WF-2", {"another": "way"})
    result = run("import", "archive", archive, "--store", "new")
    assert result.exit_code == Exit.LOCKED and "another history" in result.err
    assert run("list", "WF-1", "--store", "new").exit_code == Exit.NOT_FOUND


def test_an_encrypted_archive_makes_an_encrypted_store(run: Run, tmp_path: Path, monkeypatch):
    store = encrypted_store(run, monkeypatch, tmp_path)
    run("export", "--all", "--out", ARCHIVE, "--store", store)
    assert run("import", "archive", ARCHIVE, "--store", "new").exit_code == Exit.DONE
    assert run("show", "WF-1", "--state", "--store", "new").exit_code == Exit.DONE
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    assert run("show", "WF-1", "--state", "--store", "new").exit_code == Exit.NO_KEY


def test_a_target_that_cannot_be_a_store_takes_nothing_in(run: Run, archive: Path):
    Path("folder").mkdir()
    result = run("import", "archive", archive, "--store", "sqlite:folder")
    assert result.exit_code == Exit.NO_STORE and list(Path("folder").iterdir()) == []
