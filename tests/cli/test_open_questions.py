from __future__ import annotations

from pathlib import Path

from holdfast.application.insight.questions import OpenQuestion, all_questions, questions_of
from holdfast.cli.group import Call
from holdfast.cli.open_questions import answers_under_way
from holdfast.cli.opening import reading
from tests.cli.conftest import Run
from tests.cli.running import write_program


def test_questions_are_found_in_events_after_the_last_checkpoint(run: Run, tmp_path: Path) -> None:
    import holdfast
    from holdfast.domain.run_events import APPROVAL_REQUESTED

    with holdfast.open(".holdfast") as service:
        service.create_checkpoint("W", {"a": 1})
        data = {"name": "ok", "question": "Really?", "data": {}}
        service.append_event("W", APPROVAL_REQUESTED, data, agent_id="a", step_id="a")
    with reading(Call()) as kit:
        [one] = questions_of(kit, "W")
    assert (one.step_id, one.name, one.text, one.answer) == ("a", "ok", "Really?", None)


def test_an_answer_that_names_nothing_is_for_the_only_question(run: Run, tmp_path: Path) -> None:
    import holdfast

    program = write_program(tmp_path)
    run("run", f"{program}:panel", "--id", "W", "--no-wait")
    run("run", f"{program}:twice", "--id", "T", "--no-wait")
    with holdfast.open(".holdfast") as service:
        for workflow_id in ("W", "T"):
            service.requests.put(workflow_id, "approval", actor="ada", data={"granted": True})
        service.requests.put("W", "pause")
    answers = answers_under_way(Call())
    assert [one.workflow_id for one in answers] == ["W", "T"]
    with reading(Call()) as kit:
        found = [one for one in all_questions(kit, answers) if isinstance(one, OpenQuestion)]
    assert [(one.workflow_id, one.answer is not None) for one in found] == [
        ("T", False),
        ("T", False),
        ("W", True),
    ]


def test_a_workflow_that_cannot_be_read_hides_no_other(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    for workflow_id in ("A", "B"):
        run("run", f"{program}:panel", "--id", workflow_id, "--no-wait")
    run("validate", "--deep")
    for path in Path(".holdfast/events").glob("*/a~*/*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"Publish it?", b"Publish IT?"))
    result = run("approve", "--list")
    assert result.exit_code == 0
    assert "warning: A cannot be read" in result.err
    assert [row.split()[0] for row in result.out.splitlines()[1:]] == ["B"]
    assert run("approve", "--list", "--json").data["unreadable"] == ["A"]
    run("approve", "B")
    run("resume", "B", "--app", f"{program}:panel")
    assert "Nothing that can be read waits for an answer." in run("approve", "--list").err
