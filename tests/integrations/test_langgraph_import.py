"""What is brought over is compared with what it was, and the comparison can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from holdfast.domain.errors import CheckpointCorruptError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_import import Brought, bring

PLACE: Any = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}


@pytest.fixture
def target(tmp_path: Path) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(str(tmp_path / "store")) as saver:
        yield saver


def source(count: int = 3) -> InMemorySaver:
    saver = InMemorySaver()
    config = PLACE
    for number in range(count):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"n": number}
        checkpoint["channel_versions"] = {"n": number}
        config = saver.put(
            config, checkpoint, {"source": "loop", "step": number, "parents": {}}, {"n": number}
        )
        saver.put_writes(config, [("n", number), ("m", [number])], f"task-{9 - number}", "path")
    return saver


def test_everything_is_brought_over_in_order(target: HoldfastSaver):
    told: list[tuple[int, int]] = []
    assert bring(source(), target, on_done=lambda *done: told.append(done)) == Brought(1, 3, 6)
    assert told == [(3, 1), (3, 2), (3, 3)]
    assert [item.checkpoint["channel_values"]["n"] for item in target.list(PLACE)] == [2, 1, 0]


def test_without_a_target_it_is_only_counted():
    assert bring(source(), None) == Brought(1, 3, 6)


def test_only_the_threads_that_are_named_come(target: HoldfastSaver):
    assert bring(source(), target, ["two"]) == Brought(0, 0, 0)


@pytest.mark.parametrize("field", ["checkpoint", "metadata", "pending_writes"])
def test_what_comes_back_otherwise_is_refused(
    target: HoldfastSaver, monkeypatch: pytest.MonkeyPatch, field: str
):
    honest = target.get_tuple

    def forged(config: Any) -> Any:
        found = honest(config)
        assert found is not None
        return found._replace(**{field: {**found.checkpoint, "v": 9} if field == "checkpoint" else None})

    monkeypatch.setattr(target, "get_tuple", forged)
    with pytest.raises(CheckpointCorruptError, match="not what it was"):
        bring(source(), target)
