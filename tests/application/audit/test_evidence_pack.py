from __future__ import annotations

import json
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.crypto.signing import verify
from holdfast.application.audit.audit_report import check_statement
from holdfast.application.audit.evidence_controls import CONTROLS
from holdfast.application.audit.evidence_pack import SHOWN_MAX, Horizon, make_pack, observe, write_pack
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointWriteError, ConfigError
from holdfast.domain.merkle import leaf_hash
from holdfast.domain.tiles import TileHashes
from holdfast.domain.tlogproof import parse_tlog_proof, verify_tlog_proof
from tests.application.told import Told, day_at_work, entry
from tests.trails import LOG_KEY, ORIGIN

SETTINGS = {
    "retention": {"trail_days_min": 183},
    "encryption": {"on": False},
    "redaction": {"on": True},
    "recording": {"on": True},
    "holds": {"standing": 0},
}


def horizon(told: Told, signed: int = 8) -> Horizon:
    tiles = dict(told.edge(0).append([leaf_hash(line) for line in told.lines[:signed]]))
    return Horizon(
        origin=ORIGIN,
        size=len(told.lines),
        lines=told.lines,
        report=told.verify(signed),
        head=told.head(signed) if signed else None,
        hashes=TileHashes(signed, tiles.get) if signed else None,
        keys=(str(LOG_KEY.key),),
        settings=SETTINGS,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def answer(told: Horizon, control: str) -> dict[str, Any]:
    files, _ = make_pack(told)
    found: dict[str, Any] = json.loads(files[f"controls/{control}.json"])
    return found


def test_a_pack_has_a_file_for_each_control_with_query_result_and_proof(tmp_path):
    index = write_pack(tmp_path / "pack", horizon(day_at_work()), LOG_KEY)
    for control in CONTROLS:
        told = json.loads((tmp_path / "pack" / "controls" / f"{control.id}.json").read_text())
        assert told["asks"] == control.asks and {"query", "result", "shown"} <= set(told)
    assert [each["control"] for each in index["controls"]] == [control.id for control in CONTROLS]
    assert json.loads((tmp_path / "pack" / "index.json").read_text()) == index


def test_the_sums_and_the_statement_hold(tmp_path):
    write_pack(tmp_path, horizon(day_at_work()), LOG_KEY)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)
    listing = (tmp_path / "SHA256SUMS").read_bytes()
    text = check_statement((tmp_path / "statement.note").read_bytes(), listing, [LOG_KEY.key], verify)
    assert "about evidence pack\ntree 11\n" in text
    listed = {line.split("  ")[1] for line in listing.decode().splitlines()}
    assert listed == set(contents(tmp_path)) - {"SHA256SUMS", "statement.note"}


def test_every_proof_proves_the_entry_beside_it():
    files, _ = make_pack(horizon(day_at_work(), 8))
    proofs = [name for name in files if name.endswith(".tlog-proof")]
    assert len(proofs) == 8
    for name in proofs:
        line = files[name.replace(".tlog-proof", ".entry")]
        head, _ = verify_tlog_proof(parse_tlog_proof(files[name]), line, [LOG_KEY.key], verify)
        assert head.size == 8


def test_what_no_signed_head_covers_is_shown_without_a_proof():
    told = answer(horizon(day_at_work(), 8), "soc2-cc7.2")
    assert [(one["entry"], one["leaf"], one["proof"]) for one in told["shown"]] == [("s-1#10", 9, None)]
    files, _ = make_pack(horizon(day_at_work(), 0))
    assert not any(name.endswith(".tlog-proof") or name == "checkpoint" for name in files)


