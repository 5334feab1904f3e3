from __future__ import annotations

import json
from pathlib import Path

from holdfast.cli.exits import Exit
from tests.application.told import Page, check_page
from tests.cli.conftest import Run

SAID = {
    "controller": {"name": "Example GmbH", "contact": "privacy@example.com"},
    "activities": [
        {
            "name": "Offers",
            "purposes": ["to compare offers"],
            "subjects": ["suppliers"],
            "data": ["contact data"],
            "recipients": ["purchasing"],
            "workflows": ["*"],
        }
    ],
}


def test_what_nobody_said_is_named(run: Run, store: Path):
    shown = run("audit", "register", "--store", store)
    assert shown.exit_code == 0
    assert "name of the controller" in shown.out and "retention" not in shown.err
    assert "trail_days_min" in shown.out and "encryption" in shown.out


def test_what_the_owner_says_is_kept_and_told(run: Run, store: Path):
    Path("processing.json").write_text(json.dumps(SAID))
    shown = run("audit", "register", "--set", "processing.json", "--store", store).out
    assert "Example GmbH" in shown and "to compare offers" in shown and "missing" not in shown
    assert run("audit", "register", "--store", store, "--json").data["missing"] == []
    changed = run("audit", "log", "--type", "CONFIG_CHANGED", "--store", store, "--json").out
    assert json.loads(changed)["data"]["file"] == "reports/register.json"


def test_a_page_is_written_to_be_printed(run: Run, store: Path):
    told = run("audit", "register", "--html", "register.html", "--store", store)
    assert told.out == "" and "Wrote register.html." in told.err
    check_page(Page(Path("register.html").read_text()))


def test_what_is_no_description_is_refused(run: Run, store: Path):
    Path("wrong.json").write_text('{"purpose": "all"}')
    assert (
        "is nothing that the register has"
        in run("audit", "register", "--set", "wrong.json", "--store", store).err
    )
    Path("wrong.json").write_text("purpose: all")
    assert run("audit", "register", "--set", "wrong.json", "--store", store).exit_code == Exit.USAGE


def test_making_it_is_told_in_the_trail(run: Run, store: Path):
    run("audit", "register", "--store", store)
    line = run("audit", "log", "--type", "TRAIL_EXPORTED", "--store", store, "--json").out
    assert json.loads(line)["data"]["format"] == "register"


def test_a_dry_run_reads_what_the_owner_says_and_keeps_nothing(run: Run, store: Path):
    Path("said.json").write_text(json.dumps(SAID), encoding="utf-8")
    tried = run("audit", "register", "--set", "said.json", "--dry-run", "--store", store)
    assert tried.exit_code == 0 and "Nothing was changed" in tried.err
    assert run("audit", "register", "--json", "--store", store).data["missing"]
    Path("said.json").write_text("nonsense", encoding="utf-8")
    assert run("audit", "register", "--set", "said.json", "--dry-run", "--store", store).exit_code == 2
