"""What is measured of saving, restoring, recovering and verifying, and the spans that show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from holdfast.application.observing import NO_SPAN, spanned
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
)
from holdfast.domain.telemetry import FoundBy
from tests.application.services import make_kit
from tests.application.watched import Collected, Heard, watched_kit, watched_service
from tests.damage import Spoiler


def test_a_save_is_a_span_of_whoever_asked_for_it() -> None:
    heard, collected = Heard(), Collected()
    with watched_service(heard, collected) as service, collected.tracer.start_as_current_span("work") as work:
        service.create_checkpoint("W", {"a": 1})
        service.create_checkpoint("W", {"a": 2}, wait=False).result()
    first, second = collected.named("holdfast.save")
    assert first.attributes is not None and first.parent is not None
    assert first.attributes["holdfast.checkpoint"] == "W@1" and first.attributes["holdfast.outcome"] == "ok"
    assert first.parent.span_id == work.get_span_context().span_id
    assert second.parent is not None and second.parent.span_id == first.parent.span_id
    assert heard.saves[0].trace_id == f"{work.get_span_context().trace_id:032x}"


def test_a_span_tells_what_went_wrong_by_its_kind_alone() -> None:
    collected = Collected()
    service = watched_service(collected=collected)
    with pytest.raises(CheckpointConflictError):
        service.create_checkpoint("W", {"password": "hunter2-hunter2"}, expected_sequence=5)
    [span] = collected.named("holdfast.save")
    assert span.status.status_code is StatusCode.ERROR and span.status.description is None
    assert span.attributes is not None and span.attributes["error.type"] == CheckpointConflictError.code
    assert "hunter2" not in span.to_json() and not span.events


def test_restoring_is_a_span_and_damage_is_counted(tmp_path: Path) -> None:
    spoiler, heard, collected = Spoiler("memory", tmp_path), Heard(), Collected()
    spoiler.fill(3)
    spoiler.spoil_record(3)
    service = watched_service(heard, collected, store=spoiler.memory)
    assert service.restore_checkpoint("WF@2").context["n"] == 1
    with pytest.raises(CheckpointCorruptError):
        service.restore_checkpoint("WF@3")
    good, bad = collected.named("holdfast.restore")
    assert good.status.status_code is StatusCode.UNSET and bad.status.status_code is StatusCode.ERROR
    assert heard.failures == [FoundBy.RESTORE]


def test_a_checkpoint_in_quarantine_is_not_found_damaged_again(tmp_path: Path) -> None:
    spoiler, heard = Spoiler("memory", tmp_path), Heard()
    spoiler.fill(3)
    spoiler.spoil_record(3)
    service = watched_service(heard, store=spoiler.memory)
    service.recover_workflow("WF")
    with pytest.raises(CheckpointCorruptError):
        service.restore_checkpoint("WF@3")
    assert heard.failures == [FoundBy.RECOVERY]


def test_verifying_is_a_span_and_failures_are_counted(tmp_path: Path) -> None:
    spoiler, heard, collected = Spoiler("memory", tmp_path), Heard(), Collected()
    spoiler.fill(3)
    spoiler.spoil_record(3)
    service = watched_service(heard, collected, store=spoiler.memory)
    assert service.validate_checkpoint("WF@2") and not service.validate_checkpoint("WF@3")
    assert service.audit.verify().fault_count == 0
    assert len(collected.named("holdfast.verify")) == 3
    assert heard.failures == [FoundBy.VALIDATION]


def test_a_trail_that_does_not_verify_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    service = watched_service(heard)
    service.create_checkpoint("W", {"a": 1})
    service.flush()
    store = service._engine.kit.store
    spoilt = [line.replace(b"CHECKPOINT_CREATED", b"CHECKPOINT_DELETED") for line in store.leaves()]
    monkeypatch.setattr(store, "leaves", lambda after=0: iter(spoilt[after:]))
    assert service.audit.verify().fault_count > 0
    assert heard.failures == [FoundBy.TRAIL]


def test_without_anybody_there_is_no_span() -> None:
    with spanned(make_kit(), "holdfast.verify", {}) as span:
        assert span is NO_SPAN
        span.note({"a": 1})
        span.link("00-" + "1" * 32 + "-" + "2" * 16 + "-01")
        span.end()
    assert span.trace_id == span.traceparent == ""


def test_an_error_of_a_block_ends_its_span() -> None:
    collected = Collected()
    with pytest.raises(CheckpointError), spanned(watched_kit(collected=collected), "holdfast.verify", {}):
        raise CheckpointNotFoundError("there is none")
    [span] = collected.spans
    assert span.attributes == {"error.type": CheckpointNotFoundError.code}


def test_whoever_only_traces_needs_no_observer() -> None:
    collected = Collected()
    with CheckpointService(watched_kit(collected=collected)) as service:
        service.create_checkpoint("W", {"a": 1})
        assert service.recover_workflow("W")
        service.prune_checkpoints("W")
    assert [span.name for span in collected.spans] == ["holdfast.save", "holdfast.recover"]
