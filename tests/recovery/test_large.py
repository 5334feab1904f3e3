"""A long history is recovered like a short one: a thousand checkpoints, ten thousand events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recovery.places import KINDS, Place

CHECKPOINTS, EVENTS = 1000, 10_000


def fill(place: Place) -> None:
    """Record a thousand checkpoints with nine events each, and a thousand events after the last."""
    with place.open(background=True, audit=False) as service:
        for number in range(1, CHECKPOINTS + 1):
            service.create_checkpoint("W", {"n": number}, wait=False)
            for _ in range(9):
                service.append_event("W", "DECISION_RECORDED", {"description": str(number)}, wait=False)
        for number in range(EVENTS - 9 * CHECKPOINTS):
            service.append_event("W", "DECISION_RECORDED", {"description": str(number)}, wait=False)
        service.flush()


def check(place: Place) -> None:
    with place.open() as service:
        assert len(service.list_checkpoints("W", limit=2 * CHECKPOINTS)) == CHECKPOINTS
        latest = service.recover_workflow("W")
        assert latest.state is not None and latest.state.context == {"n": CHECKPOINTS}
        assert latest.events_replayed == EVENTS - 9 * CHECKPOINTS + 9 and latest.warnings == ()
        full = service.recover_workflow("W", "full")
        assert full.state == latest.state
    place.damage_record("W", 2)
    with place.open() as service:
        result = service.recover_workflow("W")
        assert result.state == latest.state and result.passed_over == (), "old damage is in nobody's way"


def test_a_long_history_is_recovered(fast_folder: Path) -> None:
    place = Place("file", fast_folder)
    fill(place)
    check(place)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_history_is_recovered_from_every_store(kind: str, fast_folder: Path) -> None:
    place = Place(kind, fast_folder)
    fill(place)
    check(place)
