"""An export for a person holds all that is about them, nothing that is about others, and proofs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointNotFoundError, ConfigError
from holdfast.domain.ids import folder_name
from holdfast.domain.personal import Personal
from holdfast.domain.tlogproof import parse_tlog_proof, verify_tlog_proof

ALICE, BOB = "the words of alice", "the words of bob"


@pytest.fixture(params=["plain", "sealed"])
def service(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CheckpointService]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TEST_KEY", "00" * 32)
    settings = {"encrypt": True, "encryption_key": "env:TEST_KEY"} if request.param == "sealed" else {}
    with bootstrap.open(f"{tmp_path}/store", session="s-1", background=False, **settings) as service:
        for workflow_id, words, people in (
            ("W", ALICE, ["alice"]),
            ("V", "of both", ["alice", "bob"]),
            ("U", BOB, ["bob"]),
        ):
            for n in range(2):
                service.create_checkpoint(workflow_id, {"n": n, "said": words})
            service.record_decision(workflow_id, f"believe {words}")
            for subject in people:
                service.subjects.declare(workflow_id, subject)
        if request.param == "sealed":
            values = {"hers": Personal("alice", {"iban": "DE00"}), "his": Personal("bob", BOB)}
            service.create_checkpoint("U", {"n": 2, **values})
            service.append_event("U", "PAID", {"by": [Personal("alice", "cash")]})
            service.create_checkpoint("W", {"mixed": Personal("bob", BOB), "own": Personal("alice", 7)})
        yield service


def texts(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tlog-proof")
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def of(folder: Path, workflow_id: str) -> Path:
    return folder / "out" / "workflows" / folder_name(workflow_id)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_everything_about_a_person_is_there_and_nothing_else(
    service: CheckpointService, tmp_path: Path
) -> None:
    done = service.subject_export.write("alice", tmp_path / "out")
    assert done.workflows == ("W",)
    told = texts(tmp_path / "out")
    assert ALICE in told
    assert BOB not in told
    assert "bob" not in told
    about = json.loads((tmp_path / "out" / "subject.json").read_text())
    assert about["subject"] == "alice"
    is_sealed = service._engine.kit.vault is not None
    assert [one["id"] for one in about["shared_workflows"]] == (["U"] if is_sealed else [])
    states = lines(of(tmp_path, "W") / "states.jsonl")
    assert [state["state"]["context"]["said"] for state in states[:2]] == [ALICE, ALICE]
    events = lines(of(tmp_path, "W") / "events.jsonl")
    assert any(event["data"].get("description") == f"believe {ALICE}" for event in events)


def test_what_was_sealed_for_a_person_is_found_wherever_it_is(
    service: CheckpointService, tmp_path: Path
) -> None:
    service.subject_export.write("alice", tmp_path / "out")
    if service._engine.kit.vault is None:
        assert not of(tmp_path, "U").exists()
        return
    found = lines(of(tmp_path, "U") / "sealed.jsonl")
    assert [one["values"] for one in found] == [[{"iban": "DE00"}], ["cash"]]
    last = lines(of(tmp_path, "W") / "states.jsonl")[-1]["state"]["context"]
    assert last == {"mixed": {"personal": "another's, or erased"}, "own": 7}


def test_each_audit_entry_comes_with_a_proof_where_a_head_is_signed(
    service: CheckpointService, tmp_path: Path
) -> None:
    service._engine.keeper.anchor(create_key=True)
    service.subject_export.write("alice", tmp_path / "out")
    key = service._engine.keeper.keys()[0]
    proofs = sorted((of(tmp_path, "W") / "audit").glob("*.tlog-proof"))
    assert proofs
    for path in proofs:
        line = path.with_suffix(".json").read_bytes()
        proof = parse_tlog_proof(path.read_bytes())
        verify_tlog_proof(proof, line, [key], service._engine.keeper.verify_signature())


def test_that_it_was_given_out_is_in_the_trail(service: CheckpointService, tmp_path: Path) -> None:
    service.subject_export.write("alice", tmp_path / "out")
    [told] = service.audit.query_events(event_types=[AuditType.SUBJECT_EXPORTED])
    assert told.facts["subject"] == service.subjects.pseudonym("alice")


def test_nobody_is_given_what_is_not_known(service: CheckpointService, tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFoundError, match="nothing is known"):
        service.subject_export.write("carol", tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ConfigError, match="must be empty"):
        service.subject_export.write("alice", tmp_path / "full")
