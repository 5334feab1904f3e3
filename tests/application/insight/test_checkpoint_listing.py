from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.application.insight import checkpoint_listing
from holdfast.application.insight.checkpoint_listing import CheckpointFilter, checkpoint_page
from holdfast.application.insight.runs import RunBook
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointCorruptError, InvalidIdError
from holdfast.testing import FixedClock
from tests.application.services import make_kit

START = datetime(2026, 1, 1, tzinfo=UTC)


def listed(kit: Kit, limit: int = 100, **more: Any) -> list[str]:
    return [row.id for row in checkpoint_page(RunBook(kit), CheckpointFilter(**more), None, limit)[0]]


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 3)), max_size=20),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([None, "a"]),
)
def test_pages_hold_every_checkpoint_once_also_while_others_are_made(
    made: list[tuple[str, int]], limit: int, is_added: bool, workflow_id: str | None
) -> None:
    clock = FixedClock(START)
    kit = make_kit(clock=clock)
    service = CheckpointService(kit)
    for number, (name, seconds) in enumerate(made):
        # A clock may be set back.
        clock.advance(timedelta(seconds=seconds))
        service.create_checkpoint(name, {"n": number})
    wanted = CheckpointFilter(workflow_id)
    book, seen, cursor = RunBook(kit), list[str](), None
    all_of = [f"{name}@{e.sequence}" for name in kit.store.workflows() for e in kit.store.entries(name)]
    while True:
        rows, cursor = checkpoint_page(book, wanted, cursor, limit)
        assert len(rows) <= limit
        seen += [row.id for row in rows]
        if is_added and made:
            clock.moment = max(clock.moment, START + timedelta(hours=1)) + timedelta(seconds=1)
            service.create_checkpoint(made[0][0], {"later": len(seen), "at": str(clock.moment)})
            is_added = False
        if cursor is None:
            break
    named = [one for one in all_of if workflow_id in (None, one.partition("@")[0])]
    assert sorted(seen) == sorted(named)


def test_checkpoints_of_all_workflows_come_newest_first() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for number, name in enumerate(["a", "b", "a", "c", "b"]):
        service.create_checkpoint(name, {"n": number})
    assert listed(kit) == ["b@2", "c@1", "a@2", "b@1", "a@1"]
    assert listed(kit, workflow_id="a") == ["a@2", "a@1"]
    assert listed(kit, workflow_id="nobody") == []


def test_checkpoints_are_filtered() -> None:
    kit = make_kit(clock=FixedClock(START, step=timedelta(minutes=1)))
    service = CheckpointService(kit)
    service.create_checkpoint("a", {}, agent_id="plan")
    service.mark_failed(service.create_checkpoint("b", {}, type=CheckpointType.SYNC_BARRIER), "no")
    service.create_checkpoint("c", {})
    rows, _ = checkpoint_page(RunBook(kit), CheckpointFilter(), None, 9)
    moments = {row.id: datetime.fromisoformat(row.created_at) for row in rows}
    assert listed(kit, agent="plan") == ["a@1"]
    assert listed(kit, status="failed") == ["b@1"]
    assert listed(kit, type="sync_barrier") == ["b@1"]
    assert listed(kit, label="x") == []
    assert listed(kit, since=moments["b@1"]) == ["c@1", "b@1"]
    assert listed(kit, until=moments["b@1"]) == ["b@1", "a@1"]
    assert listed(kit, since=moments["b@1"], until=moments["b@1"]) == ["b@1"]


def test_so_many_are_looked_at_for_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_listing, "LOOKED_AT_MAX", 2)
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(5):
        service.create_checkpoint("a", {"n": number}, agent_id="first" if not number else None)
    wanted, cursor, sizes = CheckpointFilter(agent="first"), None, list[int]()
    for _ in range(3):
        rows, cursor = checkpoint_page(RunBook(kit), wanted, cursor, 10)
        sizes.append(len(rows))
    assert (sizes, cursor) == ([0, 0, 1], None)


def test_a_listing_that_cannot_be_read_hides_no_other() -> None:
    class Damaged:
        def __init__(self, store: Any) -> None:
            self._store = store
            self.is_damaged = False

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def entries(self, workflow_id: str, *, newest_first: bool = False) -> Any:
            if self.is_damaged and workflow_id == "a":
                raise CheckpointCorruptError("no listing")
            return self._store.entries(workflow_id, newest_first=newest_first)

    store = Damaged(make_kit().store)
    kit = make_kit(store)
    service, book = CheckpointService(kit), RunBook(kit)
    for number, name in enumerate(["a", "a", "b"]):
        service.create_checkpoint(name, {"n": number})
    book.all()
    store.is_damaged = True
    rows, _ = checkpoint_page(book, CheckpointFilter(), None, 10)
    assert [row.id for row in rows] == ["b@1"]


def test_a_wrong_cursor_is_refused() -> None:
    kit = make_kit()
    with pytest.raises(InvalidIdError):
        checkpoint_page(RunBook(kit), CheckpointFilter(), "x", 10)
