from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.insight.event_lines import event_lines
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointCorruptError
from tests.application.services import make_kit


def test_only_events_of_the_types_asked_for_are_opened() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    service.append_event("W", "ASKED", {"n": 1}, agent_id="ann")
    service.append_event("W", "OTHER", {"agent": "no agent of the event"})
    lines = list(event_lines(kit, "W", 0, {"ASKED"}))
    assert [(line.seq, line.type, line.agent) for line in lines[:2]] == [
        (1, "CHECKPOINT_CREATED", None),
        (2, "ASKED", "ann"),
    ]
    assert [line.event and line.event.data for line in lines] == [None, {"n": 1}, None]
    assert [line.seq for line in event_lines(kit, "W", 2, ())] == [3]


def test_a_line_that_is_no_event_is_told_only_where_it_was_asked_for() -> None:
    class Damaged:
        url = "damaged:"

        def events(self, workflow_id: str, *, after: int = 0) -> list[bytes]:
            return [b'{"seq":1,"ts":"x","type":"ASKED"', b"no event at all"]

    kit = replace(make_kit(), store=Damaged())
    assert [line.type for line in event_lines(kit, "W", 0, ())] == ["ASKED"]
    with pytest.raises(CheckpointCorruptError):
        list(event_lines(kit, "W", 0, {"ASKED"}))
