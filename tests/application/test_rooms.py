"""Both faces hand out the same rooms, over the same engine."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.rooms import Rooms
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit

NAMES = [
    "audit",
    "erasure",
    "holds",
    "keys",
    "partial_failures",
    "progress",
    "quarantine",
    "recording",
    "replaying",
    "requests",
    "sessions",
    "subject_export",
    "subjects",
    "tokens",
    "upgrades",
]


def test_every_room_is_named_here() -> None:
    assert sorted(name for name, found in vars(Rooms).items() if isinstance(found, property)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_both_faces_hand_out_the_same_kind_of_room(name: str) -> None:
    async def room_of_async() -> object:
        async with AsyncCheckpointService(make_kit()) as service:
            return getattr(service, name)

    with CheckpointService(make_kit()) as service:
        assert type(getattr(service, name)) is type(asyncio.run(room_of_async()))
