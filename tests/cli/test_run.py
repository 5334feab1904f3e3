"""`holdfast run`, in this process and in others that are killed and told to end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, entries
from tests.cli.running import called, heeded, open_gate, running, write_program


def test_a_workflow_is_run_and_its_end_is_told(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    inputs = ("--input", "question=why", "--config", "tone=dry")
    result = run("run", f"{program}:plain", "--id", "W", *inputs)
    assert result.exit_code == Exit.DONE
    first, *lines = result.out.splitlines()
    assert first.startswith("W completed in ")
    told = {line[2:14].strip(): line[15:] for line in lines}
    assert told["agents"] == "5 run"
    assert (told["tokens"], told["calls"], told["cost"]) == ("120", "2", "0.2500 USD")
    assert told["checkpoints"] == "4, the last is W@4"
    assert told["outputs"] == "3 outputs"
    assert json.loads(told["value"]) == {"found": ["kelp why", "tide why", "reef why"], "tone": "dry"}
    assert "go on with" not in told
    assert "a program may print\n" in result.err
    assert "research[2]: done in " in result.err


def test_the_result_is_one_json_document(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    result = run("run", f"{program}:plain", "--id", "W", "--json", "--store", "sqlite:own.db")
    data = result.data
    assert (data["workflow_id"], data["program"], data["status"]) == ("W", f"{program}:plain", "completed")
    assert (data["ran"], data["kept"], data["resumed"], data["resume"]) == (5, 0, False, None)
    assert data["metrics"]["tokens"] == 120
    assert data["value"]["tone"] is None
    assert Path("own.db").is_file()


def test_a_run_that_ended_is_told_again_and_nothing_is_run(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    assert run("run", f"{program}:plain", "--id", "W").exit_code == Exit.DONE
    again = run("run", f"{program}:plain", "--id", "W")
    assert again.exit_code == Exit.DONE
    assert again.out.startswith("W completed before; nothing was run\n  agents       0 run, 5 kept\n")


def test_a_new_id_is_printed_first(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    first, second, *_ = run("run", f"{program}:plain", "-q").out.splitlines()
    assert first.startswith("plain-") and second.startswith(f"{first} completed in ")
    assert run("show", first).exit_code == Exit.DONE
    assert run("run", f"{program}:plain", "-q").out.splitlines()[0] != first


def test_events_are_lines_of_json_and_the_result_is_the_last(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    result = run("run", f"{program}:plain", "--id", "W", "--json", "--events")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [one["message_type"] for one in lines] == ["event"] * (len(lines) - 1) + ["result"]
    assert [(one["agent"], one["count"]) for one in lines if one.get("event") == "agent_items"] == [
        ("research", 3)
    ]
    assert lines[-2]["event"] == "run_ended" and lines[-1]["status"] == "completed"
    assert {one["workflow_id"] for one in lines} == {"W"}


def test_an_agent_that_fails_ends_the_run_and_it_can_be_resumed(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    failed = run("run", f"{program}:failing", "--id", "W", "-q")
    assert failed.exit_code == Exit.RUN_FAILED
    assert failed.out.startswith("W failed in ")
    assert f"`holdfast resume W --app {program}:failing`" in failed.out
    assert "error: the agent failed: ValueError: no \\x1b[31mfuel (" in failed.err
    assert ", in last)\n   at: W last\n" in failed.err
    again = run("run", f"{program}:failing", "--id", "W", "--json")
    assert (again.data["status"], again.data["kept"], again.data["ran"]) == ("failed", 1, 1)
    assert again.error["code"] == "agent_failed"
    Path("mended").touch()
    assert run("run", f"{program}:failing", "--id", "W").exit_code == Exit.DONE


LEAKING = """
from holdfast import Workflow

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0" + "K1l2M3n4O5p6Q7r8"
leaking = Workflow("leaking")
loop = leaking.loop("loop", limit=1)


@loop.evaluator
def judge(ctx):
    ctx.progress(0.5, f"uses {TOKEN}")
    ctx.blocked(f"by {TOKEN}")
    return {"content": True, "issues": [TOKEN]}


@leaking.agent(after=loop)
def agent(ctx):
    raise RuntimeError(f"no login with {TOKEN}")

