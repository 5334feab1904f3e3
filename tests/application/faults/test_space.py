"""Space that gets low is told once, and again only after there was enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.faults.space import SpaceWatch
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit

TOTAL = 100_000_000


@pytest.mark.parametrize(
    ("free", "told"),
    [
        ([50_000_000], 0),
        ([6_000_000], 0),
        ([4_000_000], 1),
        ([4_000_000, 3_000_000, 5_500_000, 4_000_000], 1),
        ([4_000_000, 9_000_000, 4_000_000], 2),
    ],
)
def test_low_space_is_told_when_it_begins(free, told):
    left = list(free)
    kit = replace(make_kit(), space=lambda: (TOTAL, left.pop(0)))
    with CheckpointService(kit) as service:
        watch = SpaceWatch(kit, service._engine.trail)
        for _ in free:
            watch.look()
        service.flush()
        found = [event for event in service.audit.query_events() if event.type == "STORE_DEGRADED"]
        assert len(found) == told
        if told:
            assert found[0].facts == {
                "reason": "low_space",
                "free_bytes": 4_000_000,
                "total_bytes": TOTAL,
            }


@pytest.mark.parametrize("space", [None, lambda: None])
def test_where_nobody_can_tell_nothing_is_told(space):
    kit = replace(make_kit(), space=space)
    with CheckpointService(kit) as service:
        watch = SpaceWatch(kit, service._engine.trail)
        watch.look()
        assert not watch.is_low


def test_keyframes_are_an_occasion_to_look():
    kit = replace(make_kit(), space=lambda: (TOTAL, 1))
    with CheckpointService(kit) as service:
        state: dict[str, list[str]] = {"log": []}
        for n in range(40):
            state["log"] = [f"{n}-{i}" * 200 for i in range(10)]
            service.create_checkpoint("WF", state)
        assert service._engine.space.is_low
