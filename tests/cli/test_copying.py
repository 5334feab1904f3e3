from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.transport.copying import Copier
from holdfast.cli.copying import _place
from holdfast.cli.exits import Exit
from holdfast.domain.errors import DiskFullError
from tests.cli.conftest import Run, damage_record, entries, fill, without_privileges


def listed(run: Run, place: object, workflow_id: str) -> list[tuple[int, str]]:
    checkpoints = run("list", workflow_id, "--json", "--store", place).data["checkpoints"]
    return [(one["sequence"], one["checksum"]) for one in checkpoints]


def test_everything_is_copied_and_counted(run: Run, store: Path):
    result = run("copy", store, "target")
    assert result.exit_code == 0
    head, *rows = (line.split() for line in result.out.splitlines())
    assert head[0] == "WORKFLOW" and head[-1] == "RESULT"
    assert [row[:6] for row in rows] == [["WF-1", "3", "0", "5", "1", "0"], ["WF-2", "1", "0", "1", "1", "0"]]
    assert [row[-2:] for row in rows] == [["KB", "copied"], ["B", "copied"]]
    trail, said = result.err.splitlines()
    assert re.fullmatch(r"The trail of the source, 9 entries, is sealed in imports/[0-9a-f]{16}\.", trail)
    assert re.fullmatch(r"2 workflows, [0-9.]+ KB in [0-9.]+ s, verified on arrival\.", said)
    assert run("validate", "--deep", "--store", "target").exit_code == 0
    for workflow_id in ("WF-1", "WF-2"):
        assert listed(run, "target", workflow_id) == listed(run, store, workflow_id)
    shown = run("show", "WF-1", "--state", "--json", "--store", store)
    assert run("show", "WF-1", "--state", "--json", "--store", "target").data == shown.data


def test_the_second_time_it_is_there_already(run: Run, store: Path):
    run("copy", store, "target")
    result = run("copy", store, "target")
    assert result.exit_code == 0
    assert [line.split()[-2:] for line in result.out.splitlines()[1:]] == [["already", "there"]] * 2


def test_what_was_pruned_there_is_not_missed_when_copying_goes_on(run: Run, store: Path):
    run("copy", store, "sqlite:target.db", "WF-1")
    with bootstrap.open("sqlite:target.db") as service:
        assert int(service.prune_checkpoints("WF-1", retain_count=2, retain_days=0)) > 0
        service.create_checkpoint("WF-1", {"made": "there"})
    assert run("copy", "sqlite:target.db", store, "WF-1").exit_code == 0
    again = run("copy", store, "sqlite:target.db", "WF-1")
    assert (again.exit_code, again.out.split()[-2:]) == (0, ["already", "there"])
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-1", {"made": "here"})
    assert run("copy", store, "sqlite:target.db", "WF-1").exit_code == 0
    told = entries(run, "sqlite:target.db", "STORE_COPIED")
    assert [one["data"]["checkpoints"] for one in told] == [3, 1]


def test_only_what_is_named_is_copied(run: Run, store: Path):
    data = run("copy", store, "target", "WF-2", "WF-2", "--json").data
    assert [one["workflow_id"] for one in data["workflows"]] == ["WF-2"]
    there = run("list", "--json", "--store", "target").data["workflows"]
    assert [one["workflow_id"] for one in there] == ["WF-2"]


def test_programs_are_told_everything(run: Run, store: Path):
    result = run("copy", f"file:{store}", "target", "--json")
    data = result.data
    assert result.err == ""
    assert (data["source"], data["target"]) == (f"file:{store}", f"file:{os.path.abspath('target')}")
    assert (data["checkpoints"], data["tombstones"], data["events"], data["blobs"]) == (4, 0, 6, 0)
    assert data["workflows"][0]["outcome"] == "copied" and data["workflows"][0]["error"] is None
    assert data["bytes"] == sum(one["bytes"] for one in data["workflows"]) > 0
    assert data["seconds"] >= 0 and data["dry_run"] is False


