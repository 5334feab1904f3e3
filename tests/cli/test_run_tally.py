from __future__ import annotations

from typing import Any

from holdfast.cli.run_tally import Row, Tally


def started(step: str, agent: str | None = None, attempt: int = 1) -> tuple[str, dict[str, Any]]:
    return "agent_started", {"step_id": step, "agent": agent or step, "attempt": attempt}


def completed(step: str, agent: str | None = None, **metrics: Any) -> tuple[str, dict[str, Any]]:
    data = {"step_id": step, "agent": agent or step, "seconds": 0.5, "metrics": metrics, "confidence": None}
    return "agent_completed", data


def test_an_agent_runs_and_is_done() -> None:
    tally = Tally(["plan", "write"], clock=lambda: 3.0)
    tally.told(*started("plan"))
    assert tally.rows["plan"].running == {"plan": 3.0}
    tally.told(*completed("plan", tokens=3))
    row = tally.rows["plan"]
    assert (row.done, row.over, row.steps, row.seconds, row.running) == (1, 1, 1, 0.5, {})
    assert not row.is_many
    assert (tally.ran, tally.metrics) == (1, {"tokens": 3})
    assert [one.name for one in tally.snapshot()] == ["plan", "write"]


def test_items_are_counted_in_one_row() -> None:
    tally = Tally(["research"])
    tally.told("agent_items", {"agent": "research", "count": 3})
    assert tally.rows["research"].steps == 3
    for number in range(2):
        tally.told(*started(f"research[{number}]", "research"))
    tally.told(*completed("research[0]", "research", calls=1))
    row = tally.rows["research"]
    assert (row.over, row.steps, row.is_many, list(row.running)) == (1, 3, True, ["research[1]"])


def test_steps_that_were_not_announced_are_counted_as_they_come() -> None:
    row = Row("draft", done=2, running={"draft#3": 0.0})
    assert (row.steps, row.is_many) == (3, True)


def test_an_agent_that_is_spawned_gets_a_row_of_its_own() -> None:
    tally = Tally(["write"])
    tally.told(*started("write>calc", "calc"))
    assert list(tally.rows) == ["write", "calc"]


def test_what_failed_is_tried_again_and_what_is_skipped_is_over() -> None:
    tally = Tally(["plan", "extra"])
    tally.told(*started("plan"))
    tally.told("agent_failed", {"step_id": "plan", "agent": "plan", "error": "no fuel", "retries": True})
    assert (tally.rows["plan"].failed, tally.rows["plan"].doing) == (1, "no fuel")
    tally.told(*started("plan", attempt=2))
    assert tally.rows["plan"].doing == ""
    tally.told("agent_skipped", {"step_id": "extra", "agent": "extra", "reason": "not needed"})
    assert (tally.rows["extra"].over, tally.rows["extra"].doing) == (1, "not needed")
    assert tally.ran == 2


def test_an_agent_says_how_far_it_is_and_what_keeps_it() -> None:
    tally = Tally(["plan"])
    tally.told(*started("plan"))
    progress = {"step_id": "plan", "agent": "plan", "share": 0.4, "note": "reading"}
    tally.told("agent_progress", progress)
    assert (tally.rows["plan"].share, tally.rows["plan"].doing) == (0.4, "reading")
    tally.told("agent_blocked", {"step_id": "plan", "reason": "no paper"})
    assert tally.rows["plan"].doing == "blocked: no paper"
    tally.told("agent_blocked", {"step_id": "plan", "reason": None})
    assert tally.rows["plan"].doing == ""


def test_questions_are_open_until_they_are_answered() -> None:
    tally = Tally()
    tally.told("approval_requested", {"step_id": "publish", "name": "ok", "question": "Publish it?"})
    assert tally.waiting == {("publish", "ok"): "Publish it?"}
    tally.told("approval_answered", {"step_id": "publish", "name": "ok", "granted": True})
    assert tally.waiting == {}


def test_checkpoints_warnings_and_the_end_are_kept() -> None:
    tally = Tally()
    tally.told("run_started", {"workflow": "w", "resumed": True})
    tally.told("checkpoint_saved", {"checkpoint_id": "W@3"})
    tally.told("checkpoint_failed", {"error": "disk full"})
    tally.told("commit_failed", {"error": "disk full"})
    tally.told("warning", {"text": "agent 'x' is new"})
    tally.told("run_ended", {"status": "paused", "seconds": 2.5})
    tally.told("something_new", {"of": "a later version"})
    assert (tally.is_begun, tally.is_resumed) == (True, True)
    assert (tally.checkpoints, tally.last_checkpoint) == (1, "W@3")
    assert (tally.status, tally.seconds) == ("paused", 2.5)
    assert tally.warnings == ["a checkpoint failed: disk full", "not durable: disk full", "agent 'x' is new"]


def test_a_run_that_is_gone_on_with_begins_with_what_was_done() -> None:
    tally = Tally(["plan", "research"])
    tally.begin_from(
        {
            "tasks": [{"id": "plan", "agent": "plan"}, {"id": "research[0]", "agent": "research"}],
            "stage_states": {"research": {"items": {"research": [{}, {}, {}]}}, "plan": {}},
            "metrics": {"tokens": 5},
        }
    )
    tally.told(*completed("research[1]", "research", tokens=2))
    row = tally.rows["research"]
    assert (tally.kept, row.over, row.steps, tally.metrics) == (2, 2, 3, {"tokens": 7})


def test_a_state_of_another_kind_counts_as_nothing() -> None:
    tally = Tally(["plan"])
    tally.begin_from({})
    assert (tally.kept, tally.metrics) == (0, {})


def test_checkpoints_that_waited_are_left_out_if_the_store_never_got_them() -> None:
    tally = Tally([])
    for number, durable in ((1, True), (2, False)):
        tally.told("checkpoint_saved", {"checkpoint_id": f"W@{number}", "durable": durable})
    assert tally.made(in_store=False) == (2, "W@2")
    assert tally.made(in_store=True) == (1, "W@1")
