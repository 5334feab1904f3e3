from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError
from holdfast.server.api.reading import aware, found_checkpoint, known_run, raw_json, writable
from holdfast.server.problems import Refusal
from tests.server.served import desk_of


def test_names_are_looked_up():
    with desk_of("memory:") as desk:
        desk.service.create_checkpoint("W", {})
        assert known_run(desk, "W").workflow_id == "W"
        assert str(found_checkpoint(desk, "W@latest")) == "W@1"
        with pytest.raises(CheckpointNotFoundError):
            known_run(desk, "X")
        with pytest.raises(InvalidIdError):
            known_run(desk, "\ud800")


def test_what_is_no_text_is_refused():
    assert writable("t\u00e9xt \U0001f33f") == "t\u00e9xt \U0001f33f"
    with pytest.raises(Refusal) as caught:
        writable("\udcff")
    assert caught.value.status == 400 and caught.value.place.isascii()


def test_a_moment_needs_its_time_zone():
    now = datetime.now(UTC)
    assert (aware(now), aware(None)) == (now, None)
    with pytest.raises(Refusal, match="time zone"):
        aware(datetime(2026, 1, 1))


def test_plain_trees_are_json_at_any_depth():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert bytes(raw_json(deep)) == b"[" * 5_001 + b"]" * 5_001
    assert bytes(raw_json({"n": float("nan")})) == b'{"n":{"$hf":"float","v":"nan"}}'
