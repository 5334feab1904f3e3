"""Writing what waited: in order, in chunks, and never past what must not be overtaken."""

from __future__ import annotations

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.application.copying import Copier
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.ladder import Mode
from holdfast.domain.record import Transition
from tests.application.services import make_kit
from tests.application.shelters import Gated, gated_kit


@pytest.fixture
def net():
    gated = Gated(gated_kit())
    yield gated
    gated.gate.takes = "everything"
    gated.service.close()


def test_a_long_line_of_several_workflows_is_written_in_few_commits(net):
    for name in ("A", "B"):
        net.service.create_checkpoint(name, {"n": 0})
    net.gate.takes = "nothing"
    for n in range(200):
        net.service.append_event("AB"[n % 2], "TICK", {"n": n})
    net.gate.takes = "everything"
    before = net.gate.calls["commit"]
    net.service.flush()
    assert net.gate.calls["commit"] - before < 20
    for name, odd in (("A", 0), ("B", 1)):
        found = [event.data["n"] for event in net.service.events(name, type="TICK")]
        assert found == list(range(odd, 200, 2))


def test_an_event_about_a_checkpoint_that_waits_does_not_overtake_it(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "events"
    made = net.service.create_checkpoint("WF", {"n": 2})
    command = AppendEvent("WF", "CHECKPOINT_STATUS", {"status": "failed"}, cp_seq=made.sequence)
    engine = net.service._engine
    event = engine.wait(engine.writer.append(command, None, (Transition(made.sequence, "failed"),)))
    assert not event.durable
    later = net.service.append_event("WF", "TICK")
    assert not later.durable, "events keep their order"
    net.gate.takes = "everything"
    net.service.flush()
    assert net.service.get_by_id("WF@2").status == "failed"


def test_a_fault_in_the_middle_leaves_the_rest_for_the_next_time(net):
    net.service.create_checkpoint("WF", {"n": 0})
    net.gate.takes = "nothing"
    for n in range(1, 200):
        net.service.append_event("WF", "TICK", {"n": n})
    calls = []

    def once(answer):
        calls.append(1)
        if len(calls) == 2:
            net.gate.takes = "nothing"
        return answer

    net.gate.takes = "everything"
    net.gate.alter("commit", once)
    with pytest.raises(CheckpointWriteError):
        net.service.flush()
    assert net.mode is Mode.MEMORY_ONLY and 0 < net.service.health().held_commits < 200
    net.gate.alter("commit", None)
    net.gate.takes = "everything"
    net.service.flush()
    assert [event.data["n"] for event in net.service.events("WF", type="TICK")] == list(range(1, 200))


def test_states_that_waited_can_be_copied_like_any_other(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "events"
    for n in (2, 3):
        net.service.create_checkpoint("WF", {"n": n})
        net.service.append_event("WF", "TICK", {"n": n})
    net.gate.takes = "everything"
    net.climb()
    net.service.flush()
    target = make_kit().store
    kit = net.kit
    Copier(net.gate.store, target, kit.packer, kit.formats).copy(["WF"])
    assert target.head("WF") == net.gate.store.head("WF")
    assert [one.checksum for one in target.entries("WF")] == [one.checksum for one in net.gate.entries("WF")]
