"""Commands are values, and what a caller may say fits into them."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.commands import AppendEvent, CheckpointOptions, CreateCheckpoint, check_options
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import InvalidIdError, InvalidStateError
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


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_retries": "many"},
        {"max_retries": None},
        {"max_retries": -1},
        {"expected_sequence": "1"},
        {"expected_sequence": True},
        {"append_only": "log"},
        {"dependent_checkpoint_ids": None},
        {"stage_state": "running"},
        {"agent_state": ["a"]},
        {"note": "ab"},
        {"agent_version": 2},
        {"resume_handler": ["h"]},
    ],
)
@pytest.mark.parametrize("redact", [True, False])
def test_what_does_not_fit_an_option_is_refused_by_its_name(wrong: Any, redact: bool) -> None:
    (name,) = wrong
    with bootstrap.open("memory:", redact=redact) as service:
        with pytest.raises((InvalidStateError, InvalidIdError), match=name):
            service.create_checkpoint("W", {"a": 1}, **wrong)
        assert service.workflows() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"cp_seq": "1"},
        {"cp_seq": '1,"cost":{}'},
        {"cp_seq": True},
        {"cost": {"usd": {"$hf": "bytes", "v": "!"}}},
        {"cost": {1: 2}},
        {"cost": {"usd": Decimal("0.1")}},
        {"cost": "dear"},
        {"data": "ab"},
        {"data": [("a", 1)]},
        {"type": 1},
        {"agent_id": ["a"]},
        {"step_id": 7},
    ],
)
@pytest.mark.parametrize("redact", [True, False])
def test_what_does_not_fit_an_event_is_refused_before_it_makes_the_others_unreadable(
    wrong: Any, redact: bool
) -> None:
    (name,) = wrong
    with bootstrap.open("memory:", redact=redact) as service:
        service.append_event("W", "STEP", {"n": 1}, cp_seq=0, cost={"usd": 0.5, "tokens": 3, "of": "a"})
        with pytest.raises((InvalidStateError, InvalidIdError), match=name):
            service.append_event("W", **{"type": "STEP", **wrong})
        [event] = service.events("W")
    assert event.cost == {"usd": 0.5, "tokens": 3, "of": "a"}


@pytest.mark.parametrize(
    "said", [{"note": {"why": "asked"}}, {"max_retries": 7}, {"parent_checkpoint_id": "W@1"}]
)
def test_what_is_said_of_an_unchanged_state_is_not_dropped(tmp_path: Path, said: Any) -> None:
    for url in ("memory:", f"file:{tmp_path}"):
        with bootstrap.open(url) as service:
            service.create_checkpoint("W", {"a": 1})
            service.create_checkpoint("W", {"a": 2})
            assert service.create_checkpoint("W", {"a": 2}, **said).sequence == 3
            again = service.create_checkpoint("W", {"a": 2}, **said).sequence
            assert again == (4 if "note" in said else 3)
    with bootstrap.open(f"file:{tmp_path}") as service:
        made = service.create_checkpoint("W", {"a": 2}, **said).sequence
        assert made == (5 if "note" in said else 3)