"""


@pytest.mark.parametrize("options", [[], ["--json"], ["--json", "--events"]])
def test_what_a_run_says_of_its_program_holds_no_secret(run: Run, tmp_path: Path, options: list[str]) -> None:
    told = run("run", f"{write_program(tmp_path, LEAKING)}:leaking", "--id", "WF-1", *options)
    assert told.exit_code == Exit.RUN_FAILED and "no login with [REDACTED:" in told.out + told.err
    assert "A1b2C3d4E5" not in told.out + told.err


def test_a_condition_that_fails_is_no_defect_of_ours(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    result = run("run", f"{program}:unsure", "--id", "W", "--json")
    assert result.exit_code == Exit.RUN_FAILED
    assert (result.error["code"], result.data["status"]) == ("agent_failed", "failed")
    assert "ZeroDivisionError" in result.error["message"]


def test_an_agent_that_leaves_is_told(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    result = run("run", f"{program}:leaving", "--id", "W")
    assert result.exit_code == Exit.RUN_FAILED
    assert "the agent called sys.exit(" in result.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nothing_here:team",), "there is no module nothing_here"),
        (("PROGRAM:number",), "number is of type int, not Workflow"),
        (("PROGRAM:plan_",), "Did you mean plan"),
        (("PROGRAM:plain", "--events"), "--events needs --json"),
        (("PROGRAM:plain", "--config", "program=x"), "the program itself is remembered"),
        (("PROGRAM:plain", "--input", "gone.json"), "there is no file gone.json"),
        (("PROGRAM:plain", "--lease-seconds", "0"), "--lease-seconds"),
        (("PROGRAM:plain", "--id", " W"), "the workflow id"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_run(
    run: Run, tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    program = write_program(tmp_path)
    result = run("run", *(word.replace("PROGRAM", program) for word in args))
    assert result.exit_code == Exit.USAGE
    assert said in result.err and "Traceback" not in result.err
    assert not Path(".holdfast/checkpoints").exists()


@pytest.mark.parametrize(("began", "ended"), [("plain", 0), ("failing", Exit.RUN_FAILED)])
def test_an_id_of_another_workflow_is_refused_and_stays_as_it_is(
    run: Run, tmp_path: Path, began: str, ended: int
) -> None:
    program = write_program(tmp_path)
    assert run("run", f"{program}:{began}", "--id", "W").exit_code == ended
    before = run("list", "W", "--json").data
    refused = run("run", f"{program}:twice", "--id", "W")
    assert refused.exit_code == Exit.REFUSED
    assert f"the id belongs to '{began}', and not to the workflow 'twice'" in refused.err
    assert run("list", "W", "--json").data == before


def test_a_graph_that_changed_is_refused_where_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    (tmp_path / program).write_text((tmp_path / program).read_text().replace('("failing"', '("plain"'))
    assert run("run", f"{program}:failing", "--id", "W").exit_code == Exit.RUN_FAILED
    refused = run("run", f"{program}:plain", "--id", "W", "--strict")
    assert refused.exit_code == Exit.REFUSED and refused.out == ""
    assert "not the one that was begun" in refused.err
    kept = run("run", f"{program}:plain", "--id", "W", "--json")
    assert kept.data["status"] == "completed"
    assert "agent 'plan' is new: it is run now" in kept.data["warnings"]


def test_a_run_that_waits_for_an_answer_may_end_meanwhile(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    result = run("run", f"{program}:panel", "--id", "W", "--no-wait")
    assert result.exit_code == Exit.WAITING
    assert result.out.startswith("W waiting in ")
    assert "waiting for  publish of publish: `holdfast approve W publish --step publish`" in result.out


@pytest.mark.parametrize("url", [".holdfast", "sqlite:own.db"])
def test_a_run_that_is_killed_is_gone_on_with_and_repeats_nothing(tmp_path: Path, url: str) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    words = ("run", f"{program}:gated", "--id", "W")
    with running(tmp_path, *words, "--store", url) as first:
        first.until("agent_started", step_id="work")
        first.process.send_signal(signal.SIGKILL)
        assert first.process.wait() == -signal.SIGKILL
    with running(tmp_path, "resume", "W", "--app", f"{program}:gated", "--store", url) as second:
        second.until("agent_started", step_id="work")
        open_gate(tmp_path)
        exit_code, result = second.ended()
    assert (exit_code, result["value"]) == (Exit.DONE, "prepared worked")
    assert (result["kept"], result["ran"], result["resumed"]) == (1, 2, True)
    assert (tmp_path / "ran.txt").read_text() == "prepare\n"
    assert called(tmp_path, "validate", "--deep", "-q", "--store", url).returncode == Exit.DONE


@pytest.mark.parametrize(("number", "leave"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_with_a_last_checkpoint(
    tmp_path: Path, number: signal.Signals, leave: int
) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    with heeded(number), running(tmp_path, "run", f"{program}:gated", "--id", "W") as process:
        process.until("agent_started", step_id="work")
        # The agent never returns: nobody waits for it.
        process.process.send_signal(number)
        exit_code, result = process.ended()
    assert (exit_code, result["status"]) == (leave, "stopped")
    assert (result["ran"], result["resume"]) == (2, f"holdfast resume W --app {program}:gated")
    shown = json.loads(called(tmp_path, "show", "W", "--json").stdout)
    assert shown["checkpoint"]["id"] == result["last_checkpoint"]
    assert shown["state"]["status"] == "stopped"


def test_two_cannot_run_one_workflow(tmp_path: Path) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    words = ("run", f"{program}:gated", "--id", "W")
    with running(tmp_path, *words) as first:
        first.until("agent_started", step_id="work")
        second = called(tmp_path, *words, "--json")
        assert second.returncode == Exit.LOCKED and second.stdout == ""
        assert json.loads(second.stderr)["code"] == "lease_held"
        open_gate(tmp_path)
        assert first.ended()[0] == Exit.DONE


@pytest.mark.parametrize("name", ["", "x@2", "x@latest", "-x"])
def test_an_id_that_would_mean_something_else_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    program = write_program(tmp_path)
    assert run("run", f"{program}:plain", f"--id={name}").exit_code == Exit.USAGE


def test_a_dry_run_loads_the_program_and_runs_nothing_of_it(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    told = run("run", f"{program}:plain", "--id", "W", "--dry-run", "--json").data
    assert (told["dry_run"], told["is_new"], told["agents"]) == (True, True, ["plan", "research", "write"])
    assert not Path(".holdfast").exists()
    named = run("run", f"{program}:plain", "--dry-run").out
    assert named.startswith("Would begin plain-") and named.endswith(": 3 agents\n")


def test_the_reason_of_a_run_is_told(run: Run, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    assert run("run", f"{program}:plain", "--id", "W", "--reason", "asked for").exit_code == Exit.DONE
    [told] = entries(run, ".holdfast", "REQUEST_MADE")
    assert (told["workflow"], told["data"]["command"]) == ("W", "run")
    assert told["correlation"] == entries(run, ".holdfast", "CHECKPOINT_CREATED")[0]["correlation"]
    again = run("resume", "W", "--app", f"{program}:plain", "--dry-run").out
    assert again.startswith("Would go on with W with ")


FULL = """
import resource

