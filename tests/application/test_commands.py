"""Commands are values, and what a caller may say fits into them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from holdfast.application.commands import AppendEvent, CheckpointOptions, CreateCheckpoint
from holdfast.domain.checkpoint import CheckpointType


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
