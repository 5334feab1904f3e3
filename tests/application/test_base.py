"""What is remembered of workflows: bounded in bytes, one lock each, nothing lost that is on its way."""

from __future__ import annotations

import threading

from holdfast.application.base import Base, Bases
from holdfast.application.commit_queue import Lineage, Ticket
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.record import Commit, Head


def remember(bases: Bases, workflow_id: str, size_bytes: int, pending: Ticket | None = None) -> None:
    with bases.slot(workflow_id) as slot:
        slot.base = Base(Head(), Lineage(), size_bytes=size_bytes)
        slot.pending = pending


def test_a_workflow_has_one_slot_as_long_as_it_is_remembered() -> None:
    bases = Bases()
    with bases.slot("A") as first:
        pass
    with bases.slot("A") as second:
        assert second is first


def test_the_least_recently_used_is_forgotten_first() -> None:
    bases = Bases(max_bytes=100_000)
    for workflow_id in ("A", "B", "C"):
        remember(bases, workflow_id, 30_000)
    remember(bases, "A", 30_000)
    remember(bases, "D", 30_000)
    assert [name for name in "ABCD" if bases.is_warm(name)] == ["A", "C", "D"]


def test_what_is_in_use_or_on_its_way_is_not_forgotten() -> None:
    bases = Bases(max_bytes=10_000)
    on_its_way = Ticket(Commit("A", Head()), Lineage())
    remember(bases, "A", 8_000, on_its_way)
    with bases.slot("B") as used:
        used.base = Base(Head(), Lineage(), size_bytes=8_000)
        remember(bases, "C", 8_000)
        with bases._mutex:
            assert "B" in bases._slots
    assert bases.is_warm("A")
    on_its_way.done = True
    remember(bases, "D", 8_000)
    assert not bases.is_warm("A")


def test_a_base_whose_lineage_failed_is_not_warm() -> None:
    bases = Bases()
    assert not bases.is_warm("A")
    remember(bases, "A", 1)
    assert bases.is_warm("A")
    with bases.slot("A") as slot:
        assert slot.base is not None
        slot.base.lineage.failure = CheckpointWriteError("no")
        assert not slot.base.sound
    assert not bases.is_warm("A")


def test_one_thread_at_a_time_is_in_a_slot() -> None:
    bases = Bases()
    inside, most = 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            with bases.slot("A"):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_the_workflows_that_were_used_last_are_named_first() -> None:
    bases = Bases()
    for workflow_id in ("A", "B", "C", "A"):
        remember(bases, workflow_id, 10)
    assert bases.recent(2) == ["A", "C"]
    assert bases.recent(9) == ["A", "C", "B"]
