"""Forks with another state: what does not fit is refused before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.edited_forks import check_free, edited_state, fork_edited, is_taken
from holdfast.application.reading import Reader
from holdfast.application.service import CheckpointService
from holdfast.application.travel.travelling import Point, TimeTravel
from holdfast.domain.errors import CheckpointConflictError, InvalidStateError
from holdfast.domain.json_patch import EditError, Step
from holdfast.domain.state import WorkflowState
from tests.application.services import make_service


@pytest.fixture
def service() -> CheckpointService:
    service = make_service()
    service.create_checkpoint("old", {"n": 1})
    return service


def point(service: CheckpointService) -> Point:
    kit = service._engine.kit
    return TimeTravel(kit, None, Reader(kit)).at("old@1")


def edited(service: CheckpointService, *steps: Step) -> WorkflowState:
    return edited_state(service._engine.kit, point(service), "new", steps)


def test_the_changed_state_is_the_second_checkpoint(service: CheckpointService) -> None:
    state = edited(service, Step("replace", "/context/n", 2))
    made = fork_edited(service, "old@1", "new", state)
    assert str(made) == "new@2"
    assert service.restore_checkpoint("new@1").context == {"n": 1}
    assert service.restore_checkpoint("new@2").context == {"n": 2}


def test_one_that_is_changed_to_what_it_was_has_a_second_checkpoint_too(service: CheckpointService) -> None:
    made = fork_edited(service, "old@1", "new", edited(service, Step("replace", "/context/n", 1)))
    assert made.sequence == 2


def test_what_holds_its_default_can_be_changed(service: CheckpointService) -> None:
    assert edited(service, Step("add", "/messages/-", "hello")).messages == ["hello"]


@pytest.mark.parametrize(
    "step",
    [
        Step("replace", "/session_id", "other"),
        Step("replace", "/messages", "none"),
        Step("add", "/phase", -1),
        Step("add", "/phase", "one"),
    ],
)
def test_what_is_no_state_is_refused(service: CheckpointService, step: Step) -> None:
    with pytest.raises(InvalidStateError, match="this is no state"):
        edited(service, step)


def test_an_edit_that_does_not_fit_is_named(service: CheckpointService) -> None:
    with pytest.raises(EditError) as refused:
        edited(service, Step("put", "/context/n", 2), Step("put", "/nowhere/x", 1))
    assert refused.value.index == 1


@pytest.mark.parametrize("begin", ["create_checkpoint", "append_event"])
def test_a_name_is_taken_by_a_checkpoint_or_an_event(service: CheckpointService, begin: str) -> None:
    store: Any = service._engine.kit.store
    check_free(store, "new")
    assert not is_taken(store, "new")
    if begin == "append_event":
        service.append_event("new", "NOTED", {})
    else:
        service.create_checkpoint("new", {})
    with pytest.raises(CheckpointConflictError):
        check_free(store, "new")
