"""Making room: what retention lets go, workflows in need first, and never what is under a legal hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.faults.health import Step, Written
from holdfast.domain.errors import CheckpointWriteError, DiskFullError
from holdfast.domain.ladder import Mode
from holdfast.domain.retention import RetentionPolicy
from tests.application.shelters import Gated, gated_kit


@pytest.fixture
def net():
    gated = Gated(gated_kit())
    # Set afterwards, so that nothing is pruned before it is needed.
    for name in ("A", "B"):
        for n in range(12):
            gated.service.create_checkpoint(name, {"n": n, "noise": [f"{n}-{i}" * 100 for i in range(99)]})
    gated.service.flush()
    policy = RetentionPolicy(2, 0)
    gated.service._engine.safety._kit = replace(gated.kit, retention=policy)
    yield gated
    gated.gate.takes = "everything"
    gated.service.close()


def living(net, name):
    return [meta.id.sequence for meta in net.service.list_checkpoints(name) if not meta.pruned]


def test_what_retention_lets_go_makes_room(net, caplog):
    freed = net.service._engine.safety._make_room()
    assert freed > 100_000 and "pruning gave back" in caplog.text
    assert max(len(living(net, "A")), len(living(net, "B"))) < 12


def test_a_legal_hold_is_respected_also_on_a_full_disk(net):
    net.service.holds.place(workflow_id="A", reason="a lawsuit")
    net.service._engine.safety._make_room()
    assert len(living(net, "A")) == 12 and len(living(net, "B")) < 12


def test_where_there_is_no_room_for_a_keyframe_more_is_kept_instead(net):
    net.gate.fail("put_keyframe", DiskFullError("no space left"), times=4)
    assert net.service._engine.safety._make_room() > 0
    assert len(living(net, "A")) < 12


def test_without_a_policy_nothing_goes(net):
    net.service._engine.safety._kit = replace(net.kit, retention=None)
    assert net.service._engine.safety._make_room() == 0


def test_listeners_are_told_of_steps_and_of_late_writes(net):
    heard: list[Written] = []
    net.service.on_written(heard.append)
    net.gate.takes = "nothing"
    net.service.append_event("A", "TICK")
    net.gate.takes = "everything"
    net.climb()
    net.service.flush()
    assert net.steps[0][0].value == "full" and heard[0].workflow_id == "A"


def test_listeners_stay_when_everything_is_set_up_anew_as_in_a_forked_child(net):
    steps: list[Step] = []
    net.service.on_mode_change(steps.append)
    net.service._engine.begin()
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.append_event("WF", "TICK")
    with pytest.raises(CheckpointWriteError):
        net.service.flush()
    assert [step.after for step in steps] == [Mode.MEMORY_ONLY]
    net.gate.takes = "everything"
