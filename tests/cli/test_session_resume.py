from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


def test_a_session_that_crashed_is_resumed_and_that_is_said(run: Run, store: Path):
    briefing = run("session", "resume", "s-1", "--agent", "critic", "--store", store)
    assert briefing.exit_code == 0
    assert "continues s-1, which stopped without handing over" in briefing.out
    assert "neither handed off nor closed" in briefing.out
    [successor, _] = run("session", "list", "--json", "--store", store).data["sessions"]
    assert successor["session_id"].startswith("session-")
    assert (successor["source_agent"], successor["continues"]) == ({"id": "critic"}, "s-1")


def test_who_comes_second_is_told_who_was_first(run: Run, store: Path):
    run("session", "resume", "s-1", "--as", "s-2", "--store", store)
    late = run("session", "resume", "s-1", "--as", "s-3", "--json", "--store", store)
    assert late.exit_code == Exit.LOCKED
    assert "'s-2' took over" in late.error["message"]


def test_programs_get_all_of_it(run: Run, store: Path):
    data = run("session", "resume", "s-1", "--as", "s-2", "--json", "--store", store).data
    assert (data["session_id"], data["previous_session_id"], data["is_handed_off"]) == ("s-2", "s-1", False)
    [workflow] = data["workflows"]
    assert (workflow["checkpoint"], workflow["state"]["current_step"]) == ("WF-1@3", 2)
    assert data["trail_hash"].startswith("sha256:")


def test_a_record_that_the_trail_does_not_confirm_is_believed_only_when_asked(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.sessions.open_session("s-5")
    with bootstrap.open(str(store), audit=False) as service:
        service.sessions.hand_off("s-5", summary="untold")
    refused = run("session", "resume", "s-5", "--json", "--store", store)
    assert (refused.exit_code, refused.error["code"]) == (Exit.CORRUPT, "checksum_mismatch")
    taken = run("session", "resume", "s-5", "--skip-validation", "--store", store)
    assert taken.exit_code == 0 and "untold" in taken.out


def test_the_program_that_is_named_brings_its_reducers(run: Run, store: Path, tmp_path: Path):
    (tmp_path / "flows_of_session.py").write_text(
        "import holdfast\n"
        "app = holdfast.App()\n"
        "@app.reducer('COUNTED')\n"
        "def counted(fields, event):\n"
        "    return {**fields, 'current_step': event.data['n']}\n"
    )
    with bootstrap.open(str(store), session="s-7") as service:
        service.create_checkpoint("WF-7", {})
        service.append_event("WF-7", "COUNTED", {"n": 42})
    named = ("--app", "flows_of_session:app", "--json", "--store", store)
    [workflow] = run("session", "resume", "s-7", "--as", "s-8", *named).data["workflows"]
    assert workflow["state"]["current_step"] == 42