def test_the_same_horizon_gives_the_same_bytes_whatever_came_later(tmp_path):
    before = day_at_work()
    write_pack(tmp_path / "one", horizon(before), LOG_KEY)
    later = day_at_work().add(entry(20, "TRAIL_EXPORTED"), entry(21))
    write_pack(
        tmp_path / "two",
        replace(horizon(later), lines=later.lines[:11], size=11, report=before.verify(8)),
        LOG_KEY,
    )
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_no_payload_is_in_a_pack():
    files, _ = make_pack(horizon(day_at_work()))
    for name, data in files.items():
        assert b"differ in kind" not in data and b"within budget" not in data, name


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        write_pack(tmp_path, horizon(day_at_work()))
    with pytest.raises(ConfigError, match="not empty"):
        write_pack(tmp_path / "mine.txt", horizon(day_at_work()))
    assert contents(tmp_path) == {"mine.txt": b"mine"}


def test_only_its_owner_may_read_a_pack(tmp_path):
    write_pack(tmp_path / "pack", horizon(day_at_work()))
    for path in (tmp_path / "pack").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointWriteError, match="cannot be written"):
        write_pack(tmp_path / "file" / "pack", horizon(day_at_work()))


def test_a_pack_without_a_key_has_no_statement(tmp_path):
    write_pack(tmp_path, horizon(day_at_work()))
    assert "statement.note" not in contents(tmp_path)


def test_many_entries_are_counted_and_the_first_and_last_shown():
    many = Told().add(*(entry(number) for number in range(1, 101)))
    told = answer(horizon(many, 0), "ai-act-art13")
    assert told["result"]["entries"] == 100 and told["left_out"] == 100 - 2 * SHOWN_MAX
    leaves = [one["leaf"] for one in told["shown"]]
    assert leaves == [*range(1, 26), *range(76, 101)]


@pytest.mark.parametrize(
    ("control", "settings", "said"),
    [
        ("soc2-c1.1", {}, "encryption is off"),
        ("soc2-c1.1", {"redaction": {"on": False}}, "redaction is off"),
        ("soc2-cc7.1", {"recording": {"on": False}}, "recording is off"),
        ("gdpr-art30", {}, "not stated: name of the controller"),
        (
            "ai-act-art19",
            {"retention": {"trail_days_min": 30}},
            "the trail is kept for 30 days, less than 183",
        ),
        ("ai-act-art19", {}, "3 entries are not covered by a signed head"),
    ],
)
def test_what_should_not_be_overlooked_is_said(control, settings, said):
    given = horizon(day_at_work())
    told = answer(replace(given, settings={**SETTINGS, **settings}), control)
    assert any(warning.startswith(said) for warning in told["attention"])


def test_a_workflow_that_was_only_asked_for_is_not_one_of_the_register():
    told = day_at_work()
    before = observe(told.lines, SETTINGS).workflows
    told.add(entry(90, AuditType.TRAIL_READ, workflow_id="NOPE"))
    assert b"NOPE" in told.lines[-1] and observe(told.lines, SETTINGS).workflows == before


def test_what_is_in_order_is_not_warned_of():
    given = horizon(day_at_work(), 11)
    told = answer(replace(given, settings={**SETTINGS, "encryption": {"on": True}}), "soc2-c1.1")
    assert told["attention"] == []
    assert answer(given, "ai-act-art19")["attention"] == []


def test_a_failed_verification_is_in_every_control_that_rests_on_it():
    told = day_at_work()
    broken = [*told.lines]
    broken[3] = broken[3].replace(b"success", b"failure")
    given = replace(horizon(told), report=told.verify(8, broken))
    assert answer(given, "soc2-pi1.5")["attention"][0].startswith("the verification failed: an audit entry")


def test_the_register_and_the_verification_lie_beside():
    files, _ = make_pack(horizon(day_at_work()))
    assert json.loads(files["register.json"])["observed"]["trail_entries"] == 11
    assert json.loads(files["verification.json"])["signed_size"] == 8
    assert files["vkeys"] == f"{LOG_KEY.key}\n".encode()


def test_an_empty_log_gives_a_pack_too():
    files, index = make_pack(horizon(Told(), 0))
    assert index["horizon"]["size"] == 0 and index["horizon"]["last_entry"] is None
    assert "index.html" in files
