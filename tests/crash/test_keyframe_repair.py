"""A damaged keyframe that is replaced: wherever the power is cut, there is the one or the other."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.conformance.history import History, make_keyframe
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.record import Keyframe
from tests.crash.explorer import images
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Inode, Machine
from tests.crash.workload import LARGE_STATE, open_on

OLD, SPOILT = b'{"state": "old"}\n', b'{"state": "o1d"}\n'


def spoilt_store(machine: Machine) -> FilesystemStore:
    """Make a store whose second keyframe was changed on the disk, durably."""
    store = open_on(SimulatedDisk(machine))
    history = History(store)
    history.commit(keyframe=b"one")
    history.commit()
    store.put_keyframe("W", make_keyframe(2, OLD))
    history.commit(group=2)
    store.settle()
    [inode] = [node for path, node in machine.walk() if path.endswith("checkpoint_000002.json")]
    assert isinstance(inode, Inode)
    inode.write(SPOILT, 0)
    inode.sync()
    with pytest.raises(ChecksumMismatchError):
        store.keyframe("W", 2)
    return store


def answer(machine: Machine) -> bytes | None:
    """Open what a power cut left; tell which keyframe it gives, None where it gives none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = open_on(SimulatedDisk(machine))
    try:
        assert [entry.sequence for entry in store.entries("W")] == [1, 2, 3]
        assert store.keyframe("W", 1) == b"one"
        return store.keyframe("W", 2)
    except (ChecksumMismatchError, CheckpointNotFoundError):
        return None
    finally:
        store.close()


@pytest.mark.parametrize("suffix", ["json", "msgpack.zst"])
@pytest.mark.parametrize("data", [OLD, b'{"state": "new"}\n', LARGE_STATE], ids=["same", "new", "large"])
def test_the_new_keyframe_is_there_or_the_damaged_one_is_still_refused(data: bytes, suffix: str) -> None:
    machine, rng = Machine(), random.Random(11)
    store = spoilt_store(machine)
    seen: set[bytes | None] = set()

    def look(operation: str) -> None:
        machine.on_operation = None
        seen.update(answer(image) for image in images(machine, rng, 3))
        machine.on_operation = look

    machine.on_operation = look
    store.put_keyframe("W", Keyframe(replace(make_keyframe(2, data).entry, suffix=suffix), data))
    acknowledged = [answer(image) for image in images(machine, rng, 10)]
    store.settle()
    machine.on_operation = None
    assert seen == {None, data}
    assert set(acknowledged) == {data}
    assert store.keyframe("W", 2) == data
    store.close()


def test_a_repair_that_was_cut_short_is_done_by_the_next() -> None:
    machine, rng = Machine(), random.Random(12)
    store = spoilt_store(machine)
    left: list[Machine] = []

    def look(operation: str) -> None:
        machine.on_operation = None
        left.extend(images(machine, rng, 2))
        machine.on_operation = look

    machine.on_operation = look
    store.put_keyframe("W", make_keyframe(2, LARGE_STATE))
    machine.on_operation = None
    assert left
    for image in left:
        again = open_on(SimulatedDisk(image))
        again.put_keyframe("W", make_keyframe(2, LARGE_STATE))
        assert again.keyframe("W", 2) == LARGE_STATE
        again.settle()
        assert [finding for finding in again.check() if finding.harm] == []
        with pytest.raises(CheckpointError):
            again.keyframe("W", 3)
        again.close()
