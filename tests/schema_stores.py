"""A plain and an encrypted store with a bit of everything in them, and whatever Holdfast writes beside."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import holdfast
from holdfast.application.app import App
from holdfast.application.progress_files import ProgressFiles
from holdfast.application.recovery.quarantining import Quarantine
from holdfast.application.recovery_files import RecoveryFiles
from holdfast.application.resolve import resolve
from holdfast.application.service import CheckpointService
from holdfast.application.sessions.working_sessions import WorkingSessions
from holdfast.cli.main import main
from holdfast.domain.personal import Personal
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.state import WorkflowState
from tests.encrypted import OLD_KEY
from tests.server.served import application, caller_for

BLOB_BYTES = 2048


def make_everything(folder: Path) -> None:
    """Fill a folder with two stores, copies, exports, reports and packs."""
    _plain_store(folder)
    _sealed_store(folder)
    _encoded_stores(folder)
    os.chmod(folder, 0o700)


def call(*args: object) -> None:
    """Call the command line; it must succeed."""
    assert main([*map(str, args), "--quiet"]) == 0, args


def _open(url: str, **settings: Any) -> CheckpointService:
    given = {"background": False, "retain": False, "warn_bytes": 8 * 1024 * 1024, **settings}
    given |= {"blob_threshold_bytes": BLOB_BYTES, "journal_bytes": 4 * 1024 * 1024}
    return holdfast.open(url, session="s-1", actor="ann", **given)


def _plain_store(folder: Path) -> None:
    url = f"{folder / 'plain'}"
    with _open(url) as service:
        _fill(service)
        service.subjects.declare("WF-1", "ann@example.com")
        service.holds.place(workflow_id="WF-1", reason="case 7")
        service.tokens.create("ann", ["viewer"])
        service.prune_checkpoints("WF-2", 1, 0)
        service.audit.set_register({"controller": {"name": "Reef"}, "activities": [{"name": "answering"}]})
        _care(service)
    _ask_server(url)
    with _open(url, app=App(schema_version="1.1.0")) as newer:
        newer.create_checkpoint("WF-1", {"shape": "another"})
    call("audit", "anchor", "--store", url)
    call("audit", "export", folder / "export", "--store", url)
    call("audit", "export", folder / "session", "--session", "s-1", "--store", url)
    (folder / "report").mkdir()
    call(
        "audit",
        "report",
        "--session",
        "s-1",
        "--format",
        "jsonl",
        "--out",
        folder / "report" / "report.jsonl",
        "--store",
        url,
    )
    call("audit", "report", "--pack", "soc2", "--out", folder / "pack", "--store", url)
    call("copy", url, folder / "copy")


def _sealed_store(folder: Path) -> None:
    url = f"{folder / 'sealed'}"
    with _open(url, encrypt=True, encryption_key=f"command:echo {OLD_KEY.hex()}") as service:
        _fill(service)
        service.create_checkpoint("WF-1", {"who": Personal("ann@example.com", "Ann")})
        service.append_event("WF-1", "SAID", {"who": Personal("ann@example.com", "Ann")})
        service.subjects.declare("WF-1", "ann@example.com")
        service.subject_export.write("ann@example.com", folder / "subject")
        service.subjects.declare("WF-1", "ben@example.com")
        service.subject_export.write("ann@example.com", folder / "shared")
        service.erasure.workflow("WF-2", reason="asked for")
        _care(service)
    _ask_server(url, encryption_key=f"command:echo {OLD_KEY.hex()}")


def _ask_server(url: str, **settings: Any) -> None:
    """Let a server do something under a key, and refuse something under another."""
    with application(url, **settings) as (client, desk):
        ask = caller_for(client, desk)
        assert ask("POST", "/v1/holds", json={"workflow_id": "WF-2", "reason": "case 8"}).status_code == 201
        assert ask("POST", "/v1/holds/00000000/release", json={"reason": "none"}).status_code == 404


def _encoded_stores(folder: Path) -> None:
    for mode in ("performance", "compliance"):
        with _open(f"{folder / mode}", mode=mode) as service:
            service.create_checkpoint("WF-1", {"text": "words " * 200})
    with _open(f"{folder / 'large'}", redact=False) as service:
        service.create_checkpoint("WF-1", {})
        service.create_checkpoint("WF-1", {"noise": _noise()})


def _fill(service: CheckpointService) -> None:
    for name in ("WF-1", "WF-2"):
        for number in range(30):
            state = WorkflowState(
                session_id="s-1",
                phase=number % 3,
                context={"n": number, "pad": str(number) * 300, "password": "hunter2-and-more"},
                messages=[{"role": "user", "content": "hello"}] * number,
            )
            service.create_checkpoint(name, state)
    service.create_checkpoint("WF-1", {"large": "word " * BLOB_BYTES})
    service.create_checkpoint(
        "WF-1",
        {"large": "word " * BLOB_BYTES, "more": 1},
        stage_id="research",
        agent_id="worker-1",
        stage_state={"a": 1},
        agent_state={"b": 2},
        agent_version="2.1.0",
        resume_handler="app.resume",
        max_retries=5,
        parent_checkpoint_id="WF-1@1",
        dependent_checkpoint_ids=["WF-1@2"],
    )
    service.fork_workflow("WF-1@3", "WF-3")
    service.append_event(
        "WF-1",
        "TASK",
        {"task": "T-1"},
        agent_id="a",
        step_id="s-4",
        parent_id="s-1",
        cp_seq=1,
        cost={"usd": 1},
    )
    service.record_decision("WF-1", "ask two", rationale="they differ", confidence=0.9)
    service.release_lease(service.acquire_lease("WF-1", "worker-1"))


def _noise() -> list[str]:
    """Give more than a line may hold, in pieces too small for blobs, that hardly get smaller."""
    source = Random(7)
    return [source.randbytes(950).hex() for _ in range(1_500)]


def _care(service: CheckpointService) -> None:
    """Leave what recovery, sessions and quarantine leave."""
    engine = service._engine
    parts = (engine.kit, engine.trail, engine.writer, engine.reader)
    quarantine = Quarantine(*parts)
    quarantine.put("WF-3", 1, "for a test")
    sessions = WorkingSessions(*parts, engine.wait)
    sessions.open_session(
        "s-2", agent={"id": "planner", "version": "1", "family": "f"}, workflow_ids=["WF-1"]
    )
    sessions.hand_off("s-2", "worker", "half done", {"next": "ask"})
    sessions.resume_session("s-2", "s-3")
    service.requests.put("WF-1", "approval", reason="looks right", data={"granted": True, "name": "send"})
    reported = service.append_event("WF-1", REPORT_EVENT, {"title": "Offers", "summary": "three"})
    ProgressFiles(engine.kit).append(reported)
    files = RecoveryFiles(engine.kit, engine.trail)
    found = resolve(engine.kit.store, "WF-1@2")
    files.record(["WF-1"], files.failure_of(found, "app.resume", "ValueError", "it broke", 1))
