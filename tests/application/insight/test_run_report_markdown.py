from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.run_report import report
from holdfast.application.insight.run_report_markdown import (
    as_markdown,
    cost_text,
    day_and_time,
    meaning,
    narrative,
    plain,
    size_text,
    verifying,
)
from holdfast.application.insight.run_report_values import RunReport
from tests.application.insight.runs import whole_run

ACTIVE = re.compile(r"(?<!\\)(?:\\\\)*[`*\[\]<>|~#!&]")


def test_the_whole_is_told_in_a_few_sentences():
    told = narrative(report(whole_run(), "W"))
    assert told.startswith("This is a run of the workflow team. It began on 20")
    assert "2 of 3 steps are done. It is done." in told
    assert told.endswith("On the way there was 1 decision, 1 failure and 1 recovery. It cost 0.2500 USD.")
    assert narrative(RunReport("W", "odd")) == "This is a workflow. It says of itself: odd."


def test_a_failed_run_says_what_went_wrong():
    from dataclasses import replace

    failed = replace(report(whole_run(), "W"), status="failed")
    assert "What went wrong last: write failed: ValueError: no fuel." in narrative(failed)


def test_each_part_has_its_heading_and_empty_parts_have_none():
    heads = re.findall(r"^## (.*)$", as_markdown(report(whole_run(), "W")), re.MULTILINE)
    assert heads == [
        "Stages",
        "Agents",
        "Decisions",
        "Approvals",
        "Failures and recoveries",
        "What happened",
        "Cost",
        "Checkpoints",
        "How to verify this",
        "Offers",
        "write",
    ]
    heads = re.findall(r"^## (.*)$", as_markdown(RunReport("W", "completed")), re.MULTILINE)
    assert heads == ["Checkpoints", "How to verify this"]


@given(st.text())
def test_markdown_takes_every_letter_as_it_is(text):
    written = plain(text)
    assert not ACTIVE.search(written)
    assert "\n" not in written and "\r" not in written


def test_names_stay_readable():
    assert plain("cost_usd_total") == "cost_usd_total"
    assert plain("_odd_ a_ b") == r"\_odd\_ a\_ b"


def test_numbers_have_their_units():
    assert cost_text("cost_usd", 0.25) == "0.2500 USD"
    assert cost_text("elapsed_seconds", 12) == "12 s"
    assert cost_text("tokens", 12_000) == "12,000"
    assert cost_text("score", 0.5) == "0.5000"
    assert [size_text(count) for count in (0, 999, 2600, 3_000_000)] == ["0 B", "999 B", "2.6 kB", "3.0 MB"]
    assert size_text(10**16) == "10000.0 TB"


def test_moments_are_told_in_utc():
    assert day_and_time(datetime(2026, 1, 11, 14, 30, tzinfo=UTC)) == "2026-01-11 14:30:00 UTC"
    assert day_and_time(None) == "-"


def test_a_status_that_is_not_known_is_told_as_it_is():
    assert meaning("paused").startswith("It was paused") and meaning("x") == "It says of itself: x."


def test_commands_are_safe_to_paste():
    assert verifying(RunReport("a b; rm -rf x", "failed"))[0] == "holdfast validate 'a b; rm -rf x' --deep"
