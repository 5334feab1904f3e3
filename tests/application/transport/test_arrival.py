"""Whatever a target does to what it was sent, it is noticed on arrival."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.application.retain import secure
from holdfast.application.transport.copying import Outcome
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, CheckpointError
from holdfast.domain.retention import RetentionPolicy
from holdfast.testing import FailingStore
from tests.application.copies import copy, eventful, past


def flip(data: bytes) -> bytes:
    return data[:-10] + bytes([data[-10] ^ 1]) + data[-9:]


def spoil_last(items: Any) -> list[Any]:
    *most, last = items
    return [*most, flip(last)]


LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a record changed": ("records", spoil_last),
    "a record lost": ("records", lambda found: list(found)[1:]),
    "an event changed": ("events", spoil_last),
    "the first events lost": ("events", lambda found: list(found)[3:]),
    "the last events lost": ("events", lambda found: list(found)[:-1]),
    "a checkpoint relabelled": ("entries", lambda found: [replace(one, stage="other") for one in found]),
    "a status lost": (
        "entries",
        lambda found: [replace(one, status="active", pinned=False) for one in found],
    ),
    "a tombstone forgotten": ("entries", lambda found: list(found)[1:]),
    "a keyframe lost": ("keyframes", lambda found: found[:-1]),
    "a keyframe listed otherwise": (
        "keyframes",
        lambda found: [replace(one, suffix="msgpack") for one in found],
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_target_that_does_not_hold_what_it_was_sent_is_found_out(lie: str) -> None:
    told, target = past(), FailingStore()
    told.event("A")
    told.checkpoint("A", "long " * 20, times=80)
    told.move("A", "failed", pinned=True)
    told.delete("A", 5)
    method, change = LIES[lie]
    # The lie begins when everything was sent.
    target.alter("put_keyframe", lambda answer: target.alter(method, change))
    [result] = copy(told.kit.store, target).workflows
    assert target.calls["put_keyframe"] == 1
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, CheckpointError)


@pytest.mark.parametrize("kind", ["keyframes", "blobs"])
def test_bytes_that_rot_on_arrival_are_found_out(kind: str) -> None:
    told, target = past(), MemoryStore()
    told.checkpoint("A", "long " * 20, times=3)
    copy(told.kit.store, target)
    if kind == "blobs":
        [sha256] = target._blobs
        target._blobs[sha256] = flip(target._blobs[sha256])
    else:
        keyframe = target._workflows["A"].keyframes[1]
        target._workflows["A"].keyframes[1] = replace(keyframe, data=flip(keyframe.data))
    [result] = copy(told.kit.store, target).workflows
    assert isinstance(result.error, CheckpointCorruptError)
    assert "what arrived does not verify" in str(result.error)


def test_a_target_that_somebody_else_writes_to_meanwhile_is_a_conflict() -> None:
    told, target = past(), FailingStore()
    told.checkpoint("A", times=2)

    def interfere(answer: Any) -> Any:
        target.alter("commit", None)
        past(target).event("A", "mine")
        return answer

    target.alter("commit", interfere)
    [result] = copy(told.kit.store, target).workflows
    assert isinstance(result.error, CheckpointConflictError)
    assert "somebody else wrote to the target" in str(result.error)


def test_states_are_restored_at_both_ends_and_compared() -> None:
    """With the chain believed on purpose, only the states themselves can tell the difference."""
    told, target = past(), MemoryStore()
    told.checkpoint("A", times=3)
    copy(told.kit.store, target)
    source = FailingStore(told.kit.store)
    other = past()
    other.checkpoint("A", "other", times=3)
    keyframe = other.kit.store.keyframe("A", 1)
    source.alter("keyframe", lambda answer: keyframe)
    [result] = copy(source, target).workflows
    assert result.outcome is Outcome.FAILED


def test_a_workflow_without_any_kept_checkpoint_arrives_too() -> None:
    told, target = eventful(), MemoryStore()
    result = copy(told.kit.store, target, "B", "C")
    assert [one.outcome for one in result.workflows] == [Outcome.COPIED] * 2
    assert all(entry.pruned for entry in target.entries("B"))


def test_a_keyframe_that_the_target_made_by_itself_may_be_in_another_format(tmp_path: Path) -> None:
    """What a keyframe holds counts, and not how: both ends may have made one of the same checkpoint."""
    stores = {}
    with holdfast.open(f"file:{tmp_path / 'json'}") as service:
        for number in range(12):
            service.create_checkpoint("W", {"n": number, "text": "x" * 3000})
    for name, mode in (("json", "default"), ("msgpack", "performance")):
        config = Config(store=f"file:{tmp_path / name}", mode=mode)
        stores[name] = open_store(config), config
    source, target = stores["json"][0], stores["msgpack"][0]
    assert copy(source, target).workflows[0].outcome is Outcome.COPIED
    for store, config in stores.values():
        secure(build_kit(store, config), "W", RetentionPolicy(2, 0))
    assert source.keyframes("W")[-1].sha256 != target.keyframes("W")[-1].sha256
    assert copy(source, target).workflows[0].outcome is Outcome.PRESENT
    source.close()
    target.close()
