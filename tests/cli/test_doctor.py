from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.filesystem import quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.cli.doctor import _journal
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.encrypted import encrypted_store, use_key

EVERYWHERE = {"trail", "signing key", "sessions", "store", "files", "history", "clock", "sqlite", "versions"}
NAMES = EVERYWHERE | {"format", "journal", "disk space", "file system", "sync", "permissions"}


def checks(run: Run, store: Path) -> dict[str, str]:
    return {
        check["name"]: check["status"] for check in run("doctor", "--json", "--store", store).data["checks"]
    }


def test_a_sound_store_is_healthy(run: Run, store: Path):
    result = run("doctor", "--store", store)
    assert result.exit_code == 0, result.out
    assert result.out.startswith(f"Store file:{store}\n") and "healthy" in result.out
    assert max(map(len, result.out.splitlines()[1:])) <= 80


def test_everything_is_looked_at(run: Run, store: Path):
    told = run("doctor", "--json", "--store", store).data
    assert told["healthy"] and told["store"] == f"file:{store}"
    assert {check["name"] for check in told["checks"]} == NAMES
    assert all(set(check) == {"name", "status", "detail", "hint"} for check in told["checks"])


def test_an_encrypted_store_tells_whether_its_key_opens_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    place = encrypted_store(run, monkeypatch, tmp_path)
    assert checks(run, place)["key"] == "ok"
    use_key(monkeypatch, b"another key of thirty-two bytes!")
    result = run("doctor", "--store", place)
    assert result.exit_code == Exit.CORRUPT and "fail  key" in result.out
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    assert checks(run, place)["key"] == "info"


def test_a_file_that_was_changed_fails(run: Run, store: Path):
    (keyframe,) = store.glob("checkpoints/*/wf-1*/checkpoint_000001.json")
    keyframe.write_bytes(keyframe.read_bytes().replace(b"begin", b"began"))
    result = run("doctor", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    assert "fail  files" in result.out and "checkpoint_000001.json" in result.out
    assert "validate" in result.out and "1 check failed" in result.out


def test_a_record_that_was_changed_fails(run: Run, store: Path):
    (records,) = store.glob("checkpoints/*/wf-1*/checkpoint_000001.deltas.jsonl")
    records.write_bytes(records.read_bytes().replace(b'"size":', b'"sIze":', 1))
    result = run("doctor", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    assert "fail  history" in result.out and "`holdfast recover WF-1 --plan`" in result.out


def test_many_findings_are_cut_short(run: Run, store: Path):
    folder = store / "blobs" / "00"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"{number:064x}").write_bytes(b"not that")
    result = run("doctor", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    # Nothing names these blobs: that is one more.
    assert "and 11 findings more" in result.out


def test_settings_that_are_damaged_fail_with_20(run: Run, store: Path):
    (store / "holdfast.json").write_text("{")
    result = run("doctor", "--store", store)
    assert result.exit_code == Exit.CORRUPT
    assert "fail  store" in result.out and "versions" in result.out
    assert not run("doctor", "--json", "--store", store).data["healthy"]


def test_a_store_in_memory_has_no_place_to_look_at(run: Run):
    told = run("doctor", "--json", "--store", "memory:").data
    assert {check["name"] for check in told["checks"]} == EVERYWHERE


def test_a_store_in_one_file_tells_its_journal_and_what_can_be_reclaimed(run: Run, tmp_path: Path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    with bootstrap.open(url) as service:
        service.create_checkpoint("wf", {"n": 1})
    told = {
        check["name"]: check["detail"] for check in run("doctor", "--json", "--store", url).data["checks"]
    }
    assert "SQLite" in told["journal"] and "can be reclaimed" in told["space"]
    assert {"disk space", "file system", "permissions", "sqlite"} <= set(told)
    assert "journal: SQLite" in told["sqlite"]


def test_a_store_without_checkpoints_is_healthy(run: Run, tmp_path: Path):
    run("init", "--store", tmp_path / "new")
    assert run("doctor", "--store", tmp_path / "new").exit_code == 0


def test_a_process_that_has_the_store_open_is_named(run: Run, store: Path):
    with bootstrap.open(str(store)):
        assert f"open in process {os.getpid()}" in run("doctor", "--store", store).out
    assert "no process has it open" in run("doctor", "--store", store).out


def test_what_a_killed_process_left_in_the_journal_is_no_failure(run: Run, tmp_path: Path):
    program = (
        "import os, signal, sys; from holdfast import bootstrap;"
        "service = bootstrap.open(sys.argv[1]); service.create_checkpoint('WF', {'kept': True});"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "new")])
    assert ended.returncode == -signal.SIGKILL
    assert run("doctor", "--store", tmp_path / "new").exit_code == 0
    assert json.loads(run("show", "WF", "--state=/context", "--store", tmp_path / "new").out) == {
        "kept": True
    }


def test_what_waits_in_the_journal_is_told(tmp_path: Path):
    assert _journal(str(tmp_path), None).detail == "no process has it open"
    assert _journal(str(tmp_path), 0).detail.endswith("everything is settled")
    waiting = _journal(str(tmp_path), 2_000)
    assert "2.0 KB committed and not yet settled" in waiting.detail
    assert "Nothing is lost" in waiting.hint


def test_after_a_manifest_was_mended_the_store_is_healthy_again(run: Run, store: Path):
    (manifest,) = store.glob("checkpoints/*/wf-1*/manifest.jsonl")
    manifest.write_bytes(b"x")
    with bootstrap.open(str(store)) as service:
        service.record_decision("WF-1", "go on")
    result = run("doctor", "--store", store)
    assert result.exit_code == 0 and "made anew" in result.out


def test_what_was_set_aside_says_how_to_be_done_with_it(run: Run, store: Path):
    quarantine.set_aside(Disk(str(store)), "journal", "flipped", b"x")
    told = run("doctor", "--json", "--store", store)
    [hint] = [check["hint"] for check in told.data["checks"] if "flipped" in check["detail"]]
    assert told.exit_code == Exit.CORRUPT and "quarantine drop" in hint
    said = run("validate", "--all", "--deep", "--store", store).err
    assert "quarantine drop" in said and "recover" not in said
    [name] = [
        one["name"] for one in run("quarantine", "list", "--json", "--store", store).data["quarantined"]
    ]
    assert run("quarantine", "drop", name, "--reason", "seen", "--yes", "--store", store).exit_code == 0
    assert run("doctor", "--store", store).exit_code == 0


def test_what_to_do_about_a_full_quarantine_is_said_once(run: Run, store: Path):
    for number in range(5):
        quarantine.set_aside(Disk(str(store)), f"piece-{number}", "flipped", b"x")
    said = run("doctor", "--store", store).out
    assert said.count("flipped") == 5 and said.count("quarantine drop") == 1
    checks = run("doctor", "--json", "--store", store).data["checks"]
    assert sum("quarantine drop" in check["hint"] for check in checks) == 5


@pytest.mark.parametrize("harm", [Path.unlink, lambda ring: ring.write_bytes(b"")])
def test_a_journal_without_its_ring_is_no_healthy_store(
    run: Run, store: Path, harm: Callable[[Path], object]
):
    (ring,) = store.glob("journal/ring-*")
    harm(ring)
    for command in (("doctor",), ("validate", "--all", "--deep")):
        result = run(*command, "--store", store)
        assert result.exit_code == Exit.CORRUPT and "no ring can be read" in " ".join(result.out.split())
