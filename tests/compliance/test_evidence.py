"""One command gives the evidence, and gives it again to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from holdfast.adapters.crypto.signing import verify
from holdfast.application.audit.processing_register import write_annotations
from holdfast.application.audit.reporting import Reports
from holdfast.domain.note import parse_vkey
from holdfast.domain.tlogproof import parse_tlog_proof, verify_tlog_proof
from tests.compliance.openings import entries, open_service


def holdfast(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Call the command line as a user does."""
    command = [sys.executable, "-m", "holdfast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ, check=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(url: str) -> None:
    with open_service(url) as service:
        service.create_checkpoint("WF-1", {"n": 1})
        service.record_decision("WF-1", "take B", rationale="it is cheap", agent_id="planner")
        service.append_event("WF-1", "APPROVAL_GRANTED", {"approver": "u-1"})
        service.load_latest("WF-1")
        service.audit.keeper.anchor(create_key=True)


def test_the_evidence_pack_is_one_command_and_reproducible(url, tmp_path):
    fill(url)
    pack = ["audit", "report", "--store", url, "--pack", "soc2", "--pack", "gdpr", "--pack", "ai-act"]
    holdfast(*pack, "--out", tmp_path / "first")
    index = json.loads((tmp_path / "first" / "index.json").read_text())
    size = index["horizon"]["size"]
    before = len(entries(url))
    holdfast(*pack, "--at", str(size), "--out", tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    # Each run is itself told: that is what the horizon leaves out.
    assert len(entries(url)) > before


def test_each_control_has_its_query_its_result_and_a_proof_that_holds(url, tmp_path):
    fill(url)
    holdfast("audit", "report", "--store", url, "--pack", "ai-act", "--out", tmp_path / "pack")
    files = contents(tmp_path / "pack")
    keys = [parse_vkey(line) for line in files["vkeys"].decode().splitlines()]
    decisions = json.loads(files["controls/ai-act-art13.json"])
    assert decisions["query"]["types"] == ["AGENT_DECISION"] and decisions["result"]["entries"] == 1
    [shown] = decisions["shown"]
    assert shown["entry"] == "s-1#3"
    proof = parse_tlog_proof(files[shown["proof"]])
    verify_tlog_proof(proof, files[shown["line"]], keys, verify)


def test_the_register_of_processing_is_made_from_the_store(url, tmp_path):
    said = {
        "controller": {"name": "Example GmbH", "contact": "privacy@example.com"},
        "activities": [
            {
                "name": "Offers",
                "purposes": ["to compare offers"],
                "subjects": ["suppliers"],
                "data": ["contact data"],
                "recipients": ["purchasing"],
                "workflows": ["WF-*"],
            }
        ],
    }
    fill(url)
    with open_service(url, "s-2") as service:
        engine = service._engine
        write_annotations(engine.kit.store, engine.trail, said)
        Reports(engine.kit, engine.keeper, engine.audit.trust()).pack(tmp_path / "pack")
    register = json.loads((tmp_path / "pack" / "register.json").read_text())
    assert register["activities"][0]["purposes"] == ["to compare offers"]
    assert register["activities"][0]["workflows_now"] == 1
    assert register["time_limits"]["trail_days_min"] == 183
    assert set(register["measures"]) == {"encryption", "redaction", "recording", "holds"}
    assert register["missing"] == []