def test_a_dry_run_tells_and_makes_nothing(run: Run, store: Path):
    result = run("copy", store, "target", "--dry-run")
    assert result.exit_code == 0
    assert [line.split()[-2:] for line in result.out.splitlines()[1:]] == [["to", "copy"]] * 2
    assert result.err == "Nothing was changed.\n"
    assert not Path("target").exists()
    planned = run("copy", store, "target", "--dry-run", "--json").data
    assert planned["target"] == f"file:{Path('target').resolve()}"
    run("copy", store, "target", "WF-1")
    plan = run("copy", store, "target", "--dry-run", "--json").data
    assert [one["outcome"] for one in plan["workflows"]] == ["present", "copied"]
    assert [one["checkpoints"] for one in plan["workflows"]] == [0, 1]


def test_a_name_that_is_nearly_right_gets_a_suggestion_and_makes_nothing(run: Run, store: Path):
    result = run("copy", store, "target", "WF-11")
    assert result.exit_code == Exit.NOT_FOUND
    assert "Did you mean WF-1" in result.err
    assert not Path("target").exists()


def test_a_source_that_is_not_there_is_said(run: Run):
    assert run("copy", "nowhere", "target").exit_code == Exit.NO_STORE
    assert not Path("nowhere").exists() and not Path("target").exists()


def test_a_store_is_not_copied_onto_itself(run: Run, store: Path):
    Path("link").symlink_to(store)
    for target in (store, f"file:{store}", "link", f"{store}/../{store.name}"):
        result = run("copy", store, target)
        assert (result.exit_code, "the same store" in result.err) == (Exit.USAGE, True)


@pytest.mark.parametrize("target", ["{}/inside", "file:{}/inside/deep", "sqlite:{}/own.db", "link/inside"])
def test_a_store_is_not_copied_into_itself(run: Run, store: Path, target: str):
    Path("link").symlink_to(store)
    result = run("copy", store, target.format(store))
    assert result.exit_code == Exit.USAGE and "DST lies in the folder of the store itself" in result.err
    assert not (store / "inside").exists() and not (store / "own.db").exists()


def test_places_are_compared_as_paths_where_they_are_paths():
    here = os.path.realpath(".")
    assert _place(".") == _place("file:.") == _place(f"file://{here}") == f"file:{here}"
    assert _place("sqlite:x.db") == f"sqlite:{here}/x.db" != _place("x.db")
    assert _place("memory:") == "memory:"
    assert _place("postgresql://u:p@host/db") == "postgresql://u:p@host/db"


def test_the_stores_are_arguments_and_no_option(run: Run, store: Path):
    result = run("--store", store, "copy", store, "target")
    assert (result.exit_code, "not by --store" in result.err) == (Exit.USAGE, True)
    assert run("copy", store, "target", "--store", store).exit_code == Exit.USAGE


def test_an_empty_source_is_no_failure(run: Run):
    run("init", "--store", "empty")
    result = run("copy", "empty", "target")
    assert (result.exit_code, result.out, result.err) == (0, "", "Nothing to copy: the source is empty.\n")
    result = run("copy", "empty", "memory:")
    assert result.exit_code == Exit.USAGE and "gone when the command ends" in result.err


def test_a_damaged_workflow_is_named_and_the_other_one_is_copied(run: Run, store: Path):
    damage_record(store, 2)
    result = run("copy", store, "target")
    assert result.exit_code == Exit.PARTIAL
    assert "failed: WF-1: the record is not the one that was committed: WF-1@2" in result.err
    assert [line.split()[-1] for line in result.out.splitlines()[1:]] == ["failed", "copied"]
    assert len(listed(run, "target", "WF-2")) == 1
    data = run("copy", store, "other", "--json").data
    assert data["workflows"][0]["error"]["code"] == "checksum_mismatch"
    assert data["workflows"][0]["error"]["place"] == "WF-1@2"


def test_if_nothing_goes_right_it_ends_with_the_reason(run: Run, store: Path):
    damage_record(store, 2)
    alone = run("copy", store, "target", "WF-1", "--json")
    assert (alone.exit_code, alone.error["code"]) == (Exit.CORRUPT, "checksum_mismatch")
    with bootstrap.open("target") as service:
        service.create_checkpoint("WF-2", {"another": "way"})
    result = run("copy", store, "target")
    assert result.exit_code == Exit.PARTIAL
    assert "the target has another history of this workflow: checkpoint 1 is sha256:" in result.err


def test_a_conflict_alone_ends_as_conflicts_do(run: Run, store: Path):
    with bootstrap.open("target") as service:
        service.create_checkpoint("WF-2", {"another": "way"})
    assert run("copy", store, "target", "WF-2").exit_code == Exit.LOCKED


