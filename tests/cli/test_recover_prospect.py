"""A plan ends as the recovery would; forks leave their origin alone, and skipped agents are not run."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import RunOptions
from holdfast.application.recovery.owners import own_name
from holdfast.cli import demo_team
from holdfast.cli.exits import Exit
from holdfast.domain.state import WorkflowState
from tests.cli.conftest import Run
from tests.cli.running import environment, write_program
from tests.recovery.places import Place

PROGRAM = """
import holdfast

app = holdfast.App()


@app.handler("go_on")
def go_on(context):
    return context.checkpoint.id.workflow_id


@app.handler("stumble")
def stumble(context):
    raise RuntimeError("still no tokens")
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place("file", tmp_path)
    with place.open() as service:
        for step in range(1, 5):
            service.create_checkpoint("W", WorkflowState(current_step=step), resume_handler="go_on")
        service.record_decision("W", "go on")
    (tmp_path / "late_shift.py").write_text(PROGRAM)
    return place


@pytest.fixture
def failed(run: Run, tmp_path: Path) -> str:
    """A run that failed at its second agent; answers the program."""
    program = f"{write_program(tmp_path)}:failing"
    assert run("run", program, "--id", "W").exit_code == Exit.RUN_FAILED
    return program


def ends(run: Run, place: Place, *args: str) -> tuple[int, int]:
    """Answer how the plan ends, and then the recovery."""
    planned = run("--store", place.url, "recover", "W", *args, "--plan")
    assert "Nothing was changed" in planned.err
    return planned.exit_code, run("--store", place.url, "recover", "W", *args).exit_code


def test_a_plan_of_what_nothing_verifies_of_ends_with_thirty(run: Run, place: Place) -> None:
    place.damage_keyframe("W", 1)
    assert ends(run, place) == (Exit.NOTHING_VALID, Exit.NOTHING_VALID)


def test_a_plan_of_what_ended_or_says_that_it_cannot_be_resumed_ends_as_the_recovery(
    run: Run, place: Place
) -> None:
    with place.open() as service:
        service.create_checkpoint("W", WorkflowState(resumable=False))
    assert ends(run, place) == (Exit.REFUSED, Exit.REFUSED)
    with place.open() as service:
        service.create_checkpoint("W", {"n": 5}, type="workflow_complete")
    assert ends(run, place) == (Exit.REFUSED, Exit.REFUSED)


def test_a_plan_of_what_somebody_has_ends_with_eleven(run: Run, place: Place) -> None:
    with place.open() as service:
        service.acquire_lease("W", "worker-7", ttl_seconds=600)
    assert ends(run, place) == (Exit.LOCKED, Exit.LOCKED)
    told = run("--store", place.url, "recover", "W", "--plan", "--json")
    assert told.exit_code == Exit.LOCKED and "worker-7 has the workflow" in told.data["refusals"][0]
    assert ends(run, place, "--take-over") == (Exit.DONE, Exit.DONE)


