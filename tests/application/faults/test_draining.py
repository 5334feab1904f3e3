"""Writing what waited: in order, in chunks, and never past what must not be overtaken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.application.transport.copying import Copier
from holdfast.domain.errors import CheckpointCorruptError, CheckpointWriteError
from holdfast.domain.ladder import Mode
from holdfast.domain.record import Transition
from tests.application.services import make_kit
from tests.application.shelters import Gated, GatedStore, gated_kit


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


class Tardy(GatedStore):
    """Says that a commit failed, and carries it out when the next but one comes."""

    is_tardy = False

    def __init__(self):
        super().__init__()
        self.late = []

    def commit(self, commits):
        if self.is_tardy and any(commit.events for commit in commits):
            self.late.append(commits)
            if len(self.late) < 3:
                raise CheckpointWriteError("the connection is gone")
            self.is_tardy = False
            super().commit(self.late[0])
        return super().commit(commits)


def test_a_try_that_arrives_after_it_was_looked_for_is_not_written_twice():
    store = Tardy()
    net = Gated(replace(gated_kit(), store=store))
    net.service.create_checkpoint("WF", {"n": 1})
    store.is_tardy = True
    net.service.append_event("WF", "PAID")
    store.is_tardy = True
    net.climb()
    assert len(net.service.events("WF", type="PAID")) == 1
    net.service.close()


class Damaged(GatedStore):
    """Loses the listing of one workflow."""

    is_damaged = False

    def entries(self, workflow_id, **options):
        if self.is_damaged and workflow_id == "BAD":
            raise CheckpointCorruptError("the listing is damaged")
        return super().entries(workflow_id, **options)


def test_a_workflow_that_is_damaged_meanwhile_does_not_keep_others_waiting():
    store = Damaged()
    net = Gated(replace(gated_kit(), store=store))
    for name in ("BAD", "GOOD"):
        net.service.create_checkpoint(name, {"n": 1})
    net.gate.takes = "events"
    for name in ("BAD", "GOOD"):
        net.service.create_checkpoint(name, {"n": 2})
        net.service.append_event(name, "TICK")
    store.takes, store.is_damaged = "everything", True
    net.climb()
    assert net.service.load_latest("GOOD").context == {"n": 2}
    health = net.service.health()
    assert health.is_durable and health.counters["refused"] == 1
    store.is_damaged = False
    net.service.close()
