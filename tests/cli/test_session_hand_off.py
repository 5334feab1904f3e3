from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


def test_a_hand_off_says_how_to_go_on(run: Run, store: Path, tmp_path: Path):
    (tmp_path / "left.json").write_text('{"next": "offer 3"}')
    done = run(
        "session", "hand-off", "s-1", "--to", "critic", "--summary", "Half done.",
        "--payload", tmp_path / "left.json", "--context-usage", "0.83", "--store", store,
    )  # fmt: skip
    assert done.out == "Handed off s-1\n"
    assert "holdfast session resume s-1" in done.err
    context = run("session", "show", "s-1", "--json", "--store", store).data["session_context"]
    assert (context["payload"], context["summary"]) == ({"next": "offer 3"}, "Half done.")
    assert (context["context_usage"], context["target_agent"]) == (0.83, {"id": "critic"})


def test_programs_get_the_sum_of_what_was_left(run: Run, store: Path):
    data = run("session", "hand-off", "s-1", "--json", "--store", store).data
    assert data["session_id"] == "s-1" and data["checksum"].startswith("sha256:")
    assert data["warnings"] == []


def test_a_session_ends_once(run: Run, store: Path):
    run("session", "hand-off", "s-1", "--store", store)
    again = run("session", "hand-off", "s-1", "--json", "--store", store)
    assert (again.exit_code, again.error["code"]) == (Exit.UNEXPECTED, "invalid_state")
    assert "session resume s-1" in again.error["hint"]


def test_what_is_no_json_object_is_no_payload(run: Run, store: Path, tmp_path: Path):
    for text in ("[1]", "{"):
        (tmp_path / "left.json").write_text(text)
        refused = run("session", "hand-off", "s-1", "--payload", tmp_path / "left.json", "--store", store)
        assert refused.exit_code == Exit.USAGE and "--payload" in refused.err


def test_what_is_no_session_is_not_handed_off(run: Run, store: Path):
    assert run("session", "hand-off", "s-404", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_workflow_that_cannot_be_told_is_named(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.acquire_lease("WF-1", "worker-1", ttl_seconds=3600)
    done = run("session", "hand-off", "s-1", "--store", store)
    assert done.exit_code == Exit.DONE
    assert "note: WF-1 was not told" in done.err
