"""Stores that were written before states had versions are read as before, continued and migrated."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.application.app import App
from holdfast.application.service import CheckpointService
from tests.application.versions import app_of, stored

FIXTURES = Path(__file__).with_name("fixtures") / "format_1"


@pytest.fixture(params=["file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Copy a store of the past to where it may be written."""
    if request.param == "file":
        shutil.copytree(FIXTURES / "store", tmp_path / "store")
        return f"file:{tmp_path / 'store'}"
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.executescript((FIXTURES / "store.sql").read_text(encoding="utf-8"))
    connection.close()
    return f"sqlite:{tmp_path / 'store.db'}"


def open_store(url: str, app: App | None = None) -> CheckpointService:
    return holdfast.open(url, app=app, background=False, retain=False, create=False)


def context_of(n: int) -> dict[str, Any]:
    return {"plan": "ask, decide", "n": n, "due": date(2026, 1, 11 + n), "pad": "x" * 40 * n}


def test_the_fixtures_are_as_they_were_written() -> None:
    """Whoever changes them changes what this module proves."""
    files = sorted(path for path in FIXTURES.rglob("*") if path.is_file() and path.name != "README.md")
    sums = [f"{path.relative_to(FIXTURES)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    assert (
        hashlib.sha256("\n".join(sums).encode()).hexdigest()
        == "f3eb3bb56cab276e0bbcb8dca4f78b63878b0d1bccaf4dec739997c08c56ae80"
    )


def test_every_state_and_event_is_read_as_before(url: str) -> None:
    with open_store(url) as service:
        assert service.workflows() == ["WF-1", "WF-2"]
        for n in range(6):
            state = service.restore_checkpoint(f"WF-1@{n + 1}")
            assert state.context == context_of(n)
            assert state.messages == [{"role": "user", "content": f"message {m}"} for m in range(n)]
            assert state.extra == {"novel": {"kept": True}}
        latest = service.load_latest("WF-1")
        assert latest is not None and latest.context == {"plan": "act", "n": 6}
        events = [event.type for event in service.events("WF-1")]
        assert events[6:] == ["TASK_ASSIGNED", "DECISION_RECORDED", "CHECKPOINT_CREATED"]
        assert {meta.schema_version for meta in service.list_checkpoints("WF-1")} == {"1.0.0"}
        for meta in service.list_checkpoints("WF-1"):
            assert service.validate_checkpoint(meta.id).problems == ()
        assert service.audit.verify_chain_integrity("s-1") == (True, None)


def test_a_state_that_was_last_is_still_the_last_one(url: str) -> None:
    """Nothing new is recorded by a program without versions just because versions came."""
    with open_store(url) as service:
        state = service.load_latest("WF-2")
        assert state is not None
        assert service.create_checkpoint("WF-2", state).sequence == 1


def test_the_next_checkpoint_of_a_new_version_is_a_change_on_top_of_the_old_one(url: str) -> None:
    with open_store(url, app_of("1.1.0")) as service:
        before = stored(service, "WF-1")
        state = service.load_latest("WF-1")
        assert state is not None and state.context == {"steps": ["act"], "n": 6}
        made = service.create_checkpoint("WF-1", state)
        assert made.sequence == 8
        assert stored(service, "WF-1", last=7)[:2] == before[:2]
        assert service.restore_checkpoint("WF-1@8").context == {"steps": ["act"], "n": 6}
        assert service.restore_checkpoint("WF-1@3").context["steps"] == ["ask", "decide"]
    with open_store(url) as service:
        assert service.restore_checkpoint("WF-1@3").context == context_of(2)


def test_a_whole_store_of_the_past_is_migrated(url: str) -> None:
    with open_store(url, app_of("2.0.0")) as service:
        done = {one.workflow_id: one.checkpoint_id for one in service.upgrades.apply()}
        assert {name: made and made.sequence for name, made in done.items()} == {"WF-1": 8, "WF-2": 2}
    with open_store(url, App(schema_version="2.0.0")) as service:
        state = service.load_latest("WF-2")
        assert state is not None and state.context == {"steps": {"rest": {"done": False}}}
