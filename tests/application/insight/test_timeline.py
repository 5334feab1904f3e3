from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService, RunOptions
from holdfast.application.insight import timeline as timeline_module
from holdfast.application.insight.timeline import NO_LANE, timeline
from holdfast.application.kit import Kit
from tests.application.insight.teams import run, team
from tests.application.insight.test_runs import asking
from tests.application.services import make_kit


@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_a_real_run_is_laid_out_in_lanes(kind: str, tmp_path: Any) -> None:
    with holdfast.open("memory:" if kind == "memory" else f"{kind}:{tmp_path}/s") as service:
        run(service, team(), "W", rounds=2, failures=1)
        drawn = timeline(service._engine.kit, "W")
        entries = list(service._engine.kit.store.entries("W"))
    spans = {lane.agent: [(one.step, one.attempt, one.status) for one in lane.spans] for lane in drawn.lanes}
    assert list(spans) == ["plan", "research", "write", "judge", "publish"]
    assert sorted(spans["research"]) == [("research[0]", 1, "completed"), ("research[1]", 1, "completed")]
    assert spans["write"] == [("write", 1, "completed"), ("write#2", 1, "completed")]
    assert spans["publish"] == [("publish", 1, "failed"), ("publish", 2, "completed")]
    columns = drawn.checkpoints
    assert columns.sequence == [entry.sequence for entry in entries]
    assert {
        len(column) for column in (columns.time_ms, columns.type, columns.status, columns.lane, columns.label)
    } == {len(entries)}
    assert set(columns.lane) <= {NO_LANE, *range(5)}
    assert drawn.begin_ms is not None and drawn.end_ms is not None
    assert drawn.begin_ms <= min(columns.time_ms) <= max(columns.time_ms) <= drawn.end_ms
    assert all(one.end_ms is None or one.begin_ms <= one.end_ms for lane in drawn.lanes for one in lane.spans)
    assert any(mark.type == "AGENT_FAILED" and "no ink" in mark.text for mark in drawn.marks)
    assert not drawn.is_cut


def test_work_that_goes_from_one_agent_to_the_next_is_linked() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    service.append_event("W", "AGENT_STARTED", {"attempt": 1}, agent_id="a", step_id="a")
    following = {"step_id": "b", "agent": "b", "attempt": 1}
    done = {"attempt": 1, "result": 1, "next": following}
    service.append_event("W", "AGENT_COMPLETED", done, agent_id="a", step_id="a")
    drawn = timeline(kit, "W")
    [link] = drawn.links
    assert (link.from_lane, link.to_lane, link.event_seq) == (0, 1, 3)
    assert [(span.step, span.end_ms) for span in drawn.lanes[1].spans] == [("b", None)]


def test_labels_that_were_given_later_are_drawn_and_lengthen_nothing() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {"n": 1})
    service.create_checkpoint("W", {"n": 2})
    service.create_checkpoint("W", {"n": 3})
    before = timeline(kit, "W")
    service.annotate("W@2", labels=["bad"])
    service.annotate("W@2", labels=[])
    service.annotate("W@1", labels=["good", "kept"])
    service.annotate("W@3", labels=["last"])
    drawn = timeline(kit, "W")
    assert drawn.checkpoints.label == ["good, kept", None, "last"]
    assert (drawn.begin_ms, drawn.end_ms, drawn.marks) == (before.begin_ms, before.end_ms, [])


def asked() -> Kit:
    kit = make_kit()
    asking().run_sync(CheckpointService(kit), "W", options=RunOptions(waits=False))
    return kit


def test_words_are_for_whoever_may_read_states() -> None:
    kit = asked()
    assert any("Go on?" in mark.text for mark in timeline(kit, "W").marks)
    assert {mark.text for mark in timeline(kit, "W", has_words=False).marks} == {""}


def test_what_is_older_than_what_is_drawn_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    kit = asked()
    monkeypatch.setattr(timeline_module, "CHECKPOINTS_MAX", 1)
    monkeypatch.setattr(timeline_module, "MARKS_MAX", 1)
    drawn = timeline(kit, "W")
    assert drawn.is_cut and len(drawn.checkpoints.sequence) == 1 and len(drawn.marks) == 1


def test_agents_that_are_told_by_checkpoints_alone_have_lanes_too() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for number, agent in enumerate(["x", "y", "x", None]):
        service.create_checkpoint("W", {"n": number}, agent_id=agent)
    drawn = timeline(kit, "W")
    assert [lane.agent for lane in drawn.lanes] == ["x", "y"]
    assert drawn.checkpoints.lane == [0, 1, 0, NO_LANE]


def test_a_workflow_without_anything_is_an_empty_timeline() -> None:
    drawn = timeline(make_kit(), "nobody")
    assert (drawn.begin_ms, drawn.end_ms, drawn.lanes) == (None, None, [])
