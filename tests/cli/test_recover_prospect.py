"""A plan ends as the recovery would; forks leave their origin alone, and skipped agents are not run."""

from __future__ import annotations

import contextlib
import io
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
from tests.cli.running import write_program
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