def test_several_that_fail_alike_end_alike(run: Run, store: Path):
    with bootstrap.open("target") as service:
        for workflow_id in ("WF-1", "WF-2"):
            service.create_checkpoint(workflow_id, {"another": "way"})
    result = run("copy", store, "target")
    assert result.exit_code == Exit.LOCKED
    assert result.err.count("another history") == 2


def test_an_interrupted_copy_says_that_it_goes_on(run: Run, store: Path, monkeypatch):
    def fail(self, workflow_ids):
        raise DiskFullError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Copier, "copy", fail)
        result = run("copy", store, "target")
    assert result.exit_code == Exit.UNEXPECTED
    assert "The same command goes on from there." in result.err
    assert run("copy", store, "target").exit_code == 0


def allow(place: Path, folder_mode: int, file_mode: int) -> None:
    for folder, _, names in os.walk(place):
        os.chmod(folder, folder_mode)
        for name in names:
            os.chmod(os.path.join(folder, name), file_mode)


def test_a_source_that_may_not_be_written_to_is_copied(run: Run, public_folder: Path, monkeypatch):
    monkeypatch.chdir(public_folder)
    fill(public_folder / "store")
    allow(public_folder / "store", 0o555, 0o444)
    Path("to").mkdir()
    Path("to").chmod(0o777)
    with without_privileges():
        result = run("copy", "store", "to/target", "--json")
    assert (result.exit_code, result.data["checkpoints"]) == (0, 4)


def test_a_target_that_may_not_be_written_to_is_refused(run: Run, public_folder: Path, monkeypatch):
    monkeypatch.chdir(public_folder)
    for name in ("store", "target"):
        fill(public_folder / name)
        allow(public_folder / name, 0o555, 0o444)
    with without_privileges():
        for target in ("target", "another"):
            result = run("copy", "store", target)
            assert (result.exit_code, "error: " in result.err) == (Exit.UNREACHABLE, True)


def test_a_terminal_shows_a_bar(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("holdfast.cli.bars.PATIENCE_SECONDS", 0)
    assert run("copy", store, "plain").err.startswith("The trail")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    shown = run("copy", store, "target").err
    assert "copy" in shown and "2000/2000" in shown and "WF-2" in shown
    assert run("copy", store, "json", "--json").err == ""
    assert run("copy", store, "quiet", "-q").err == ""


def test_the_reason_of_a_copy_is_in_the_trail_of_its_target(run: Run, store: Path):
    assert run("copy", store, "target", "--reason", "the disk is old").exit_code == 0
    [told] = entries(run, "target", "REQUEST_MADE")
    assert told["data"]["command"] == "copy" and told["correlation"].startswith("cli-")
    [imported] = entries(run, "target", "TRAIL_IMPORTED")
    assert imported["correlation"] == told["correlation"]


def test_holds_and_declared_subjects_come_along_and_are_told(run: Run, store: Path):
    run("subject", "declare", "WF-1", "ann", "--store", store)
    run("hold", "place", "--workflow", "WF-1", "--reason", "case 17", "--store", store)
    planned = run("copy", store, "target", "WF-2", "--dry-run")
    assert "To come along: 1 legal hold, 1 declared subject." in planned.err
    result = run("copy", store, "target", "WF-2")
    assert "Came along: 1 legal hold, 1 declared subject." in result.err
    [hold] = run("hold", "list", "--json", "--store", "target").data["holds"]
    assert (hold["workflow_id"], hold["reason"]) == ("WF-1", "case 17")
    again = run("copy", store, "target", "WF-2", "--json")
    assert again.data["people"] == {"holds": 0, "declarations": 0, "kept": []}
    [declared] = Path("target", "keys", "subjects").iterdir()
    declared.write_bytes(b"damaged")
    kept = run("copy", store, "target", "WF-2").err
    assert f"What is declared about {declared.name} differs and cannot be opened: kept as it was." in kept


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_target_that_cannot_be_a_store_is_no_copy(run: Run, store: Path, options: list[str]):
    Path("folder").mkdir()
    result = run("copy", store, "sqlite:folder", *options)
    assert result.exit_code == Exit.NO_STORE and list(Path("folder").iterdir()) == []
