from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill, without_privileges


def test_an_export_is_signed_and_tells_of_itself(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    result = run("audit", "export", "export", "--store", store, "--json")
    assert result.exit_code == 0
    told = result.data
    assert told["files"] == sum(path.is_file() for path in Path("export").rglob("*"))
    # Everything but the entry that tells of the last head is covered by it.
    assert told["entries"] - told["signed_size"] <= 1
    assert b"TRAIL_EXPORTED" in b"".join(
        path.read_bytes() for path in Path("export/sessions").glob("cli-*/*.jsonl")
    )
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd="export", check=False)
    assert checked.returncode == 0


@pytest.mark.parametrize("more", [(), ("--import", "0" * 16)])
def test_nothing_is_exported_into_the_store_itself(run: Run, store: Path, more: tuple[str, ...]):
    result = run("audit", "export", store / "x", *more, "--store", store)
    assert result.exit_code == Exit.USAGE and "DIR lies in the folder of the store itself" in result.err
    assert not (store / "x").exists()


def test_payloads_are_left_out_if_wished(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    assert "personal data" in run("audit", "export", "with", "--store", store).err
    assert "personal data" not in run("audit", "export", "without", "--no-payloads", "--store", store).err
    for folder, there in (("with", True), ("without", False)):
        found = any(b"why not" in path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
        assert found == there


def test_a_store_that_nobody_signed_is_exported_with_a_remark(run: Run, store: Path):
    result = run("audit", "export", "export", "--store", store)
    assert result.exit_code == 0 and "Nothing was ever signed" in result.err


def test_a_session_that_is_not_there_is_not_exported(run: Run, store: Path):
    result = run("audit", "export", "export", "--session", "s1", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean s-1" in result.err
    assert not Path("export").exists()


def test_a_folder_with_something_in_it_is_left_alone(run: Run, store: Path):
    Path("export").mkdir()
    Path("export/mine").write_text("mine")
    assert run("audit", "export", "export", "--store", store).exit_code == Exit.USAGE
    assert [path.name for path in Path("export").iterdir()] == ["mine"]


def test_a_strict_trail_lets_nothing_out_that_it_cannot_tell(run: Run, public_folder: Path, monkeypatch):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    run("audit", "export", "first", "--store", place)
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (public_folder / "out").mkdir(mode=0o777)
    (public_folder / "out").chmod(0o777)
    monkeypatch.setenv("HOLDFAST_STRICT_AUDIT", "true")
    with without_privileges():
        result = run("audit", "export", "out/export", "--store", place)
    assert result.exit_code == Exit.UNREACHABLE and not (public_folder / "out" / "export").exists()
    monkeypatch.setenv("HOLDFAST_STRICT_AUDIT", "false")
    with without_privileges():
        result = run("audit", "export", "out/export", "--store", place)
    assert result.exit_code == Exit.DONE and "not in the trail" in result.err


def test_payloads_that_did_not_come_along_are_counted(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    assert run("audit", "export", "whole", "--store", store, "--json").data["absent"] == 0
    for path in store.glob("audit/*/*/payloads.jsonl"):
        path.unlink()
    assert "1 payload did not come along" in run("audit", "export", "partial", "--store", store).err
    told = run("audit", "verify", "--payloads", "--store", store)
    assert told.exit_code == Exit.NOT_VERIFIED
    assert "0 as committed, 1 gone" in told.out and "no erasure tells of it" in told.out
