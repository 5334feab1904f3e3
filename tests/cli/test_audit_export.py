from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill, without_privileges

ROOT = Path(__file__).parents[2]


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


def middle(store: Path) -> tuple[str, str]:
    """Answer the times of an early and a late entry of a store."""
    lines = [line for path in store.rglob("audit_trail.jsonl") for line in path.read_text().splitlines()]
    times = sorted(json.loads(line)["ts"] for line in lines)
    return times[2], times[-2]


def test_a_period_is_verified_with_and_without_holdfast(run: Run, signed: tuple[Path, str]):
    store, key = signed
    since, until = middle(store)
    told = run("audit", "export", "part", "--from", since, "--to", until, "--store", store, "--json").data
    lines = Path("part/period/audit_trail.jsonl").read_text().splitlines()
    assert (told["from"], told["to"], told["entries"]) == (since, until, len(lines))
    assert all(since <= json.loads(line)["ts"] < until for line in lines)
    verified = run("audit", "verify", "part", "--key", key, "--json")
    assert verified.exit_code == Exit.DONE and verified.data["entries"] == len(lines)
    assert verified.data["level"] == "signed head" and verified.data["tail"] == 0
    alone = subprocess.run(
        [sys.executable, ROOT / "tests" / "independent_verifier.py", "part", key],
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 0 and f"{len(lines)} entries of a period verified" in alone.stdout
    assert "WHAT IT SHOWS, AND WHAT IT DOES NOT" in Path("part/README.txt").read_text()


def test_an_entry_that_is_taken_out_of_a_period_is_missed(run: Run, signed: tuple[Path, str]):
    store, key = signed
    run("audit", "export", "part", "--from", middle(store)[0], "--store", store)
    trail, proofs = Path("part/period/audit_trail.jsonl"), Path("part/period/proofs")
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:1] + lines[2:]))
    for number in range(2, len(lines)):
        later = proofs / f"{number + 1:08d}.tlog-proof"
        if later.exists():
            later.replace(proofs / f"{number:08d}.tlog-proof")
    files = sorted(path for path in Path("part").rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.relative_to('part')}\n" for path in files]
    Path("part/SHA256SUMS").write_text("".join(sums))
    assert run("audit", "verify", "part", "--key", key).exit_code == Exit.NOT_VERIFIED
    verifier = [sys.executable, ROOT / "tests" / "independent_verifier.py", "part", key]
    assert subprocess.run(verifier, capture_output=True, check=False).returncode == 1


def test_a_period_says_what_it_does_not_show_and_holds_no_payload_where_it_is_redacted(
    run: Run, signed: tuple[Path, str]
):
    store, key = signed
    result = run("audit", "export", "part", "--from", "2020-01-01", "--redact", "--store", store)
    assert "nothing of what was before and after" in result.err and "personal data" not in result.err
    assert not any(b"why not" in path.read_bytes() for path in Path("part").rglob("*") if path.is_file())
    assert run("audit", "verify", "part", "--key", key).exit_code == Exit.DONE
    run("audit", "export", "with", "--from", "2020-01-01", "--store", store)
    assert b"why not" in Path("with/period/payloads.jsonl").read_bytes()
    assert run("audit", "verify", "with", "--key", key, "--json").data["payloads"] > 0


@pytest.mark.parametrize(
    ("args", "leave"),
    [
        (("--from", "2026-02-01", "--to", "2026-01-01"), Exit.USAGE),
        (("--from", "soon"), Exit.USAGE),
        (("--from", "2026-01-01", "--session", "s-1"), Exit.USAGE),
        (("--from", "2026-01-01", "--import", "0" * 16), Exit.USAGE),
        (("--to", "1999-01-01"), Exit.NOT_FOUND),
    ],
)
def test_a_period_that_cannot_be_is_refused(run: Run, store: Path, args: tuple[str, ...], leave: Exit):
    result = run("audit", "export", "part", *args, "--store", store)
    assert result.exit_code == leave and not Path("part").exists()


def test_a_period_that_ends_before_it_begins_is_told_the_right_way_round(run: Run, store: Path):
    ends = ("--from", "2026-12-01", "--to", "2026-01-01")
    assert "--from has to lie before --to" in run("audit", "export", "part", *ends, "--store", store).err


def test_an_export_of_nothing_leaves_folders_as_they_were(run: Run, store: Path):
    Path("there").mkdir()
    for place in ("new/deep/part", "there"):
        result = run("audit", "export", place, "--to", "1999-01-01", "--store", store)
        assert result.exit_code == Exit.NOT_FOUND
    assert not Path("new").exists() and Path("there").is_dir()
