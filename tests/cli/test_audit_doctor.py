from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, trail_file


def checks(run: Run, store: Path) -> dict[str, tuple[str, str]]:
    told = run("doctor", "--json", "--store", store).data["checks"]
    return {check["name"]: (check["status"], check["detail"]) for check in told}


def test_a_trail_that_nobody_signed_is_a_warning(run: Run, store: Path):
    found = checks(run, store)
    assert found["trail"][0] == "ok" and "entries in" in found["trail"][1]
    assert found["signing key"][0] == "warn" and "nothing is signed" in found["signing key"][1]
    assert "trail clock" not in found


def test_a_signed_trail_tells_how_much_is_not_covered(run: Run, signed: tuple[Path, str]):
    store, key = signed
    status, detail = checks(run, store)["signing key"]
    assert status == "ok" and detail.startswith(key.split("+")[1])
    assert "signed up to entry" in detail and "1 entry not anchored" in detail


def test_a_key_on_another_machine_is_no_warning(
    run: Run, signed: tuple[Path, str], monkeypatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    status, detail = checks(run, signed[0])["signing key"]
    assert status == "info" and "not on this machine" in detail
    assert "second key" in run("doctor", "--store", signed[0]).out


def test_a_key_that_others_may_read_is_a_warning(run: Run, signed: tuple[Path, str], tmp_path: Path):
    for path in (tmp_path / "config").rglob("*.key"):
        path.chmod(0o644)
    found = checks(run, signed[0])
    assert any(status == "warn" and "may be read by others" in detail for status, detail in found.values())


def test_a_changed_trail_fails(run: Run, signed: tuple[Path, str]):
    path = trail_file(signed[0])
    path.write_bytes(path.read_bytes().replace(b"success", b"failure", 1))
    result = run("doctor", "--store", signed[0])
    assert result.exit_code == Exit.CORRUPT
    assert "fail  trail" in result.out and "holdfast audit verify" in result.out


def test_a_clock_that_stepped_back_is_a_warning(run: Run, store: Path, monkeypatch):
    with bootstrap.open(str(store), session="s-1") as service:
        service.audit.log_event("NOTED")
        monkeypatch.setattr(
            "holdfast.adapters.system.SystemClock.now", lambda self: datetime(2026, 1, 1, tzinfo=UTC)
        )
        service.audit.log_event("NOTED")
        monkeypatch.undo()
    status, detail = checks(run, store)["trail clock"]
    assert status == "warn" and "stepped back" in detail


def test_keys_that_are_none_fail(run: Run, signed: tuple[Path, str], monkeypatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    (signed[0] / "audit" / "log" / "vkeys").write_text("nonsense\n")
    result = run("doctor", "--json", "--store", signed[0])
    assert result.exit_code == Exit.CORRUPT
    failed = {check["name"]: check["detail"] for check in result.data["checks"] if check["status"] == "fail"}
    assert "no" in failed["trail"] and "key" in failed["trail"]


def test_a_trail_that_leaves_workflows_out_is_a_warning(run: Run, store: Path):
    assert "trail tells" not in checks(run, store)
    shutil.rmtree(store / "audit")
    status, detail = checks(run, store)["trail tells"]
    assert status == "warn" and "nothing of the last checkpoint of" in detail


def test_a_workflow_that_the_trail_tells_of_and_is_gone_fails(run: Run, store: Path):
    for folder in (*store.glob("checkpoints/*/wf-1*"), *store.glob("events/*/wf-1*")):
        shutil.rmtree(folder)
    result = run("doctor", "--store", store)
    assert result.exit_code == Exit.CORRUPT and "copy BACKUP STORE" in result.out
    told = "the trail tells of checkpoint 3, which is neither stored nor erased: workflow WF-1"
    assert checks(run, store)["trail"] == ("fail", f"1 fault, the first: {told}")
    assert run("audit", "verify", "--store", store).exit_code == Exit.NOT_VERIFIED


def test_a_workflow_that_is_lost_for_good_is_given_up_by_an_erasure(run: Run, store: Path):
    for folder in (*store.glob("checkpoints/*/wf-1*"), *store.glob("events/*/wf-1*")):
        shutil.rmtree(folder)
    asked = ("erase", "--store", store, "--reason", "the disk lost it", "--yes", "--workflow")
    assert run(*asked, "WF-11").exit_code == Exit.NOT_FOUND
    assert run(*asked, "WF-1").exit_code == 0
    assert checks(run, store)["trail"][0] == "ok"


def test_what_was_brought_back_from_a_backup_goes_on_without_a_word(run: Run, store: Path, tmp_path: Path):
    backup = tmp_path / "backup"
    assert run("copy", store, backup).exit_code == 0
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", "NOTED")
    for folder in (*store.glob("checkpoints/*/wf-1*"), *store.glob("events/*/wf-1*")):
        shutil.rmtree(folder)
    assert checks(run, store)["trail"][0] == "fail"
    assert run("copy", backup, store, "WF-1").exit_code == 0
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", "NOTED AGAIN")
    assert checks(run, store)["trail"][0] == "ok"