def test_a_plan_of_effects_that_may_happen_twice_ends_with_thirty_one(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "demo"
    options = RunOptions(handles_signals=False, config={"thinking_seconds": 0.001})
    with holdfast.open(str(store), retain=False) as service, contextlib.redirect_stdout(io.StringIO()):
        demo_team.team.run_sync(service, "kelp", options=options)
    back = ("recover", "kelp", "--to", "9", "--plan", "--store", store)
    assert run(*back).exit_code == Exit.REFUSED
    assert run(*back, "--allow-repeat-effects").exit_code == Exit.DONE
    # An agent that does not run again repeats no effect.
    assert run(*back, "--fork", "tide", "--skip-agent", "publish").exit_code == Exit.DONE
    made = run(*back[:4], "--store", store, "--fork", "tide", "--skip-agent", "publish", "--json")
    assert made.exit_code == Exit.DONE and made.data["skipped_steps"] == ["publish"]


def test_a_plan_knows_what_keeps_a_handler_from_its_work(run: Run, place: Place) -> None:
    with_app = ("--app", "late_shift:app")
    assert ends(run, place, *with_app, "--handler", "nobody") == (Exit.REFUSED, Exit.REFUSED)
    skipping = (*with_app, "--handler", "nobody", "--skip-validation")
    assert ends(run, place, *skipping) == (Exit.NOT_FOUND, Exit.NOT_FOUND)
    for _ in range(3):
        stumbling = ("recover", "W", *with_app, "--handler", "stumble")
        assert run("--store", place.url, *stumbling).exit_code == Exit.PARTIAL
    assert ends(run, place, *with_app) == (Exit.REFUSED, Exit.REFUSED)
    assert ends(run, place, *with_app, "--skip-validation") == (Exit.DONE, Exit.DONE)


def test_a_plan_of_what_would_be_recovered_ends_with_zero(run: Run, place: Place) -> None:
    place.damage_record("W", 4)
    assert ends(run, place) == (Exit.DONE, Exit.OLDER)


def heads(place: Place) -> Any:
    with place.open() as service:
        store = service._engine.kit.store
        return store.head("W"), store.lease("W")


def test_a_fork_leaves_its_origin_as_it_is(run: Run, place: Place) -> None:
    with place.open() as service:
        service.acquire_lease("W", "worker-7", ttl_seconds=600)
    before = heads(place)
    result = run("--store", place.url, "recover", "W", "--fork", "V", "--json")
    assert result.exit_code == Exit.DONE and heads(place) == before
    assert any("worker-7 still works on W" in text for text in result.data["warnings"])
    with place.open() as service:
        state = service.load_latest("V")
        assert state is not None and (state.current_step, len(state.decisions)) == (4, 1)
        assert service.events("V", type="WORKFLOW_RECOVERED") and not service.events(
            "W", type="WORKFLOW_RECOVERED"
        )


def test_a_fork_goes_past_damage_and_says_so(run: Run, place: Place) -> None:
    with place.open() as service:
        last = service.record_decision("W", "and on").seq
    place.damage_record("W", 4)
    place.damage_event("W", last)
    planned = run("--store", place.url, "recover", "W", "--fork", "V", "--plan")
    assert "stays as it is" in planned.out and "would go to quarantine" not in planned.out
    result = run("--store", place.url, "recover", "W", "--fork", "V", "--json")
    assert result.exit_code == Exit.OLDER and result.data["passed_over"] == [4]
    assert result.data["events_lost"] == 1 and result.data["quarantined"] == []
    assert run("--store", place.url, "validate", "V@1").exit_code == Exit.DONE


def test_a_fork_may_begin_at_an_earlier_checkpoint_also_of_what_ended(run: Run, place: Place) -> None:
    with place.open() as service:
        service.create_checkpoint("W", {"n": 5}, type="workflow_complete")
    assert run("--store", place.url, "recover", "W", "--fork", "V").exit_code == Exit.REFUSED
    result = run("--store", place.url, "recover", "W", "--fork", "V", "--to", "2", "--json")
    assert result.exit_code == Exit.DONE and result.data["forked_from"] == "W@2"


def test_the_handler_of_the_origin_goes_on_with_the_fork(run: Run, place: Place) -> None:
    forking = ("recover", "W", "--fork", "V", "--app", "late_shift:app")
    result = run("--store", place.url, *forking, "--json")
    assert result.exit_code == Exit.DONE and result.data["resumed_workflow_id"] == "V"
    unknown = run("--store", place.url, *forking[:3], "U", *forking[4:], "--handler", "nobody")
    assert unknown.exit_code == Exit.REFUSED and "nobody registered" in unknown.err
    assert run("--store", place.url, "show", "U").exit_code == Exit.NOT_FOUND


def test_a_name_that_is_taken_is_refused_by_plan_and_recovery(run: Run, place: Place) -> None:
    for more in ((), ("--plan",)):
        result = run("--store", place.url, "recover", "W", "--fork", "W", *more)
        assert result.exit_code == Exit.LOCKED and "of that name already" in result.err


def test_nothing_is_forked_where_nothing_verifies(run: Run, place: Place) -> None:
    place.damage_keyframe("W", 1)
    for more in ((), ("--plan",)):
        result = run("--store", place.url, "recover", "W", "--fork", "V", *more)
        assert result.exit_code == Exit.NOTHING_VALID


def test_a_run_goes_on_without_an_agent_that_is_skipped(run: Run, failed: str) -> None:
    result = run("recover", "W", "--skip-agent", "last", "--reason", "no fuel")
    assert result.exit_code == Exit.DONE and "last is skipped" in result.out
    resumed = run("resume", "W", "--app", failed)
    assert resumed.exit_code == Exit.DONE
    assert "skipped by a recovery: no fuel" in run("events", "W", "--json").out


def test_what_is_left_of_items_is_skipped(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:plain"
    assert run("run", program, "--id", "W", "--input", "question=why").exit_code == Exit.DONE
    back = ("recover", "W", "--to", "1", "--fork", "V", "--skip-agent", "research", "--skip-agent", "write")
    assert run(*back, "--json").data["skipped_steps"] == ["research", "write"]
    assert run("resume", "V", "--app", program).exit_code == Exit.DONE
    assert "research[" not in run("events", "V", "--json").out


def test_an_agent_that_is_not_there_or_is_done_cannot_be_skipped(run: Run, failed: str) -> None:
    for more in ((), ("--plan",)):
        unknown = run("recover", "W", "--skip-agent", "lst", *more)
        assert unknown.exit_code == Exit.NOT_FOUND and "Did you mean last?" in unknown.err
        done = run("recover", "W", "--skip-agent", "first", *more)
        assert done.exit_code == Exit.REFUSED and "nothing is left to skip of first" in done.err
    assert "AGENT_SKIPPED" not in run("events", "W", "--json").out


def test_a_lease_keeps_an_agent_from_being_skipped_unless_its_process_is_gone(run: Run, failed: str) -> None:
    with holdfast.open(".holdfast") as service:
        lease = service.acquire_lease("W", "worker-7", ttl_seconds=600)
        assert run("recover", "W", "--skip-agent", "last").exit_code == Exit.LOCKED
        assert "AGENT_SKIPPED" not in run("events", "W", "--json").out
        service.release_lease(lease)
        gone = own_name("run").rpartition(":")[0] + ":1"
        service.acquire_lease("W", gone, ttl_seconds=600)
    assert run("recover", "W", "--skip-agent", "last").exit_code == Exit.DONE


KILLED = """
import os, signal, sys
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.cli.main import main

workflow, last, *args = sys.argv[1:]
real, made = FilesystemStore.commit, []

def commit(self, commits):
    outcomes = real(self, commits)
    if any(one.workflow_id == workflow for one in commits):
        made.append(commits)
    if len(made) == int(last):
        os.kill(os.getpid(), signal.SIGKILL)
    return outcomes

FilesystemStore.commit = commit
raise SystemExit(main(args))
"""


def killed(folder: Path, workflow: str, after: int, *args: str) -> None:
    """Call the command line, and kill it right after a commit of a workflow."""
    words = [sys.executable, "-c", KILLED, workflow, str(after), *args]
    done = subprocess.run(words, cwd=folder, capture_output=True, env=environment(folder), check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_fork_that_was_killed_on_its_way_skips_all_or_is_not_there(
    run: Run, tmp_path: Path, after: int
) -> None:
    program = f"{write_program(tmp_path)}:plain"
    assert run("run", program, "--id", "W", "--input", "question=why").exit_code == Exit.DONE
    skips = ("--skip-agent", "research", "--skip-agent", "write")
    back = ("recover", "W", "--to", "1", "--fork", "V", *skips, "--reason", "no fuel")
    killed(tmp_path, "V", after, *back)
    # The fork is a whole one, so its name is taken, and whoever resumes it skips what was to be skipped.
    assert run(*back).exit_code == Exit.LOCKED
    assert "skipped by a recovery: no fuel" in run("show", "V@1", "--state").out
    assert run("resume", "V", "--app", program).exit_code == Exit.DONE
    told = run("events", "V", "--json").out
    assert "research[" not in told and told.count("AGENT_COMPLETED") == 1


def test_skips_of_a_workflow_are_one_commit_and_may_be_asked_for_again(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:twice"
    assert run("run", program, "--id", "W", "--no-wait").exit_code == Exit.WAITING
    skipping = ("recover", "W", "--skip-agent", "ask")
    killed(tmp_path, "W", 1, *skipping)
    assert run("events", "W", "--json").out.count("AGENT_SKIPPED") == 2
    again = run(*skipping)
    assert again.exit_code == Exit.DONE and "ask is skipped already" in again.out
    assert run("events", "W", "--json").out.count("AGENT_SKIPPED") == 2
    assert run("resume", "W", "--app", program).exit_code == Exit.DONE


def test_what_was_skipped_in_part_is_skipped_in_whole_by_the_same_command(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:plain"
    assert run("run", program, "--id", "W", "--input", "question=why").exit_code == Exit.DONE
    assert run("recover", "W", "--to", "1", "--fork", "V", "--skip-agent", "research").exit_code == Exit.DONE
    both = ("recover", "V", "--skip-agent", "research", "--skip-agent", "write")
    assert "research is skipped already" in run(*both, "--plan").out
    assert run(*both, "--json").data["skipped_steps"] == ["write"]


def test_an_agent_that_is_named_twice_is_skipped_once(run: Run, failed: str) -> None:
    twice = ("--skip-agent", "last", "--skip-agent", "last")
    for more in (("--fork", "V"), ()):
        assert run("recover", "W", *twice, *more, "--json").data["skipped_steps"] == ["last"]
    for name in ("V", "W"):
        assert run("events", name, "--json").out.count("AGENT_SKIPPED") == 1


@pytest.mark.parametrize("more", [(), ("--fork", "V")])
def test_nobody_waits_for_what_a_skipped_agent_asked(run: Run, tmp_path: Path, more: tuple[str, ...]) -> None:
    program = f"{write_program(tmp_path)}:panel"
    assert run("run", program, "--id", "W", "--no-wait").exit_code == Exit.WAITING
    assert run("recover", "W", "--skip-agent", "publish", *more).exit_code == Exit.DONE
    name = more[-1] if more else "W"
    assert run("approve", "--list", name, "--json").data["questions"] == []
    assert run("approve", name).exit_code == Exit.NOT_FOUND
    [row] = [one for one in run("list", "--json").data["workflows"] if one["workflow_id"] == name]
    assert row["status"] == "idle"
    assert run("resume", name, "--app", program).exit_code == Exit.DONE


def test_a_run_goes_on_waiting_for_what_others_asked(run: Run, tmp_path: Path) -> None:
    name = write_program(tmp_path)
    with (tmp_path / name).open("a") as program:
        program.write("\n\n@panel.agent(after=review)\nasync def sell(ctx):\n")
        program.write("    await ctx.approve('Sell it?', name='sell')\n")
    assert run("run", f"{name}:panel", "--id", "W", "--no-wait").exit_code == Exit.WAITING
    assert run("recover", "W", "--skip-agent", "publish").exit_code == Exit.DONE
    [question] = run("approve", "--list", "W", "--json").data["questions"]
    [row] = run("list", "--json").data["workflows"]
    assert (question["step_id"], row["status"]) == ("sell", "waiting")


LOOP = """
from holdfast import Workflow

team = Workflow("team")


@team.agent
def plan(ctx):
    raise ValueError("no plan")


improve = team.loop("improve", limit=2, after=plan)
improve.agent(name="draft")(lambda ctx: 1)
improve.evaluator(name="judge")(lambda ctx: True)
"""


def test_an_agent_of_a_loop_that_has_not_begun_is_told_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "reef_loop.py").write_text(LOOP)
    assert run("run", "reef_loop.py:team", "--id", "W").exit_code == Exit.RUN_FAILED
    result = run("recover", "W", "--skip-agent", "draft")
    assert result.exit_code == Exit.REFUSED and "its loop has not begun" in result.err
    assert "from its first round on" in result.err and "runs an agent again" not in result.err


def test_the_way_on_of_a_run_is_to_resume_it(run: Run, failed: str) -> None:
    for more in ((), ("--skip-agent", "last")):
        told = run("recover", "W", *more).err
        assert f"`holdfast resume W --app {failed}` goes on with it" in told and "handler" not in told


def test_what_goes_on_with_an_older_state_does_so(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:plain"
    assert run("run", program, "--id", "W").exit_code == Exit.DONE
    told = run("recover", "W", "--to", "2").err
    assert "is still the newest; the same with --checkpoint records this state after it" in told
    assert f"and then `holdfast resume W --app {program}` goes on with it" in told
    assert run("resume", "W", "--app", program).out.startswith("W completed before; nothing was run")
    made = run("recover", "W", "--to", "2", "--checkpoint").err
    assert f"resumed. `holdfast resume W --app {program}` goes on with it" in made and "newest" not in made
    assert run("resume", "W", "--app", program).out.startswith("W completed in ")
    last = run("list", "W", "--json", "--limit", 1).data["checkpoints"][0]["sequence"]
    over = run("recover", "W", "--to", last).err
    assert f"ended with checkpoint {last}: there is nothing to go on with" in over
    assert "holdfast resume" not in over


def test_whose_program_nobody_knows_is_named_by_its_form(run: Run, place: Place) -> None:
    with place.open() as service:
        graph = {"stages": [{"name": "a", "agents": [{"name": "a"}]}]}
        service.create_checkpoint("G", WorkflowState(dag_structure=graph))
    told = run("--store", place.url, "recover", "G").err
    assert "holdfast resume G --app FILE.py:OBJECT" in told
    assert "holdfast resume" not in run("--store", place.url, "recover", "W").err
