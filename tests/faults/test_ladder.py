"""Every step of the ladder, down and up, by real faults; and what is told is what is stored."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults.rooms import can_mount
from tests.faults.scenes import stored

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 280
ROOMS = ["tmpfs", "limit"] if can_mount() else ["limit"]


def run(name, folder, *, is_killed=False, **options):
    """Play a scene in a process, and a view of the file systems, of its own."""
    inside = ["unshare", "--mount"] if options.get("room") == "tmpfs" else []
    (folder / "room").mkdir(exist_ok=True)
    given = json.dumps({"folder": str(folder / "room"), **options})
    command = [*inside, sys.executable, "-m", "tests.faults.scenes", name, given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == (-9 if is_killed else 0), done.stderr
    return json.loads(done.stdout), done.stderr


def check(played):
    """What was told is what is stored: every state under its number, every event in its order."""
    told = {str(one["number"]): one["step"] for one in played["receipts"] if one["kind"] == "state"}
    assert played["states"] == told
    assert played["facts"] == [one["step"] for one in played["receipts"] if one["kind"] == "event"]
    assert played["problems"] == [] and played["faults"] == []


@pytest.mark.parametrize("room", ROOMS)
def test_on_a_full_disk_states_wait_while_events_are_durable_and_all_is_written_later(room, tmp_path):
    played, _ = run("full_disk", tmp_path, room=room)
    check(played)
    assert played["steps"] == ["full->event_only", "event_only->full"]
    waited = [one for one in played["receipts"] if not one["durable"]]
    assert [one["kind"] for one in waited] == ["state"] * 3
    assert all(one["mode"] == "event_only" for one in played["receipts"][1:7])
    assert sum(one["commits"] for one in played["written"]) >= 3
    assert played["written"][0]["moved"] == {}
    assert played["audit"].count("STORE_DEGRADED") == 2
    assert [(one["from"], one["to"]) for one in played["told"]] == [
        ("full", "event_only"),
        ("event_only", "full"),
    ]


@pytest.mark.parametrize("room", [one for one in ROOMS if one == "tmpfs"] or ["limit"])
def test_when_the_journal_is_full_too_everything_waits_in_memory(room, tmp_path):
    if room == "limit":
        played, _ = run("nothing_at_all", tmp_path)
    else:
        played, _ = run("full_journal", tmp_path, room=room)
    check(played)
    assert played["counters"]["event_only->full"] == 1
    assert any(not one["durable"] and one["kind"] == "event" for one in played["receipts"])


def test_from_memory_the_way_up_leads_over_events(tmp_path):
    played, _ = run("nothing_at_all", tmp_path)
    check(played)
    assert played["steps"] == ["full->memory_only", "memory_only->event_only", "event_only->full"]
    assert [one["durable"] for one in played["receipts"]] == [True, False, False, True]


def test_a_store_in_one_file_that_may_not_grow_is_left_for_memory_and_found_again(tmp_path):
    url = f"sqlite:{tmp_path}/store.db"
    played, _ = run("nothing_at_all", tmp_path, url=url)
    check(played)
    assert played["steps"][0] == "full->memory_only" and played["steps"][-1] == "event_only->full"


@pytest.fixture
def open_folder():
    """A folder that every user may come to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "room").mkdir()
        (folder / "room").chmod(0o777)
        yield folder


def test_revoked_rights_and_a_memory_budget_that_is_exceeded_end_in_the_second_store(open_folder):
    played, log = run("revoked", open_folder)
    check(played)
    assert played["held_bytes"] <= played["budget"]
    assert played["emergency"] in log
    waited = [one["step"] for one in played["receipts"] if not one["durable"]]
    assert list(played["in_emergency"].values())[::-1] == waited
    for step in ("full->event_only", "event_only->emergency", "emergency->memory_only", "event_only->full"):
        assert played["counters"][step] == 1


@pytest.mark.parametrize("on_fault", ["raise", "degrade"])
@pytest.mark.parametrize("room", [*(one for one in ROOMS if one == "tmpfs"), "quota"])
def test_on_a_full_disk_pruning_makes_room_and_nobody_notices(room, on_fault, tmp_path):
    played, log = run("room_by_pruning", tmp_path, room=room, on_fault=on_fault)
    check(played)
    assert played["errors"] == [] and played["steps"] == []
    assert all(one["durable"] for one in played["receipts"])
    assert played["kept"] < 12
    assert "pruning gave back" in log


def test_what_was_called_durable_survives_a_kill_in_the_middle_of_it(tmp_path):
    receipts, _ = run("killed", tmp_path, is_killed=True, lies=False)
    assert lost(receipts, tmp_path) == []
    assert any(not one["durable"] for one in receipts) and any(one["durable"] for one in receipts)


def test_a_ladder_that_lies_is_caught_by_that_test(tmp_path):
    receipts, _ = run("killed", tmp_path, is_killed=True, lies=True)
    assert all(one["durable"] for one in receipts)
    assert lost(receipts, tmp_path) != []


def lost(receipts, folder):
    """Name what was called durable and is not there."""
    found = stored(f"{folder}/room/store", retain=False)
    kept = {*found["states"].values(), *found["facts"]}
    return [one["step"] for one in receipts if one["durable"] and one["step"] not in kept]
