from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli import demo_team
from holdfast.cli.demo_team import NOTES, STEPS, main


def told(text: str, what: str) -> list[str]:
    return [line["step"] for line in map(json.loads, text.splitlines()) if line["say"] == what]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def test_every_step_is_begun_and_done_once(place: str, capsys):
    result = main(place, "kelp", thinking_seconds=0)
    out = capsys.readouterr().out
    assert result.is_completed and result.value.endswith("hold fast, bend, and start again")
    assert sorted(told(out, "begin")) == sorted(told(out, "done")) == sorted(STEPS)
    assert len(told(out, "posted")) == 1


def test_what_is_done_is_not_begun_again(place: str, capsys):
    main(place, "kelp", thinking_seconds=0)
    capsys.readouterr()
    assert main(place, "kelp", thinking_seconds=0).kept == len(STEPS)
    assert capsys.readouterr().out == ""


def test_a_thought_that_never_ends_is_told_once_everything_before_it_is_safe(place: str, capsys, monkeypatch):
    monkeypatch.setattr(demo_team, "_ENDLESS_SECONDS", 0)
    main(place, "kelp", "research[grip] " + NOTES["grip"][1], thinking_seconds=0)
    assert told(capsys.readouterr().out, "thinking") == ["research[grip]"]


def test_decisions_and_the_report_are_in_the_journal(place: str):
    main(place, "kelp", thinking_seconds=0)
    with bootstrap.open(place) as service:
        decisions = [event.data["description"] for event in service.events("kelp", type="DECISION_RECORDED")]
        assert decisions == ["3 topics: grip, stalk, blades", "publish it"]
        assert len(service.events("kelp", type="REPORT_ADDED")) == len(NOTES)
