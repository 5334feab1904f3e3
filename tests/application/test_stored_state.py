"""A state that is remembered and one that is read back answer the same, part by part."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.application.nodes import KEPT, Patch
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointNotFoundError, InvalidStateError, UnsupportedTypeError
from holdfast.domain.state import WorkflowState
from tests.application.services import make_service

W = "WF-1"
LARGE = [{"n": number, "text": "t" * 60} for number in range(200)]


def recorded(service: CheckpointService, sequence: int, *path: str) -> tuple[Any, Any]:
    """Answer a part of a state as it is remembered, and as it is read back."""
    remembered = service.recording.state(W, sequence).at(*path)
    service._engine.writer.forget(W)
    return remembered, service.recording.state(W, sequence).at(*path)


@pytest.mark.parametrize("path", [(), ("context",), ("context", "list"), ("context", "when"), ("messages",)])
def test_what_is_remembered_is_what_is_read_back(path: tuple[str, ...]) -> None:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    with make_service() as service:
        state = WorkflowState(W, messages=LARGE, context={"list": LARGE, "when": when, "few": (1, 2)})
        service.create_checkpoint(W, state)
        remembered, read = recorded(service, 1, *path)
        if path:
            assert remembered == read is not None
        else:
            assert remembered["context"] == read["context"] == state.context


def test_what_is_not_there_is_nothing() -> None:
    with make_service() as service:
        service.create_checkpoint(W, {"a": 1})
        assert recorded(service, 1, "context", "b") == (None, None)
        assert recorded(service, 1, "stage_states", "b") == (None, None)
        with pytest.raises(CheckpointNotFoundError):
            service.recording.state(W, 2)


def test_each_answer_is_the_callers_own() -> None:
    with make_service() as service:
        service.create_checkpoint(W, {"list": LARGE})
        state = service.recording.state(W, 1)
        state.at("context", "list").clear()
        assert state.at("context", "list") == LARGE


def test_an_older_checkpoint_is_read_back_though_a_newer_one_is_remembered() -> None:
    with make_service() as service:
        service.create_checkpoint(W, {"a": 1})
        service.create_checkpoint(W, {"a": 2})
        assert [service.recording.state(W, number).at("context", "a") for number in (1, 2)] == [1, 2]


def test_reading_a_state_is_told_in_the_trail() -> None:
    with make_service() as service:
        service.create_checkpoint(W, {"a": 1})
        service.recording.state(W, 1)
        service.flush()
        told = [entry.type for entry in service.audit.query_events(workflow=W)]
    assert told[-1] == "STATE_RESTORED"


# -- patches -----------------------------------------------------------------------------------------


def patched(first: dict[str, Any], patch: Patch) -> Any:
    """Record a state, patch its context, and answer the context that is read back."""
    with make_service() as service:
        service.create_checkpoint(W, WorkflowState(W, messages=LARGE, context=first))
        state = WorkflowState(W)
        state.messages, state.context = KEPT, patch  # type: ignore[assignment]
        service.create_checkpoint(W, state)
        restored = service.restore_checkpoint(f"{W}@2")
        assert restored.messages == LARGE
        return restored.context


@pytest.mark.parametrize("size", [1, 500], ids=["a leaf", "parts"])
def test_a_patch_keeps_what_it_names_says_what_is_new_and_drops_the_rest(size: int) -> None:
    before = {"kept": "k" * size * 20, "said": "s" * size, "gone": 1, "tag": (1, 2)}
    found = patched(before, Patch({"said": 2, "new": [3]}, ("kept", "tag")))
    assert found == {"kept": before["kept"], "said": 2, "tag": (1, 2), "new": [3]}
    assert list(found) == ["kept", "said", "tag", "new"]


def test_patches_may_be_inside_of_each_other() -> None:
    before = {"inner": {"a": LARGE, "b": 1}, "other": 1}
    found = patched(before, Patch({"inner": Patch({"b": 2}, ("a",))}))
    assert found == {"inner": {"a": LARGE, "b": 2}}


@pytest.mark.parametrize("patch", [Patch({}, ("absent",)), Patch({"a": Patch({}, ("x",))})])
def test_what_was_not_there_cannot_stay(patch: Patch) -> None:
    with pytest.raises(InvalidStateError, match="stay as it was"):
        patched({"a": 1}, patch)


def test_a_workflow_without_a_state_cannot_be_patched() -> None:
    state = WorkflowState(W)
    state.messages = KEPT  # type: ignore[assignment]
    with make_service() as service:
        with pytest.raises(InvalidStateError):
            service.create_checkpoint(W, state)
        assert service.workflows() == []


def test_a_patch_that_keeps_nothing_is_what_it_says() -> None:
    state = WorkflowState(W)
    state.context = Patch({"a": 1})  # type: ignore[assignment]
    with make_service() as service:
        service.create_checkpoint(W, state)
        assert service.restore_checkpoint(W).context == {"a": 1}


def test_the_place_of_what_cannot_be_stored_is_named_inside_of_a_patch() -> None:
    with pytest.raises(UnsupportedTypeError) as caught:
        patched({"a": 1}, Patch({"inner": Patch({"b": [object()]})}, ("a",)))
    assert "context.inner.b[0]" in str(caught.value)


# -- notes and keeping -------------------------------------------------------------------------------


def test_a_note_is_told_by_the_event_of_a_checkpoint() -> None:
    with make_service() as service:
        service.create_checkpoint(W, {"a": 1}, note={"who": ("a", "b")})
        (event,) = service.events(W)
    assert (event.type, event.cp_seq, event.data) == ("CHECKPOINT_CREATED", 1, {"who": ("a", "b")})


def test_only_what_is_named_stays_and_its_state_is_whole() -> None:
    with make_service() as service:
        for number in range(1, 31):
            service.create_checkpoint(W, {"list": LARGE[:number], "n": number})
        removed = service.recording.keep_only(W, {10, 30})
        assert len(removed.removed) == 28 and removed.freed_bytes > 0
        assert [meta.id.sequence for meta in service.list_checkpoints(W)] == [30, 10]
        assert [service.restore_checkpoint(f"{W}@{n}").context["n"] for n in (10, 30)] == [10, 30]
        service.create_checkpoint(W, {"n": 31})
        assert service.restore_checkpoint(W).context == {"n": 31}


def test_the_newest_state_is_found_without_its_number() -> None:
    with make_service() as service:
        assert service.recording.newest_state(W) is None
        service.create_checkpoint(W, {"a": 1})
        newest = service.recording.newest_state(W)
        assert newest is not None and newest.at("context", "a") == 1


@pytest.mark.parametrize(("value", "packs"), [({"a": [1, (2,)]}, True), ({"a": object()}, False)])
def test_whether_a_value_can_be_stored_is_told(value: Any, packs: bool) -> None:
    with make_service() as service:
        assert service.recording.packs(value) is packs
