"""The newest checkpoint that nothing speaks against."""

from __future__ import annotations

from typing import Any

from holdfast.application.insight.last_good import last_good, marks_of
from holdfast.application.insight.recent_checkpoints import RecentCheckpoints
from holdfast.application.insight.run_facts import RunFacts, read_facts
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.record import Head
from tests.application.services import make_kit


def test_marks_are_those_of_one_workflow_or_of_all() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for name in ("W", "X"):
        service.create_checkpoint(name, {})
        service.quarantine.put(name, 1, "it looks odd")
    every, own = marks_of(kit.store), marks_of(kit.store, "W")
    assert every is not None and own is not None
    assert len(every) == 2 and len(own) == 1 and set(own) < set(every)


def test_of_a_workflow_whose_newest_is_good_no_other_is_listed() -> None:
    class Listed:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(3):
        service.create_checkpoint("W", {"n": number})
    service.quarantine.put("W", 2, "it looks odd")
    facts = read_facts(kit, "W", kit.store.head("W"))
    assert last_good(RecentCheckpoints(Listed()), facts, marks_of(kit.store, "W")) == facts.newest


def test_where_nobody_can_tell_there_is_none() -> None:
    class Damaged:
        def files(self, prefix: str) -> Any:
            raise CheckpointCorruptError("no listing")

    kit = make_kit()
    CheckpointService(kit).create_checkpoint("W", {})
    facts, recent = read_facts(kit, "W", kit.store.head("W")), RecentCheckpoints(kit.store)
    assert marks_of(Damaged()) is None
    assert last_good(recent, facts, None) is None
    assert last_good(recent, RunFacts("W", Head()), frozenset()) is None
