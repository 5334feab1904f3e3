"""Stores that are missing, closed to us, read-only or of another kind; names that are nearly right."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from holdfast.cli.opening import store_above
from tests.cli.conftest import Run, fill, without_privileges

READING = [("list",), ("show", "WF-1"), ("diff", "WF-1"), ("validate",), ("prune", "--dry-run"), ("doctor",)]


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_missing_store_ends_with_10(run: Run, args):
    result = run(*args, "--store", "nowhere", "--json")
    assert result.exit_code == Exit.NO_STORE
    assert result.error["code"] == "store_not_found"
    assert result.error["place"].endswith("/nowhere") and "holdfast init" in result.error["hint"]
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_store_of_a_newer_format_ends_with_40(run: Run, store: Path, args):
    settings = store / "holdfast.json"
    settings.write_text(settings.read_text().replace('"version": 1', '"version": 99'))
    assert run(*args, "--store", store).exit_code == Exit.OTHER_FORMAT


def test_an_unknown_kind_of_store_is_wrong_usage(run: Run):
    result = run("list", "--store", "carrier+pigeon:home")
    assert result.exit_code == Exit.USAGE
    assert "carrier+pigeon" in result.err


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_copy_that_we_may_only_read_is_read(run: Run, public_folder: Path, monkeypatch, args):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = snapshot(place)
    # Loads every module while we may still read them all.
    run(*args, "--store", place)
    with without_privileges():
        result = run(*args, "--store", place)
    assert result.exit_code == Exit.DONE, result.err
    assert snapshot(place) == before


def snapshot(place: Path) -> dict[str, tuple[int, bytes | None]]:
    """Names, modes and bytes of everything in a store."""
    return {
        str(path): (stat.S_IMODE(path.stat().st_mode), None if path.is_dir() else path.read_bytes())
        for path in (place, *place.rglob("*"))
    }


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_store_that_we_may_not_enter_ends_with_13(run: Run, public_folder: Path, monkeypatch, args):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    run(*args, "--store", place)
    mode = 0o700 if os.geteuid() == 0 else 0
    place.chmod(mode)
    try:
        with without_privileges():
            result = run(*args, "--store", place)
    finally:
        place.chmod(0o700)
    assert result.exit_code == Exit.UNREACHABLE
    assert "Permission denied" in result.err and "Traceback" not in result.err


def test_reading_takes_no_lock_and_leaves_no_trace(run: Run, store: Path):
    before = snapshot(store)
    for args in READING:
        assert run(*args, "--store", store).exit_code == 0
    assert snapshot(store) == before


def test_a_name_that_is_nearly_right_gets_a_suggestion(run: Run, store: Path):
    for args in (("list", "WF1"), ("show", "WF1@2"), ("diff", "WF1"), ("validate", "WF1"), ("prune", "WF1")):
        result = run(*args, "--store", store)
        assert result.exit_code == Exit.NOT_FOUND
        assert "Did you mean WF-1" in result.err


def test_a_sequence_that_is_not_there_is_told_which_are(run: Run, store: Path):
    result = run("show", "WF-1@9", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND
    assert "WF-1 has checkpoints 1 to 3." in result.err


def test_a_uuid_that_is_not_there_is_not_found(run: Run, store: Path):
    assert run("show", "0000-0000", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_name_that_can_be_none_is_wrong_usage(run: Run, store: Path):
    for name in ("..", "", "a\nb"):
        result = run("list", name, "--store", store)
        assert result.exit_code == Exit.USAGE
        assert len(result.err.splitlines()) <= 3


def test_the_store_above_a_file_is_found(store: Path, tmp_path: Path):
    assert store_above(str(store / "checkpoints" / "x" / "y")) == str(store)
    lone = tmp_path / "lone"
    shutil.copytree(store / "checkpoints", lone)
    assert store_above(str(lone / "checkpoint_000001.json")) is None
