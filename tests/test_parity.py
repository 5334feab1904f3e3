"""Both faces of the service offer the same operations with the same arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from holdfast import bootstrap
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.rooms import Rooms
from holdfast.application.service import CheckpointService


def operations(face: type) -> set[str]:
    """Name the calls of a face; rooms are the same objects behind both."""
    shared = vars(Rooms)
    named = (name for name in dir(face) if name not in shared and not name.startswith("_"))
    return {name for name in named if callable(getattr(face, name))}


def parameters(function: Callable[..., object]) -> list[tuple[str, object, object, object]]:
    signature = inspect.signature(function)
    return [(item.name, item.kind, item.default, item.annotation) for item in signature.parameters.values()]


def test_the_operations_are_the_same() -> None:
    assert operations(AsyncCheckpointService) == operations(CheckpointService)


@pytest.mark.parametrize("name", sorted(operations(CheckpointService)))
def test_the_arguments_are_the_same(name: str) -> None:
    mine, other = getattr(CheckpointService, name), getattr(AsyncCheckpointService, name)
    assert parameters(mine) == parameters(other)
    assert inspect.iscoroutinefunction(other) and not inspect.iscoroutinefunction(mine)


def test_both_are_opened_alike() -> None:
    assert parameters(bootstrap.open) == parameters(bootstrap.open_async)
