"""The person at three in the morning runs one command, and is told the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import bootstrap
from holdfast.application.recovery.owners import own_name
from holdfast.cli.exits import Exit
from holdfast.domain.state import WorkflowState
from tests.cli.conftest import Run, fill, without_privileges
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


@app.handler("speak")
def speak(context):
    print("at work")


@app.handler("leave")
def leave(context):
    raise SystemExit(7)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place("file", tmp_path)
    with place.open() as service:
        for step in range(1, 5):
            state = WorkflowState(current_step=step, total_steps=9, tasks=[{"id": step}])
            service.create_checkpoint("W", state, resume_handler="go_on")
        service.record_decision("W", "go on")
    return place


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "night_shift.py").write_text(PROGRAM)
    return "night_shift:app"


def test_a_workflow_comes_back_and_what_was_done_is_told(run: Run, place: Place) -> None:
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.DONE
    assert "Recovered W from checkpoint 4" in result.out and "1 replayed" in result.out
    assert "step 4 of 9, 1 task, 1 decision" in result.out
    assert "nothing was resumed" in result.err and "--app" in result.err


def test_the_same_for_programs(run: Run, place: Place) -> None:
    told = run("--store", place.url, "recover", "W", "--json").data
    assert told["success"] and told["checkpoint_used"] == "W@4" and told["events_replayed"] == 1
    assert [step["step"] for step in told["steps"]] == ["find", "set aside", "replay", "record"]


def test_a_plan_changes_nothing(run: Run, place: Place) -> None:
    with place.open() as service:
        before = service._engine.kit.store.head("W")
    result = run("--store", place.url, "recover", "W", "--plan")
    assert "W would be recovered from checkpoint 4 (latest)" in result.out
    assert "handler  go_on, not at hand: give --app" in result.out and "Nothing was changed" in result.err
    told = run("--store", place.url, "recover", "W", "--plan", "--json").data
    assert told["checkpoint"] == "W@4" and told["replayed"] == 1
    with place.open() as service:
        assert service._engine.kit.store.head("W") == before


def test_an_older_checkpoint_that_stands_in_has_its_own_exit_code(run: Run, place: Place) -> None:
    place.damage_record("W", 4)
    planned = run("--store", place.url, "recover", "W", "--plan")
    assert "the record of checkpoint 4" in planned.out and "would go to quarantine" in planned.out
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.OLDER
    assert "from checkpoint 3" in result.out and "1 checkpoint in quarantine" in result.out
    assert "stands in for 4" in result.out


def test_if_nothing_verifies_that_is_said_and_a_fresh_start_is_a_flag(run: Run, place: Place) -> None:
    place.damage_keyframe("W", 1)
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.NOTHING_VALID and "none of 4 checkpoints verifies" in result.err
    fresh = run("--store", place.url, "recover", "W", "--fresh")
    assert fresh.exit_code == Exit.OLDER and "the events alone" in fresh.out and "fresh start" in fresh.out


def test_one_goes_back_to_a_checkpoint(run: Run, place: Place) -> None:
    back = ("--store", place.url, "recover", "W", "--to", "2")
    told = run(*back, "--json").data
    assert told["mode"] == "point_in_time" and told["checkpoint_used"] == "W@2"
    assert "Checkpoint 4 is still the newest; --checkpoint" in run(*back).err
    assert "newest" not in run("--store", place.url, "recover", "W", "--to", "4").err
    assert "newest" not in run(*back, "--checkpoint").err
    result = run("--store", place.url, "recover", "W", "--to", "99")
    assert result.exit_code == Exit.NOT_FOUND


def test_a_workflow_that_ended_is_refused(run: Run, place: Place) -> None:
    with place.open() as service:
        service.create_checkpoint("W", {"n": 5}, type="workflow_complete")
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.REFUSED and "ended with checkpoint 5" in result.out
    planned = run("--store", place.url, "recover", "W", "--plan")
    assert planned.exit_code == Exit.REFUSED and "refused" in planned.out
    assert "W would not be recovered" in planned.out


def test_who_is_not_there_is_not_made_up(run: Run, place: Place) -> None:
    result = run("--store", place.url, "recover", "V")
    assert result.exit_code == Exit.NOT_FOUND and "no such workflow" in result.err


def test_a_living_owner_is_not_disturbed(run: Run, place: Place) -> None:
    with place.open() as service:
        service.acquire_lease("W", "worker-7", ttl_seconds=60)
        planned = run("--store", place.url, "recover", "W", "--plan")
        assert "held by worker-7" in planned.out and "nobody else recovers before" in planned.out
        assert run("--store", place.url, "recover", "W").exit_code == Exit.LOCKED


def test_the_program_goes_on_where_its_app_is_named(run: Run, place: Place, program: str) -> None:
    result = run("--store", place.url, "recover", "W", "--app", program, "--reason", "the night shift")
    assert result.exit_code == Exit.DONE and "handler  go_on ended well" in result.out
    with place.open() as service:
        assert service.list_checkpoints("W")[0].status == "completed"


def test_a_handler_that_fails_is_told(run: Run, place: Place, program: str) -> None:
    result = run("--store", place.url, "recover", "W", "--app", program, "--handler", "stumble")
    assert result.exit_code == Exit.PARTIAL
    assert (
        "stumble failed" in result.out and "still no tokens" in result.out and "Traceback" not in result.out
    )


def test_an_app_may_be_named_in_the_configuration(
    run: Run, place: Place, program: str, tmp_path: Path
) -> None:
    (tmp_path / "holdfast.toml").write_text(f'app = "{program}"\n')
    assert "ended well" in run("--store", place.url, "recover", "W").out


def test_a_handler_without_an_app_is_wrong_usage(run: Run, place: Place) -> None:
    result = run("--store", place.url, "recover", "W", "--handler", "go_on")
    assert result.exit_code == Exit.USAGE and "--app" in result.err


@pytest.fixture
def stale(place: Place, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HOLDFAST_STALE_SECONDS", "0")
    return place


def test_without_a_name_it_lists_what_crashed(run: Run, stale: Place) -> None:
    result = run("--store", stale.url, "recover")
    assert "W" in result.out and "WHY" in result.out and "holdfast recover WORKFLOW" in result.err
    told = run("--store", stale.url, "recover", "--json").data
    [one] = told["workflows"]
    assert (one["workflow_id"], one["sequence"], one["checkpoint"]) == ("W", 4, "W@4")
    assert (one["status"], one["cause"], one["owner"]) == ("active", "quiet", None)
    assert one["quiet_seconds"] >= 0 and one["last_activity"].endswith("Z")


def test_and_says_so_if_nothing_did(run: Run, place: Place) -> None:
    result = run("--store", place.url, "recover")
    assert result.out == "" and "Nothing to recover" in result.err
    assert "ended or failed" in result.err and "less than 300 seconds ago" in result.err


def test_a_store_is_recovered_when_it_is_opened_where_that_is_configured(place: Place) -> None:
    with holdfast.open(place.url, auto_recovery=True, stale_seconds=0) as service:
        assert service.events("W", type="WORKFLOW_RECOVERED")


def test_a_plan_knows_a_lease_whose_process_is_gone(run: Run, place: Place) -> None:
    gone = own_name("recovery").rpartition(":")[0] + ":1"
    with place.open() as service:
        service.acquire_lease("W", gone, ttl_seconds=60)
    assert (
        "whose process is gone: it would be ended" in run("--store", place.url, "recover", "W", "--plan").out
    )


def test_a_plan_takes_the_handler_that_is_named(run: Run, place: Place, program: str) -> None:
    with_app = ("--store", place.url, "recover", "W", "--plan", "--app", program, "--handler")
    assert "handler  stumble, at hand" in run(*with_app, "stumble").out
    assert "handler  nobody, which the app does not have" in run(*with_app, "nobody").out
    with place.open() as service:
        service.create_checkpoint("W", {"n": 5})
    assert "nothing would be resumed: give --handler" in run(*with_app[:-1]).out


@pytest.mark.parametrize("args", [("--mode", "point-in-time"), ("--mode", "full", "--to", "2")])
def test_a_mode_that_does_not_go_with_its_target_is_wrong_usage(
    run: Run, place: Place, args: tuple[str, ...]
) -> None:
    result = run("--store", place.url, "recover", "W", *args)
    assert result.exit_code == Exit.USAGE and "--to N" in result.err


@pytest.mark.parametrize("args", [("--to", "2"), ("--fresh",), ("--app", "a:b"), ("--reason", "x")])
def test_how_to_recover_means_nothing_without_a_workflow(
    run: Run, place: Place, args: tuple[str, ...]
) -> None:
    result = run("--store", place.url, "recover", *args)
    assert result.exit_code == Exit.USAGE and "name the WORKFLOW" in result.err


def test_what_a_handler_prints_does_not_get_into_the_json(run: Run, place: Place, program: str) -> None:
    told = run("--store", place.url, "recover", "W", "--app", program, "--handler", "speak", "--json")
    assert told.data["success"] and told.err == "at work\n"


def test_a_handler_that_ends_the_process_does_not_end_it_silently(
    run: Run, place: Place, program: str
) -> None:
    result = run("--store", place.url, "recover", "W", "--app", program, "--handler", "leave")
    assert result.exit_code == Exit.UNEXPECTED and "SystemExit: 7" in result.err


def test_looking_needs_no_permission_to_write(
    run: Run, public_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = public_folder / "store"
    fill(store)
    monkeypatch.chdir(public_folder)
    for path in (store, *store.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_privileges():
        assert run("--store", store, "recover").exit_code == Exit.DONE
        planned = run("--store", store, "recover", "WF-1", "--plan")
    assert planned.exit_code == Exit.DONE and "would be recovered from checkpoint 3" in planned.out


def test_events_that_are_lost_have_their_own_exit_code(run: Run, place: Place) -> None:
    with place.open() as service:
        last = service.record_decision("W", "and on").seq
    place.damage_event("W", last)
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.PARTIAL and "1 replayed, 1 lost" in result.out
    assert run("--store", place.url, "recover", "W", "--json").data["events_lost"] > 0


def test_what_was_recovered_past_damage_is_there_to_go_on_from(run: Run, place: Place) -> None:
    place.damage_record("W", 4)
    result = run("--store", place.url, "recover", "W")
    assert result.exit_code == Exit.OLDER and "kept as  W@5" in result.out
    assert run("--store", place.url, "recover", "W").exit_code == Exit.DONE
    told = run("--store", place.url, "recover", "W", "--to", "2", "--checkpoint", "--json").data
    assert told["checkpoint_made"] == "W@6"


def test_a_lease_can_be_ended(run: Run, place: Place) -> None:
    with place.open() as service:
        service.acquire_lease("W", "worker-7", ttl_seconds=600)
    assert run("--store", place.url, "recover", "W").exit_code == Exit.LOCKED
    assert run("--store", place.url, "recover", "W", "--take-over").exit_code == Exit.DONE


def test_an_app_of_the_configuration_can_be_left_out(
    run: Run, place: Place, program: str, tmp_path: Path
) -> None:
    (tmp_path / "holdfast.toml").write_text(f'app = "{program}"\n')
    assert "nothing was resumed" in run("--store", place.url, "recover", "W", "--no-resume").err
    both = run("--store", place.url, "recover", "W", "--no-resume", "--handler", "go_on")
    assert both.exit_code == Exit.USAGE


def test_retries_that_are_used_up_can_be_passed_over(run: Run, place: Place, program: str) -> None:
    stumbling = ("--store", place.url, "recover", "W", "--app", program, "--handler", "stumble")
    for _ in range(3):
        assert run(*stumbling).exit_code == Exit.PARTIAL
    assert run(*stumbling).exit_code == Exit.REFUSED
    again = run("--store", place.url, "recover", "W", "--app", program, "--skip-validation")
    assert again.exit_code == Exit.DONE and "ended well" in again.out


def test_events_of_which_only_the_trail_still_tells_are_told_as_lost(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", "NOTED")
        service.append_event("WF-1", "NOTED")
    [events] = store.glob("events/*/wf-1*/*.jsonl")
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-2]))
    planned = run("recover", "WF-1", "--plan", "--store", store, "--json").data
    assert any("the trail tells of event" in text for text in planned["warnings"])
    result = run("recover", "WF-1", "--store", store, "--json")
    assert result.exit_code == Exit.PARTIAL and result.data["events_lost"] == 2
    assert any("brings it back" in text for text in result.data["warnings"])
    assert run("doctor", "--store", store).exit_code == Exit.CORRUPT


def test_an_app_may_be_named_by_its_file(run: Run, place: Place, program: str, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "night_shift.py").rename(tmp_path / "inner" / "late_hours.py")
    named = ("--store", place.url, "recover", "W", "--app")
    assert "ended well" in run(*named, "inner/late_hours.py:app").out
    gone = run(*named, "inner/gone.py:app")
    assert gone.exit_code == Exit.USAGE and "there is no such file" in gone.err
    (tmp_path / "json.py").write_text(PROGRAM)
    assert "another module is called json" in run(*named, "json.py:app").err


def test_who_names_a_workflow_is_told_what_runs_it(run: Run, place: Place, tmp_path: Path) -> None:
    (tmp_path / "reef_team.py").write_text("import holdfast\n\nteam = holdfast.Workflow('team')\n")
    for name in ("reef_team:team", "reef_team.py:team"):
        result = run("--store", place.url, "recover", "W", "--app", name)
        assert result.exit_code == Exit.USAGE and "team is a workflow, not an App" in result.err
        assert f"`holdfast resume ID --app {name}` runs a workflow" in result.err
