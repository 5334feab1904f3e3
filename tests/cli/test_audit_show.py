from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


@pytest.fixture
def decision(run: Run, store: Path) -> str:
    """The name of the entry that tells of a decision."""
    found = json.loads(run("audit", "log", "--type", "AGENT_DECISION", "--store", store, "--json").out)
    return f"{found['session']}#{found['seq']}"


def test_an_entry_is_shown_with_its_payload(run: Run, store: Path, decision: str):
    told = run("audit", "show", decision, "--store", store, "--json").data
    assert told["payload"]["rationale"] == "why not" and told["payload_state"] == "opened"
    assert told["entry"]["type"] == "AGENT_DECISION" and isinstance(told["leaf"], int)
    out = run("audit", "show", decision, "--store", store).out
    assert '"rationale": "why not"' in out and "payload, verified" in out and "of the tree" in out


def test_its_id_names_it_as_well(run: Run, store: Path, decision: str):
    entry = run("audit", "show", decision, "--store", store, "--json").data["entry"]
    same = run("audit", "show", f"{entry['session']}:{entry['id']}", "--store", store, "--json").data["entry"]
    assert same == entry


def test_opening_a_payload_is_told_as_a_reveal_and_another_look_as_a_read(
    run: Run, store: Path, decision: str
):
    session, _, seq = decision.rpartition("#")
    run("audit", "show", decision, "--store", store)
    run("audit", "show", "s-1#1", "--store", store)
    lines = run("audit", "log", "--store", store, "--json").out.splitlines()[-2:]
    revealed, read = map(json.loads, lines)
    assert (revealed["type"], read["type"]) == ("SECRET_REVEALED", "TRAIL_READ")
    assert revealed["data"] == {"session": session, "seq": int(seq)}
    assert "why not" not in lines[0]


def test_an_entry_without_a_payload_says_so(run: Run, store: Path):
    told = run("audit", "show", "s-1#1", "--store", store, "--json").data
    assert (told["payload_state"], told["payload"]) == ("none", None)
    assert run("audit", "show", "s-1#1", "--store", store).out.endswith("payload      none\n")


@pytest.mark.parametrize("name", ["s-1#999", "s-1:AE-999999", "s-1#0"])
def test_an_entry_that_is_not_there_is_not_found(run: Run, store: Path, name: str):
    result = run("audit", "show", name, "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "s-1 has entries 1 to" in result.err


def test_a_session_that_is_nearly_right_gets_a_suggestion(run: Run, store: Path):
    assert "Did you mean s-1" in run("audit", "show", "s1#1", "--store", store).err


@pytest.mark.parametrize("name", ["s-1", "#1", "s-1#x", ":AE-1"])
def test_what_names_no_entry_is_wrong_usage(run: Run, store: Path, name: str):
    assert run("audit", "show", name, "--store", store).exit_code == Exit.USAGE
