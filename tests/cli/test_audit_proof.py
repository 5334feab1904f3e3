from __future__ import annotations

import json
from pathlib import Path

from holdfast.cli.exits import Exit
from holdfast.domain.tlogproof import parse_tlog_proof
from tests.cli.conftest import Run, fill, trail_file, without_privileges


def test_a_proof_holds_its_entry_and_is_verified_with_the_key_alone(run: Run, signed: tuple[Path, str]):
    store, key = signed
    result = run("audit", "proof", "s-1#2", "--out", "entry.tlog-proof", "--store", store)
    assert result.exit_code == 0 and "Leaf 1 of the tree" in result.err
    proof = parse_tlog_proof(Path("entry.tlog-proof").read_bytes())
    assert proof.extra in trail_file(store).read_bytes()
    verified = run("audit", "verify", "entry.tlog-proof", "--key", key, "--json")
    assert verified.exit_code == 0 and verified.data["entry"]["session"] == "s-1"
    assert verified.data["signed_by"] == [key]


def test_it_is_printed_where_no_file_is_named(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    out = run("audit", "proof", "s-1#2", "--store", store).out
    told = run("audit", "proof", "s-1#2", "--store", store, "--json").data
    assert parse_tlog_proof(out.encode()).index == told["index"] == 1
    assert told["proof"] == out


def test_an_entry_that_is_not_signed_yet_is_signed_for_it(run: Run, signed: tuple[Path, str]):
    store, key = signed
    run("show", "WF-1", "--store", store)
    name = (
        "cli-"
        + run("audit", "log", "--type", "STATE_READ", "--store", store).out.partition("cli-")[2].split()[0]
    )
    assert run("audit", "proof", name, "--out", "p", "--store", store).exit_code == 0
    assert run("audit", "verify", "p", "--key", key).exit_code == 0


def test_without_a_key_there_is_no_proof(run: Run, store: Path):
    result = run("audit", "proof", "s-1#2", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "holdfast audit anchor" in result.err


def test_an_entry_that_is_not_there_has_none(run: Run, signed: tuple[Path, str]):
    assert run("audit", "proof", "s-1#999", "--store", signed[0]).exit_code == Exit.NOT_FOUND


def test_a_copy_that_we_may_only_read_gives_proofs(run: Run, public_folder: Path, monkeypatch):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    run("audit", "anchor", "--store", place)
    run("audit", "proof", "s-1#2", "--store", place)
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_privileges():
        result = run("audit", "proof", "s-1#2", "--store", place)
    assert result.exit_code == 0 and "not in the trail" in result.err
    assert parse_tlog_proof(result.out.encode()).index == 1


def test_a_proof_that_is_given_out_is_told_in_the_trail(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    run("audit", "proof", "s-1#2", "--store", store)
    (line,) = run("audit", "log", "--type", "TRAIL_EXPORTED", "--store", store, "--json").out.splitlines()
    assert json.loads(line)["data"] == {"format": "proof", "session": "s-1", "seq": 2}
