from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.application.insight import event_rows
from holdfast.application.insight.event_rows import event_page
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import InvalidIdError
from tests.application.services import make_kit


@settings(max_examples=25)
@given(
    st.integers(0, 20),
    st.integers(1, 7),
    st.booleans(),
    st.sampled_from([None, "EVEN", "NONE"]),
    st.booleans(),
)
def test_pages_hold_every_event_once_in_both_directions(
    count: int, limit: int, is_newest: bool, type: str | None, is_added: bool
) -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    for number in range(count):
        service.append_event("W", "ODD" if number % 2 else "EVEN", {"n": number})
    last = kit.store.head("W").event_seq
    seen, cursor = list[int](), None
    while True:
        page = event_page(kit, "W", type=type, cursor=cursor, limit=limit, is_newest=is_newest)
        seen += [event.seq for event in page.events]
        cursor = page.next_cursor
        if is_added and len(seen) < 3:
            service.append_event("W", "ADDED", {})
        if cursor is None:
            break
    wanted = [event.seq for event in service.events("W", type=type) if event.seq <= last]
    assert [seq for seq in seen if seq <= last] == (wanted[::-1] if is_newest else wanted)


def test_so_many_are_looked_at_for_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "LOOKED_AT_MAX", 3)
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(7):
        service.append_event("W", "LAST" if number == 6 else "OTHER", {})
    cursor, sizes = None, list[int]()
    for _ in range(3):
        page = event_page(kit, "W", type="LAST", cursor=cursor, limit=5, is_newest=False)
        sizes.append(len(page.events))
        cursor = page.next_cursor
    assert (sizes, cursor) == ([0, 0, 1], None)


@pytest.mark.parametrize("is_newest", [True, False])
def test_the_cursor_of_another_direction_is_refused(is_newest: bool) -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for _ in range(3):
        service.append_event("W", "X", {})
    page = event_page(kit, "W", type=None, cursor=None, limit=1, is_newest=is_newest)
    with pytest.raises(InvalidIdError):
        event_page(kit, "W", type=None, cursor=page.next_cursor, limit=1, is_newest=not is_newest)
