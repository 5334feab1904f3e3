"""Values too large for the journal: files of their own, and still part of the commit."""

from __future__ import annotations

import random

import pytest

from holdfast.domain.record import Removal
from tests.crash.explorer import images
from tests.crash.ledger import differences, sha256
from tests.crash.scenes import (
    Killed,
    on,
    sound,
)
from tests.crash.simulated_machine import Machine
from tests.crash.workload import LARGE_BLOB, LARGE_STATE


def test_a_loser_with_a_large_state_does_not_overwrite_the_winners_keyframe() -> None:
    w = on(Machine())
    ours = w.draft("A", "WF-one", keyframe=LARGE_STATE)
    theirs = w.draft("B", "WF-one", keyframe=LARGE_STATE.replace(b"x", b"y"))
    w.commit("A", ours)
    w.commit("B", theirs)
    assert differences(w.stores["A"], w.ledger) == []


def test_a_small_first_state_after_a_large_one_that_was_never_committed_is_whole() -> None:
    machine = Machine()
    w = on(machine)
    w.store("A")
    commit = w.draft("A", "WF-one", keyframe=LARGE_STATE)

    def stop(operation: str) -> None:
        if operation.startswith("rename") and operation.endswith("checkpoint_000001.json"):
            raise Killed

    machine.on_operation = stop
    with pytest.raises(Killed):
        w.commit("A", commit)
    machine.on_operation = None
    w.disks["A"].kill()
    w.stores.clear()
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": "small"}\n'))
    w.close("A")
    sound(machine, w.ledger)


def test_a_large_blob_that_was_collected_and_stored_again_survives_a_power_cut() -> None:
    machine = Machine()
    w = on(machine)
    blobs = {sha256(LARGE_BLOB): LARGE_BLOB}
    w.commit("A", w.draft("A", "WF-one", blobs=blobs))
    w.commit("A", w.draft("A", "WF-one", group=2))
    w.store("A").settle()
    w.remove("A", "WF-one", Removal((1,), (1,), 0, tuple(blobs)))
    # Applied and not settled: a recovery would carry the removal out again.
    w.store("A")._writer().settler.apply()
    assert not w.store("A").has_blob(sha256(LARGE_BLOB))
    outcome = w.commit("A", w.draft("A", "WF-two", blobs=blobs))
    assert outcome == [None]
    for image in images(machine, random.Random(6), 20):
        sound(image, w.ledger)
