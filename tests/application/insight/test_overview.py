from __future__ import annotations

from typing import Any

import pytest

from holdfast import RunOptions
from holdfast.application.insight import overview as overview_module
from holdfast.application.insight.overview import NeedAction, NeedKind, overview
from holdfast.application.insight.runs import RunBook
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import AgentFailedError, CheckpointCorruptError
from tests.application.insight.test_runs import Counting, asking, failing, working
from tests.application.services import make_kit


def test_an_overview_counts_and_tells_what_needs_somebody() -> None:
    kit = make_kit()
    service, book = CheckpointService(kit), RunBook(kit)
    working().run_sync(service, "done")
    asking().run_sync(service, "my run", options=RunOptions(waits=False))
    with pytest.raises(AgentFailedError):
        failing().run_sync(service, "failed")
    service.mark_failed(service.create_checkpoint("plain", {}), "no fuel")
    service.create_checkpoint("cancelled", {})
    service.append_event("cancelled", "RUN_UPDATED", {"fields": {"status": "cancelled"}}, step_id="run")
    service.create_checkpoint("live", {})
    service.acquire_lease("live", "somebody")
    seen = overview(kit, book)
    counts = {name: count for name, count in seen.counts.items() if count}
    assert counts == {"completed": 1, "waiting": 1, "failed": 2, "cancelled": 1, "running": 1}
    assert set(seen.counts) == {
        "running",
        "waiting",
        "paused",
        "crashed",
        "failed",
        "cancelled",
        "completed",
        "idle",
        "empty",
        "unreadable",
    }
    assert [(need.kind, need.workflow_id, need.action, need.command) for need in seen.needs] == [
        (NeedKind.FAILED, "plain", NeedAction.RECOVER, "holdfast recover --store=memory: plain"),
        (NeedKind.FAILED, "failed", NeedAction.RESUME, "holdfast resume --store=memory: failed"),
        (NeedKind.WAITING, "my run", NeedAction.APPROVE, "holdfast approve --list --store=memory: 'my run'"),
    ]
    assert [row.workflow_id for row in seen.live] == ["live"]
    assert (seen.store, seen.is_read_only) == ("memory:", False)


def test_what_lies_in_quarantine_needs_somebody_until_it_is_released() -> None:
    kit = make_kit()
    service, book = CheckpointService(kit), RunBook(kit)
    service.create_checkpoint("W", {})
    kept = service.quarantine.put("W", 1, "it looks odd")
    [need] = overview(kit, book).needs
    assert (need.kind, need.checkpoint, need.action) == (NeedKind.QUARANTINED, "W@1", NeedAction.QUARANTINE)
    assert need.command == f"holdfast quarantine show --store=memory: {kept.name}"
    service.quarantine.release(kept.name, "it was fine")
    assert overview(kit, book).needs == []


def test_what_cannot_be_read_needs_a_look_at_the_store() -> None:
    store = Counting(make_kit().store)
    kit = make_kit(store=store)
    service, book = CheckpointService(kit), RunBook(kit)
    service.create_checkpoint("W", {})
    store.damaged = {"lease of W"}
    [need] = overview(kit, book).needs
    assert (need.kind, need.action) == (NeedKind.UNREADABLE, NeedAction.NONE)
    assert need.command == "holdfast doctor --store=memory:" and "the lease is damaged" in need.reason


def test_what_was_recovered_and_not_resumed_needs_somebody_still() -> None:
    kit = make_kit()
    service, book = CheckpointService(kit), RunBook(kit)
    for name in ("ours", "plain"):
        service.create_checkpoint(name, {})
    service.append_event("ours", "RUN_UPDATED", {"fields": {"status": "in_progress"}}, step_id="run")
    for name in ("ours", "plain"):
        CheckpointService(kit).acquire_lease(name, "worker-1", ttl_seconds=0)
    assert {(need.kind, need.owner) for need in overview(kit, book).needs} == {(NeedKind.CRASHED, "worker-1")}
    for name in ("ours", "plain"):
        service.recover_workflow(name)
    needs = sorted(overview(kit, book).needs, key=lambda need: str(need.workflow_id))
    assert [(need.kind, need.workflow_id, need.action, need.command) for need in needs] == [
        (NeedKind.RECOVERED, "ours", NeedAction.RESUME, "holdfast resume --store=memory: ours"),
        # No plan of ours tells how that one goes on: its own program does.
        (NeedKind.RECOVERED, "plain", NeedAction.NONE, "holdfast show --store=memory: plain"),
    ]
    service.append_event("ours", "RUN_UPDATED", {"fields": {"status": "in_progress"}}, step_id="run")
    service.create_checkpoint("plain", {"n": 1})
    assert overview(kit, book).needs == []


def test_reports_that_cannot_be_read_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(store: Any) -> Any:
        raise CheckpointCorruptError("no listing")

    monkeypatch.setattr(overview_module, "reports", damaged)
    kit = make_kit()
    [need] = overview(kit, RunBook(kit)).needs
    assert (need.kind, need.reason) == (NeedKind.QUARANTINED, "the reports cannot be read: no listing")
