"""Commands are values, and what a caller may say fits into them."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.commands import AppendEvent, CheckpointOptions, CreateCheckpoint, check_options
from holdfast.domain.checkpoint import CheckpointType
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


def test_a_command_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        AppendEvent("W", "STEP").type = "OTHER"  # type: ignore[misc]


def test_every_option_has_its_place_in_the_command() -> None:
    renamed = {"parent_checkpoint_id": "parent_uuid", "dependent_checkpoint_ids": "dependent_uuids"}
    places = {item.name for item in fields(CreateCheckpoint)}
    assert {renamed.get(name, name) for name in CheckpointOptions.__annotations__} <= places


def test_a_command_needs_only_workflow_fields_and_type() -> None:
    command = CreateCheckpoint("W", {}, CheckpointType.WORKFLOW_START)
    assert (command.force, command.max_retries, command.append_only) == (False, 3, frozenset())


def test_an_option_that_there_is_not_is_told_by_the_name_of_the_call() -> None:
    said = r"create_checkpoint\(\) got an unexpected keyword argument 'agent'; did you mean 'agent_id'\?"
    wrong: Any = {"agent": "a"}
    with make_service(FailingStore()) as service, pytest.raises(TypeError, match=said):
        service.create_checkpoint("W", {}, **wrong)
    asyncio.run(_refuse(wrong, said))
    unlike: Any = {"xyz": 1}
    with pytest.raises(TypeError, match=r"argument 'xyz'$"):
        check_options(unlike)


async def _refuse(wrong: Any, said: str) -> None:
    async with AsyncCheckpointService(make_kit(FailingStore())) as service:
        with pytest.raises(TypeError, match=said):
            await service.create_checkpoint("W", {}, **wrong)