from holdfast import Workflow

team = Workflow("team")


@team.agent
def work(ctx):
    if ctx.inputs["full"]:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    return 7
"""


def test_a_run_whose_end_cannot_be_written_anywhere_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "full.py").write_text(FULL)
    full = called(tmp_path, "run", "full.py:team", "--id", "W", "--input", "full=true", "--json")
    data = json.loads(full.stdout)
    assert full.returncode == Exit.UNEXPECTED
    assert (data["value"], data["last_checkpoint"]) == (7, "W@1")
    assert "LOST" in data["warnings"][-1] and data["resume"] == "holdfast resume W --app full.py:team"
    error = json.loads(full.stderr[full.stderr.index("{") :])
    assert (error["code"], error["exit_code"], error["place"]) == ("result_lost", 1, "W")
    again = called(tmp_path, "resume", "W", "--app", "full.py:team", "--json")
    assert again.returncode == Exit.UNEXPECTED, "it was begun with the same inputs"
    assert "LOST" in json.loads(again.stdout)["warnings"][-1]


def test_the_same_run_on_a_disk_with_room_is_one(tmp_path: Path) -> None:
    (tmp_path / "full.py").write_text(FULL)
    done = called(tmp_path, "run", "full.py:team", "--id", "W", "--input", "full=false", "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["warnings"], data["last_checkpoint"]) == (Exit.DONE, [], "W@2")
    assert done.stderr == ""
