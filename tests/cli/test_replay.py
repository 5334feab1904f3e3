from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from holdfast.domain.state import WorkflowState
from tests.cli.conftest import Run, damage_record


@pytest.fixture
def diverged(tmp_path: Path) -> Path:
    """A store with a change of each kind, from checkpoint 1 to checkpoint 2."""
    place = tmp_path / "diverged"
    with bootstrap.open(str(place)) as service:
        state = WorkflowState(context={"n": 0}, messages=[])
        service.create_checkpoint("WF-1", state)
        service.append_event("WF-1", "CONTEXT_UPDATED", {"context": {"n": 1}})
        service.record_decision("WF-1", "go on")
        service.append_event("WF-1", "MESSAGE_ADDED", {"message": "same"})
        state.context["n"] = 2
        state.messages.append("same")
        state.current_step = 1
        service.create_checkpoint("WF-1", state)
        service.append_event("WF-1", "MESSAGE_ADDED", {"message": "later"})
    return place


def kinds(data: Any) -> list[tuple[str, str]]:
    return [(one["kind"], one["path"]) for step in data["steps"] for one in step["differences"]]


def test_changes_of_the_caller_are_no_divergence(run: Run, store: Path):
    result = run("replay", "WF-1", "--store", store)
    assert result.exit_code == Exit.DONE
    assert result.out.splitlines() == [
        "WF-1@1 -> WF-1@3: 4 events, 1 replayed; no divergence; 5 changes that no event explains; 1 left out"
    ]


def test_every_difference_is_shown_on_demand(run: Run, store: Path):
    lines = run("replay", "WF-1", "--all", "--store", store).out.splitlines()
    assert lines[0] == "WF-1@1 -> WF-1@2: 2 events, 1 replayed"
    assert "  unexplained  current_step = 1, was 0" in lines
    assert any(line.startswith("  left out     decisions: event 2 gives [{") for line in lines)


def test_a_divergence_is_shown_and_ends_with_six(run: Run, diverged: Path):
    result = run("replay", "WF-1", "--store", diverged)
    assert result.exit_code == Exit.DIVERGED
    assert result.out.splitlines() == [
        "WF-1@1 -> WF-1@2: 4 events, 3 replayed",
        "  diverged     context.n: event 2 gives 1, stored is 2",
        "WF-1@1 -> WF-1@event:6: 5 events, 4 replayed; 1 divergence; "
        "1 change that no event explains; 1 left out",
    ]


def test_a_report_for_programs(run: Run, diverged: Path):
    result = run("replay", "WF-1", "--store", diverged, "--json")
    assert result.exit_code == Exit.DIVERGED
    data = result.data
    assert (data["workflow_id"], data["from"], data["to"]) == ("WF-1", "WF-1@1", "WF-1@event:6")
    assert (data["events"], data["replayed"]) == (5, 4)
    assert (data["diverged"], data["unexplained"], data["left_out"]) == (1, 1, 1)
    assert sorted(kinds(data)) == [
        ("diverged", "/context/n"),
        ("left_out", "/decisions"),
        ("unexplained", "/current_step"),
    ]
    (one,) = [one for one in data["steps"][0]["differences"] if one["kind"] == "diverged"]
    assert one == {
        "kind": "diverged",
        "path": "/context/n",
        "event_seq": 2,
        "before": 0,
        "replayed": 1,
        "stored": 2,
    }
    assert [step["differences"] for step in data["steps"][1:]] == [[]]


@pytest.mark.parametrize(
    ("options", "start", "end", "leave"),
    [
        (["--to", "event:3"], "WF-1@1", "WF-1@event:3", Exit.DONE),
        (["--to", "WF-1@event:4"], "WF-1@1", "WF-1@event:4", Exit.DONE),
        (["--to", "2"], "WF-1@1", "WF-1@2", Exit.DIVERGED),
        (["--from", "2"], "WF-1@2", "WF-1@event:6", Exit.DONE),
        (["--from", "latest", "--to", "latest"], "WF-1@2", "WF-1@2", Exit.DONE),
    ],
)
def test_it_goes_from_anywhere_to_anywhere(
    run: Run, diverged: Path, options: list[str], start: str, end: str, leave: int
):
    result = run("replay", "WF-1", *options, "--store", diverged, "--json")
    assert (result.data["from"], result.data["to"], result.exit_code) == (start, end, leave)


def test_what_was_left_out_counts_when_asked(run: Run, store: Path):
    strict = run("replay", "WF-1", "--strict", "--store", store)
    assert strict.exit_code == Exit.DIVERGED
    assert "  left out     decisions: event" in strict.out and "left out, refused by --strict" in strict.out


def test_reducers_of_the_application_take_part(run: Run, diverged: Path, tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "replay_app.py").write_text(
        "from holdfast.application.app import App\n"
        "app = App()\n"
        "@app.reducer('CONTEXT_UPDATED')\n"
        "def twice(fields, event):\n"
        "    return {**fields, 'context': {'n': 2 * event.data['context']['n']}}\n"
    )
    result = run("replay", "WF-1", "--app", "replay_app:app", "--store", diverged)
    assert result.exit_code == Exit.DONE


def test_an_event_that_does_not_fit_is_told(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", "MESSAGE_ADDED", {})
    result = run("replay", "WF-1", "--store", store)
    assert result.exit_code == Exit.PARTIAL
    assert "  skipped event 6 (MESSAGE_ADDED): KeyError: 'message'" in result.out.splitlines()


def test_a_checkpoint_that_cannot_be_compared_is_told(run: Run, store: Path):
    damage_record(store, 3)
    result = run("replay", "WF-1", "--store", store)
    assert result.exit_code == Exit.PARTIAL
    assert "WF-1@2 -> WF-1@3: cannot be compared: " in result.out


def test_a_workflow_that_is_not_there_is_guessed(run: Run, store: Path):
    result = run("replay", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean WF-1 or WF-2?" in result.err


def test_a_replay_is_told_in_the_trail(run: Run, store: Path):
    run("replay", "WF-1", "--store", store)
    told = run("audit", "log", "--type", "STATE_READ", "--store", store, "--json").data
    assert told["data"] == {"from": "WF-1@1", "to": "WF-1@3", "events": 4}


def test_it_stops_at_the_first_divergence_on_demand(run: Run, diverged: Path):
    whole = run("replay", "WF-1", "--json", "--store", diverged).data
    cut = run("replay", "WF-1", "--until-divergence", "--json", "--store", diverged)
    assert cut.exit_code == Exit.DIVERGED and cut.data["diverged"] >= 1
    kinds = [[one["kind"] for one in step["differences"]] for step in cut.data["steps"]]
    assert "diverged" in kinds[-1] and all("diverged" not in step for step in kinds[:-1])
    assert cut.data["steps"] == whole["steps"][: len(kinds)]
