"""`holdfast approve`: a question is answered once, by somebody with a name, also where nobody runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import called, running, write_program


@pytest.fixture
def program(run: Run, tmp_path: Path) -> str:
    """A program one of whose runs waits for an answer, W, and one for two, T."""
    name = write_program(tmp_path)
    assert run("run", f"{name}:panel", "--id", "W", "--no-wait").exit_code == Exit.WAITING
    assert run("run", f"{name}:twice", "--id", "T", "--no-wait").exit_code == Exit.WAITING
    return name


def test_open_questions_are_listed(run: Run, program: str) -> None:
    head, *rows = run("approve", "--list").out.splitlines()
    assert head.split() == ["WORKFLOW", "STEP", "NAME", "SINCE", "(UTC)", "QUESTION", "ANSWER"]
    assert [row.split()[:3] for row in rows] == [
        ["T", "ask[a]", "take"],
        ["T", "ask[b]", "take"],
        ["W", "publish", "publish"],
    ]
    assert rows[2].endswith("Publish it?  -")
    [question] = run("approve", "--list", "W", "--json").data["questions"]
    assert question.pop("since").startswith("20")
    assert question == {
        "workflow_id": "W",
        "step_id": "publish",
        "name": "publish",
        "question": "Publish it?",
        "data": {"pages": 3},
        "answer": None,
    }


def test_looking_at_questions_is_told_in_the_trail(run: Run, program: str) -> None:
    run("approve", "--list")
    told = map(json.loads, run("audit", "log", "--json", "--limit", "2").out.splitlines())
    assert {(one["type"], one["workflow"]) for one in told} == {("STATE_READ", "T"), ("STATE_READ", "W")}


def test_an_answer_waits_for_a_workflow_that_nobody_runs(run: Run, program: str) -> None:
    words = ("--by", "ada", "--reason", "read it", "--value", '{"n": 1}')
    answered = run("approve", "W", *words)
    assert answered.exit_code == Exit.DONE
    assert answered.out == "publish of W publish granted\n"
    assert f"`holdfast resume W --app {program}:panel` goes on with the answer" in answered.err
    [question] = run("approve", "--list", "W", "--json").data["questions"]
    assert (question["answer"]["by"], question["answer"]["granted"]) == ("ada", True)
    assert "by ada, not taken in yet" in run("approve", "--list").out
    ended = run("resume", "W", "--app", f"{program}:panel", "--json").data
    assert ended["value"] == {"granted": True, "by": "ada", "note": "read it", "value": {"n": 1}}


def test_an_answer_may_be_no(run: Run, program: str) -> None:
    told = run("approve", "W", "publish", "--deny", "--json").data
    assert (told["granted"], told["is_running"], told["step_id"]) == (False, False, "publish")
    assert run("resume", "W", "--app", f"{program}:panel", "--json").data["value"]["granted"] is False


@pytest.mark.parametrize("value", ["{bad", " [1,"])
def test_a_value_that_is_broken_json_grants_nothing(run: Run, program: str, value: str) -> None:
    refused = run("approve", "W", "--value", value)
    assert refused.exit_code == Exit.USAGE and "--value: that is no JSON" in refused.err
    assert run("approve", "--list", "W", "--json").data["questions"][0]["answer"] is None
    assert run("approve", "W", "--value", f'"{value}"').exit_code == Exit.DONE


def test_nothing_is_answered_twice(run: Run, program: str) -> None:
    assert run("approve", "W", "--by", "ada").exit_code == Exit.DONE
    waiting = run("approve", "W", "--by", "eve")
    assert waiting.exit_code == Exit.NOT_FOUND
    assert "was answered by ada" in waiting.err
    assert f"Go on with `holdfast resume W --app {program}:panel`." in waiting.err
    assert f"Go on with `holdfast resume W --app {program}:panel`." in run("pause", "W").err
    assert run("resume", "W", "--app", f"{program}:panel").exit_code == Exit.DONE
    over = run("approve", "W", "publish", "--json")
    assert (over.exit_code, over.error["code"]) == (Exit.NOT_FOUND, "no_such_question")


def test_a_question_that_is_not_there_is_told(run: Run, program: str) -> None:
    result = run("approve", "W", "publich")
    assert result.exit_code == Exit.NOT_FOUND
    assert "Did you mean publish?" in result.err
    assert "Open are: publish." in run("approve", "W", "xyz").err
    assert run("approve", "nobody").exit_code == Exit.NOT_FOUND


def test_of_several_questions_one_has_to_be_meant(run: Run, program: str) -> None:
    unclear = run("approve", "T", "take")
    assert unclear.exit_code == Exit.USAGE
    assert "take --step ask[a]; take --step ask[b]" in unclear.err
    assert run("approve", "T", "--step", "ask[b]", "--deny").exit_code == Exit.DONE
    # The other one is the only one without an answer, and still has to be named: an answer is no guess.
    assert run("approve", "T", "take", "--step", "ask[a]").exit_code == Exit.DONE
    assert run("resume", "T", "--app", f"{program}:twice", "--json").data["status"] == "completed"
    state = run("show", "T", "--state=/tasks", "--json").data["state"]
    assert {task["id"]: task["result"] for task in state} == {"ask[a]": True, "ask[b]": False}


@pytest.mark.parametrize("url", [".holdfast", "sqlite:own.db"])
def test_an_answer_from_a_second_process_reaches_the_one_that_waits(tmp_path: Path, url: str) -> None:
    name, answer = write_program(tmp_path), ("approve", "W", "--by", "ada", "--json", "--store", url)
    with running(tmp_path, "run", f"{name}:panel", "--id", "W", "--store", url) as first:
        # The question is in the store before anybody waits for its answer.
        assert first.until("approval_requested")["question"] == "Publish it?"
        answered = called(tmp_path, *answer)
        assert json.loads(answered.stdout)["is_running"] is True
        exit_code, result = first.ended()
    assert (exit_code, result["value"]["by"], result["ran"]) == (Exit.DONE, "ada", 2)


@pytest.mark.parametrize(
    ("args", "said"),
    [((), "name the ID"), (("--list", "W", "--deny"), "--list takes no more")],
)
def test_wrong_usage_is_told(run: Run, args: tuple[str, ...], said: str) -> None:
    result = run("approve", *args)
    assert result.exit_code == Exit.USAGE and said in result.err


def test_where_nothing_is_asked_nothing_is_listed(run: Run, store: Path) -> None:
    result = run("approve", "--list", "--store", store)
    assert (result.exit_code, result.out) == (Exit.DONE, "")
    assert "Nothing waits for an answer." in result.err


def test_a_dry_run_answers_nothing(run: Run, program: str) -> None:
    told = run("approve", "W", "--deny", "--dry-run").out
    assert told == "publish of W publish would be denied\n"
    assert run("approve", "W", "--dry-run", "--json").data["granted"] is True
    [question] = run("approve", "--list", "W", "--json").data["questions"]
    assert question["answer"] is None
    assert run("approve", "--list", "--dry-run").exit_code == Exit.USAGE


def test_what_is_asked_of_a_workflow_that_nobody_runs_is_told_first(run: Run, program: str) -> None:
    told = run("cancel", "W", "--dry-run")
    assert (told.exit_code, told.out) == (Exit.DONE, "Would ask whoever runs it next: cancel W\n")
    for command in ("pause", "checkpoint"):
        assert run(command, "W", "--dry-run").exit_code == Exit.REFUSED
