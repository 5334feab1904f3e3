from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill, trail_file


def test_a_store_is_verified_with_the_key_on_this_machine(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    result = run("audit", "verify", "--payloads", "--store", store)
    assert result.exit_code == Exit.DONE, result.out
    told = {line.split()[0]: line for line in result.out.splitlines()}
    assert "signed head, required: chain" in told["level"]
    assert "signed up to" in told["covered"] and "not anchored" in told["tail"]
    assert "kept on this machine" in told["signatures"] and told["verdict"].endswith("ok")
    assert "as committed, 0 erased" in told["payloads"]


def test_a_key_that_is_given_is_what_counts(run: Run, signed: tuple[Path, str], monkeypatch, tmp_path: Path):
    store, key = signed
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    told = run("audit", "verify", "--key", key, "--store", store, "--json").data
    assert (told["verdict"], told["level"], told["required"]) == ("ok", "signed head", "signed head")
    told = run("audit", "verify", "--store", store, "--json").data
    assert "keys that the store itself names" in told["remark"]


def test_a_store_that_nobody_signed_is_inconclusive_where_a_signature_is_wanted(run: Run, store: Path):
    assert run("audit", "verify", "--store", store).exit_code == Exit.DONE
    result = run("audit", "verify", "--require", "signed", "--store", store)
    assert result.exit_code == Exit.INCONCLUSIVE
    assert "inconclusive" in result.out and "chains alone" in result.out


def test_another_key_is_a_failure(run: Run, signed: tuple[Path, str], tmp_path: Path):
    store, key = signed
    other = run("init", "--store", tmp_path / "other", "--json").data["public_key"]
    assert other != key
    assert run("audit", "verify", "--key", other, "--store", store).exit_code == Exit.NOT_VERIFIED


def change(store: Path) -> None:
    """Change one letter in the second entry of a session."""
    path = trail_file(store)
    path.write_bytes(
        path.read_bytes().replace(b'"type":"CHECKPOINT_CREATED"', b'"type":"CHECKPOINT_CREATEX"', 1)
    )


def test_a_changed_entry_is_named(run: Run, signed: tuple[Path, str]):
    store, key = signed
    change(store)
    result = run("audit", "verify", "--key", key, "--store", store, "--json")
    assert result.exit_code == Exit.NOT_VERIFIED
    assert result.data["verdict"] == "failed" and result.data["level"] == "none"
    assert "entry 2" in result.data["faults"][0]["place"]
    assert "first bad" in run("audit", "verify", "--store", store).out


def test_who_finds_a_changed_entry_is_not_told_to_sign_it(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    change(store)
    result = run("audit", "verify", "--store", store)
    assert "last head that the key here signed" in result.out
    assert "\nchanged " in result.out and "Sign nothing" in result.out
    assert "signed more than there is" not in result.out and "`.head`" not in result.out


def test_a_store_that_was_put_back_and_went_on_is_not_what_was_signed(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    shutil.copytree(store, "backup")
    fill(store)
    run("audit", "anchor", "--store", store)
    shutil.rmtree(store)
    shutil.copytree("backup", store)
    fill(store)
    fill(store)
    result = run("audit", "verify", "--store", store)
    assert result.exit_code == Exit.NOT_VERIFIED
    assert "put back to an older state and went on" in result.out and "`.head`" not in result.out
    doctor = run("doctor", "--store", store)
    assert doctor.exit_code == Exit.CORRUPT and "Sign nothing" in doctor.out


def test_that_something_is_wrong_is_told_in_the_trail(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    run("audit", "verify", "--store", store)
    change(store)
    run("audit", "verify", "--store", store)
    lines = run(
        "audit", "log", "--type", "TRAIL_VERIFIED", "--type", "INTEGRITY_FAILED", "--store", store, "--json"
    )
    told = [(entry["type"], entry["outcome"]) for entry in map(json.loads, lines.out.splitlines())]
    assert told == [
        ("TRAIL_VERIFIED", "success"),
        ("TRAIL_VERIFIED", "failure"),
        ("INTEGRITY_FAILED", "failure"),
    ]


def test_a_store_that_was_put_back_is_found_by_a_pin_only(
    run: Run, signed: tuple[Path, str], tmp_path: Path, monkeypatch
):
    store, key = signed
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-3", {"later": True})
    run("audit", "anchor", "--pin", "pin", "--store", store)
    given = ("--key", key, "--pin", "pin")
    assert run("audit", "verify", *given, "--store", store).exit_code == Exit.DONE
    # Where the key is, it remembers.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    assert run("audit", "verify", "--key", key, "--store", copy).exit_code == Exit.DONE
    result = run("audit", "verify", *given, "--store", copy)
    assert result.exit_code == Exit.NOT_VERIFIED and "the log ends before" in result.out


def test_a_pin_may_be_written_down_as_size_and_root(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    told = run("audit", "anchor", "--store", store, "--json").data
    pin = f"{told['size']}:{told['root']}"
    verified = run("audit", "verify", "--pin", pin, "--store", store, "--json")
    assert (verified.exit_code, verified.data["level"]) == (0, "pinned head")
    wrong = f"{told['size']}:{'00' * 32}"
    assert run("audit", "verify", "--pin", wrong, "--store", store).exit_code == Exit.NOT_VERIFIED


def test_an_export_is_verified_without_a_store(
    run: Run, signed: tuple[Path, str], tmp_path: Path, monkeypatch
):
    store, key = signed
    run("audit", "export", "export", "--store", store)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    shutil.rmtree(store)
    told = run("audit", "verify", "export", "--key", key, "--json")
    assert (told.exit_code, told.data["level"]) == (0, "signed head")
    assert told.data["payloads"] and not told.data["fault_count"]
    bare = run("audit", "verify", "export")
    assert bare.exit_code == Exit.DONE and "not checked: give --key" in bare.out
    assert run("audit", "verify", "export", "--require", "signed").exit_code == Exit.INCONCLUSIVE


def test_an_export_that_was_changed_is_found(run: Run, signed: tuple[Path, str]):
    store, key = signed
    run("audit", "export", "export", "--store", store)
    bundle = next(path for path in Path("export/tile/entries").rglob("*") if path.is_file())
    bundle.write_bytes(bundle.read_bytes().replace(b"success", b"failure", 1))
    assert run("audit", "verify", "export", "--key", key).exit_code == Exit.NOT_VERIFIED


def test_one_session_is_verified_by_itself(run: Run, signed: tuple[Path, str]):
    store, key = signed
    run("audit", "export", "export", "--session", "s-1", "--no-payloads", "--store", store)
    told = run("audit", "verify", "export", "--key", key, "--json")
    assert (told.exit_code, told.data["level"]) == (0, "signed head")


def test_a_folder_that_is_no_export_is_not_found(run: Run, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    assert run("audit", "verify", "empty").exit_code == Exit.NOT_FOUND
    (tmp_path / "empty" / "SHA256SUMS").touch()
    told = run("audit", "verify", "empty")
    assert told.exit_code == Exit.NOT_FOUND and "evidence pack" in told.err


def test_what_is_neither_folder_nor_proof_is_no_evidence(run: Run, tmp_path: Path):
    assert run("audit", "verify", "nothing").exit_code == Exit.USAGE
    (tmp_path / "text").write_text("hello")
    assert run("audit", "verify", "text").exit_code == Exit.NOT_VERIFIED


def test_a_bar_is_shown_on_a_terminal_only(run: Run, signed: tuple[Path, str], monkeypatch):
    monkeypatch.setattr("holdfast.cli.bars.PATIENCE_SECONDS", 0)
    assert run("audit", "verify", "--store", signed[0]).err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert "verify" in run("audit", "verify", "--store", signed[0]).err


@pytest.mark.parametrize("url", ["sqlite:trail.db"])
def test_every_kind_of_store_is_verified(run: Run, url: str):
    key = run("init", "--store", url, "--json").data["public_key"]
    with bootstrap.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    told = run("audit", "verify", "--key", key, "--store", url, "--json")
    assert (told.exit_code, told.data["level"]) == (0, "signed head")


def test_without_the_package_for_signatures_it_is_told_what_to_install(
    run: Run, signed: tuple[Path, str], monkeypatch
):
    store, key = signed
    run("audit", "export", "export", "--store", store)
    monkeypatch.setitem(sys.modules, "holdfast.adapters.crypto.signing", None)
    result = run("audit", "verify", "export", "--key", key)
    assert result.exit_code == Exit.USAGE and "holdfast[audit]" in result.err
    assert run("audit", "verify", "export").exit_code == Exit.DONE


def test_who_remembers_what_was_seen_finds_a_store_that_was_put_back(
    run: Run, signed: tuple[Path, str], tmp_path: Path
):
    store, key = signed
    verify = ("audit", "verify", "--key", key, "--remember", "seen", "--store")
    shutil.copytree(store, tmp_path / "old")
    assert run(*verify, store).exit_code == Exit.DONE
    first = Path("seen").read_text()
    told = run(*verify, store, "--json")
    assert (told.exit_code, told.data["level"]) == (0, "pinned head")
    second = Path("seen").read_text()
    assert int(second.splitlines()[1]) > int(first.splitlines()[1])
    assert run(*verify, tmp_path / "old").exit_code == Exit.NOT_VERIFIED
    assert Path("seen").read_text() == second


def test_a_part_of_a_log_does_not_take_the_place_of_a_head_that_it_was_not_compared_with(
    run: Run, signed: tuple[Path, str]
):
    store, key = signed
    verify = ("audit", "verify", "--key", key, "--remember", "seen")
    assert run(*verify, "--store", store).exit_code == Exit.DONE
    first = Path("seen").read_text()
    run("audit", "anchor", "--store", store)
    run("audit", "export", "one", "--session", "s-1", "--store", store)
    result = run(*verify, "--require", "signed", "one")
    assert result.exit_code == Exit.INCONCLUSIVE and "seen stays as it was" in result.err
    assert Path("seen").read_text() == first
    # Where nothing was seen yet, there is nothing to compare with.
    assert run("audit", "verify", "--key", key, "--remember", "new", "one").exit_code == Exit.DONE
    newest = Path("new").read_text()
    assert int(newest.splitlines()[1]) > int(first.splitlines()[1])
    assert run(*verify[:-1], "new", "one").exit_code == Exit.DONE
    assert run(*verify, "--store", store).exit_code == Exit.DONE
    assert Path("seen").read_text() != first


def test_a_part_of_a_log_says_that_it_is_one(run: Run, signed: tuple[Path, str]):
    store, key = signed
    run("audit", "export", "one", "--session", "s-1", "--store", store)
    result = run("audit", "verify", "one", "--key", key)
    told = {line.split()[0]: line for line in result.out.splitlines()}
    assert "this is one session alone; at least" in told["part"] and "were not looked at" in told["part"]
    assert "it may have gone on" in told["part"]
    assert "everything that is here is anchored" in told["tail"]
    assert run("audit", "verify", "one", "--key", key, "--json").data["part"] == "session"
    assert run("audit", "verify", "--key", key, "--store", store, "--json").data["part"] == ""


def test_of_a_part_that_nobody_signed_nobody_knows_how_much_is_missing(run: Run, store: Path):
    run("audit", "export", "one", "--session", "s-1", "--store", store)
    result = run("audit", "verify", "one")
    assert "alone; other entries of the log are not here" in result.out


def test_a_log_without_a_name_is_not_remembered(run: Run, store: Path):
    result = run("audit", "verify", "--remember", "seen", "--store", store)
    assert result.exit_code == Exit.DONE and "has no name yet" in result.err
    assert not Path("seen").exists()


def test_an_export_that_nobody_signed_is_verified_by_its_chains(run: Run, store: Path):
    run("audit", "export", "export", "--store", store)
    told = run("audit", "verify", "export", "--json")
    assert (told.exit_code, told.data["level"], told.data["origin"]) == (0, "chain", "")


def test_a_trail_that_is_gone_does_not_pass_for_one_that_is_right(run: Run, store: Path):
    shutil.rmtree(store / "audit")
    result = run("audit", "verify", "--store", store)
    assert result.exit_code == Exit.INCONCLUSIVE
    assert "nothing of the last checkpoint of" in result.out and "switched off" in result.out
    # What was told of this look is all that there is now.
    told = run("audit", "verify", "--store", store, "--json").data
    assert told["verdict"] == "inconclusive" and told["untold"] and not told["faults"]


def test_a_store_put_back_from_a_backup_is_told_by_the_head_that_the_key_remembers(
    run: Run, signed: tuple[Path, str], tmp_path: Path
):
    store, _ = signed
    shutil.copytree(store, "backup")
    fill(store)
    run("audit", "anchor", "--store", store)
    assert run("audit", "verify", "--store", store).exit_code == Exit.DONE
    shutil.rmtree(store)
    shutil.copytree("backup", store)
    result = run("audit", "verify", "--store", store)
    assert result.exit_code == Exit.NOT_VERIFIED
    assert "last head that the key here signed" in result.out and "`.head` file" in result.out
    assert "not what is here" not in result.out
    doctor = run("doctor", "--store", store)
    assert doctor.exit_code == Exit.CORRUPT and "`.head`" in doctor.out
    for path in (tmp_path / "config").rglob("*.head"):
        path.unlink()
    assert run("audit", "anchor", "--store", store).exit_code == Exit.DONE
    assert run("audit", "verify", "--store", store).exit_code == Exit.DONE
