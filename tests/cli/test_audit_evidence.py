from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from holdfast.domain.note import parse_note
from holdfast.domain.tlogproof import TlogProof, parse_tlog_proof
from holdfast.domain.treehead import parse_head
from tests.cli.conftest import Run
from tests.trails import LOG_KEY, WITNESS_KEY


@pytest.fixture
def proof(run: Run, signed: tuple[Path, str]) -> TlogProof:
    store, _ = signed
    run("audit", "proof", "s-1#2", "--out", "p.tlog-proof", "--store", store)
    return parse_tlog_proof(Path("p.tlog-proof").read_bytes())


def test_a_person_is_told_which_entry_is_where(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    result = run("audit", "verify", "p.tlog-proof", "--key", signed[1])
    assert result.exit_code == 0
    assert (
        "entry        s-1#2, CHECKPOINT_CREATED" in result.out and f"signed by    {signed[1]}" in result.out
    )


def test_without_a_key_it_is_inconclusive(run: Run, proof: TlogProof):
    result = run("audit", "verify", "p.tlog-proof")
    assert result.exit_code == Exit.INCONCLUSIVE and "give --key" in result.out


def test_the_entry_may_come_from_a_file(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    Path("bare.tlog-proof").write_bytes(replace(proof, extra=b"").encode())
    key = ("--key", signed[1])
    assert run("audit", "verify", "bare.tlog-proof", *key).exit_code == Exit.USAGE
    Path("line").write_bytes(proof.extra)
    assert run("audit", "verify", "bare.tlog-proof", "--entry", "line", *key).exit_code == 0
    Path("bare.entry").write_bytes(proof.extra)
    assert run("audit", "verify", "bare.tlog-proof", *key).exit_code == 0
    Path("line").write_bytes(proof.extra.replace(b"success", b"failure"))
    assert run("audit", "verify", "p.tlog-proof", "--entry", "line", *key).exit_code == Exit.NOT_VERIFIED


def test_every_change_of_it_is_found(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    changed = [
        replace(proof, extra=proof.extra.replace(b"WF-1", b"WF-2")),
        replace(proof, index=proof.index + 1),
        replace(proof, hashes=proof.hashes[:-1]),
        replace(proof, checkpoint=proof.checkpoint.replace(b"holdfast/", b"holdfist/", 1)),
    ]
    for one in changed:
        Path("changed").write_bytes(one.encode())
        result = run("audit", "verify", "changed", "--key", signed[1], "--json")
        assert result.exit_code == Exit.NOT_VERIFIED
        assert result.error["code"] == "verification_failed"


def test_the_key_of_another_log_does_not_help(run: Run, proof: TlogProof):
    assert run("audit", "verify", "p.tlog-proof", "--key", LOG_KEY.key).exit_code == Exit.NOT_VERIFIED


def test_a_witness_that_is_asked_for_must_have_signed(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    given = ("--key", signed[1], "--witness", WITNESS_KEY.key)
    assert run("audit", "verify", "p.tlog-proof", *given).exit_code == Exit.INCONCLUSIVE


def test_a_head_that_was_seen_before_is_compared(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    verify = ("audit", "verify", "p.tlog-proof", "--key", signed[1])
    head = parse_head(parse_note(proof.checkpoint).text)
    Path("seen").write_bytes(proof.checkpoint)
    told = run(*verify, "--pin", "seen", "--json")
    assert (told.exit_code, told.data["level"], told.data["required"]) == (0, "pinned head", "pinned head")
    result = run(*verify, "--pin", f"{head.size}:{'0' * 64}")
    assert result.exit_code == Exit.NOT_VERIFIED and "of the same size, is another one" in result.err
    result = run(*verify, "--pin", f"{head.size + 4}:{'0' * 64}")
    assert result.exit_code == Exit.INCONCLUSIVE and "pinned head was not reached" in result.out
    Path("other").write_text("another.example/log\n3\n" + "A" * 43 + "=\n")
    result = run(*verify, "--pin", "other")
    assert result.exit_code == Exit.NOT_VERIFIED and "of another log" in result.err


@pytest.mark.parametrize(
    ("level", "leave"),
    [("chain", 0), ("signed", 0), ("pinned", Exit.INCONCLUSIVE), ("witness", Exit.INCONCLUSIVE)],
)
def test_the_level_that_is_required_of_a_proof_has_to_be_reached(
    run: Run, proof: TlogProof, signed: tuple[Path, str], level: str, leave: int
):
    verify = ("audit", "verify", "p.tlog-proof", "--require", level)
    assert run(*verify, "--key", signed[1]).exit_code == leave
    assert run(*verify).exit_code == Exit.INCONCLUSIVE


def test_a_proof_is_nothing_to_remember_a_log_by(run: Run, proof: TlogProof, signed: tuple[Path, str]):
    result = run("audit", "verify", "p.tlog-proof", "--key", signed[1], "--remember", "seen")
    assert result.exit_code == Exit.USAGE and not Path("seen").exists()
