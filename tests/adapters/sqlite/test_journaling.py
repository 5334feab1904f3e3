"""A write-ahead log is used only where SQLite resets it correctly."""

from __future__ import annotations

import pytest

from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL, choose, is_wal_safe
from holdfast.domain.errors import ConfigError

SAFE = [(3, 44, 6), (3, 44, 7), (3, 50, 7), (3, 50, 20), (3, 51, 3), (3, 53, 0), (3, 54, 1), (4, 0, 0)]
UNSAFE = [
    *((3, 7, 0), (3, 24, 0), (3, 40, 1), (3, 44, 5), (3, 45, 9), (3, 49, 2)),
    *((3, 50, 4), (3, 50, 6), (3, 51, 2), (3, 52, 0), (3, 52, 1)),
]


@pytest.mark.parametrize("version", SAFE, ids=str)
def test_a_mended_version_uses_the_log(version: tuple[int, ...]) -> None:
    assert is_wal_safe(version)
    assert choose(version).mode == WAL


@pytest.mark.parametrize("version", UNSAFE, ids=str)
def test_a_version_with_the_bug_does_not(version: tuple[int, ...]) -> None:
    assert not is_wal_safe(version)
    choice = choose(version)
    assert (choice.mode, choice.pragma) == (ROLLBACK, "persist")
    assert "WAL-reset bug" in choice.reason and ".".join(map(str, version)) in choice.reason


def test_what_is_asked_for_is_used() -> None:
    assert choose((3, 40, 1), WAL).mode == WAL
    assert choose((3, 54, 1), ROLLBACK).mode == ROLLBACK
    with pytest.raises(ConfigError, match="memory"):
        choose((3, 54, 1), "memory")
