from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.quarantine import set_aside
from holdfast.cli.exits import Exit
from holdfast.cli.quarantine_show import _save
from tests.cli.conftest import Run, damage_record


@pytest.fixture
def name(run: Run, store: Path) -> str:
    damage_record(store, 2)
    [name] = run("validate", "--quarantine", "--json", "--store", store).data["quarantined"]
    return name


def test_a_report_says_what_was_found_and_what_is_damaged_now(run: Run, store: Path, name: str):
    out = run("quarantine", "show", name, "--store", store).out
    lines = dict(line.split(None, 1) for line in out.splitlines())
    assert lines["what"] == "WF-1@2" and lines["status"] == "refused"
    assert lines["damaged"].startswith("now  the record of checkpoint 2")
    assert lines["part"].startswith("record, ") and lines["part"].endswith(", kept")
    told = run("quarantine", "show", name, "--json", "--store", store).data
    assert told["damage"] == ["the record of checkpoint 2: the record is not the one that was committed"]


def test_the_bytes_are_saved_as_they_were_found_and_that_is_told(run: Run, store: Path, name: str):
    result = run("quarantine", "show", name, "--save", "evidence", "--store", store)
    assert result.err == "Saved to evidence\n"
    [path] = Path("evidence").iterdir()
    assert path.name == "record" and json.loads(path.read_bytes())["ts"].startswith("3")
    log = run("audit", "log", "--json", "--store", store).out
    assert '"STATE_READ"' in log and name in log


def test_a_name_of_nothing_is_not_found(run: Run, store: Path):
    assert run("quarantine", "show", "nothing", "--store", store).exit_code == Exit.NOT_FOUND
    assert run("quarantine", "show", "../../x", "--store", store).exit_code == Exit.NOT_FOUND


def test_names_that_an_attacker_wrote_lead_nowhere(tmp_path: Path):
    _save(tmp_path / "out", {"../../escaped": b"1", "/etc/x": b"2", "..": b"3", "record": b"4"})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "part-1",
        "part-2",
        "part-3",
        "record",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_of_the_store_and_what_was_released_are_shown_too(run: Run, store: Path):
    with bootstrap.open(str(store), background=False) as service:
        name = service.quarantine.put("WF-1", 2, "a drill").name
        service.quarantine.release(name, "it was one")
    assert "it was one" in run("quarantine", "show", name, "--store", store).out
    full = set_aside(Disk(str(store)), "journal", "it was cut", b"half").removeprefix("quarantine/")
    out = run("quarantine", "show", full, "--store", store).out
    assert "by the store" in out and "part" not in out
