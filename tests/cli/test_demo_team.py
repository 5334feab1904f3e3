from __future__ import annotations

import json

from holdfast import bootstrap
from holdfast.cli.demo_team import PLAN, main, work


def told(text: str) -> list[tuple[str, int]]:
    return [(message["say"], message["step"]) for message in map(json.loads, text.splitlines())]


def test_every_step_is_begun_and_then_kept(capsys):
    with bootstrap.open("memory:") as service:
        work(service, "kelp", thinking_seconds=0)
        steps = range(1, len(PLAN) + 1)
        assert told(capsys.readouterr().out) == [(say, step) for step in steps for say in ("begin", "kept")]
        state = service.load_latest("kelp")
        assert state is not None and (state.status, len(state.outputs), len(state.decisions)) == (
            "completed",
            4,
            2,
        )
        assert len(service.events("kelp", type="DECISION_RECORDED")) == 2


def test_what_is_kept_is_not_done_again(capsys):
    with bootstrap.open("memory:") as service:
        work(service, "kelp", thinking_seconds=0)
        half = service.fork_workflow("kelp@5", "half")
        capsys.readouterr()
        work(service, half.workflow_id, thinking_seconds=0)
        assert [step for say, step in told(capsys.readouterr().out) if say == "begin"] == list(
            range(6, len(PLAN) + 1)
        )
        work(service, "half", thinking_seconds=0)
        assert capsys.readouterr().out == ""


def test_the_process_opens_the_store_it_is_given(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    main("kelp", str(tmp_path / "store"))
    assert told(capsys.readouterr().out)[-1] == ("kept", len(PLAN))


def test_the_plan_is_a_story_of_five_agents():
    assert {step.agent for step in PLAN} == {
        "planner",
        "researcher-1",
        "researcher-2",
        "researcher-3",
        "writer",
    }
    assert len({step.result for step in PLAN}) == len(PLAN)
