"""What `stats` prints of values that were made up for it: bars, columns, words, and tables for programs."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.application.insight.agents import agents_of
from holdfast.application.insight.anomalies import anomalies_of
from holdfast.application.insight.growth import Day, Forecast, Growth
from holdfast.application.insight.intervals import intervals_of
from holdfast.application.insight.paths import paths_of
from holdfast.application.insight.recoveries import recoveries_of
from holdfast.application.insight.risk import risks_of
from holdfast.application.insight.storage import storage
from holdfast.application.insight.summary import Stats
from holdfast.cli.output import Output
from holdfast.cli.stats_page import Asked, bar_text, forecast_text, print_stats, spark_text, way_text
from tests.application.insight.told_journals import START, Told, sample
from tests.application.services import make_kit, make_service

FORECAST = Forecast(2e6, 1e6, 3e6, 1e8, "disk", 10**8, 50.0, 33.0, 100.0, "2026-03-02", ())
GROWTH = Growth(
    (Day("2026-01-10", 3, 2, 500, 500), Day("2026-01-11", 5, 5, 1000, 1500)),
    2, 9, False, 1500, 3000, 2.0, 10**9, 10**8, None, FORECAST, "",
)  # fmt: skip


def told_of(**parts: Any) -> Stats:
    return Stats("memory:", "2026-01-11T12:00:00Z", None, 1, 1, (), **parts)


def printed(
    capsys: pytest.CaptureFixture[str], told: Stats, asked: Asked, output: Output | None = None
) -> str:
    print_stats(output or Output(), told, asked)
    return capsys.readouterr().out


def many_runs() -> list[Told]:
    odd = Told("ODD").started("write").completed("write", 500.0)
    usual = Told("USUAL")
    for number in range(12):
        usual.ran("write", 10.0, f"write[{number}]")
    live = [Told(f"LIVE-{number}").started("write").failed("write", retries=False) for number in range(7)]
    return [odd.recovered(passed_over=(2,)), usual, *live]


def test_a_forecast_is_a_sentence() -> None:
    assert (
        forecast_text(GROWTH) == "2.0 MB a day (1.0 MB to 3.0 MB); the disk is full in 50 days, on 2026-03-02"
    )
    assert forecast_text(replace(GROWTH, forecast=None, reason="nothing")) == "No forecast: nothing."
    still = replace(FORECAST, bytes_per_day=0.0)
    assert forecast_text(replace(GROWTH, forecast=still)) == "No forecast: it does not grow."
    far = replace(FORECAST, full_on=None)
    assert forecast_text(replace(GROWTH, forecast=far)).endswith("has room for more than a hundred years")
    unbounded = replace(FORECAST, days_left=None)
    assert forecast_text(replace(GROWTH, forecast=unbounded)) == "2.0 MB a day (1.0 MB to 3.0 MB)"


def test_growth_shows_columns_what_is_left_out_and_days(capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(GROWTH, forecast=replace(FORECAST, exceptional=("2026-01-03",)))
    out = printed(capsys, told_of(growth=odd), Asked(is_brief=False, has_days=True))
    assert "Left out as exceptional: 2026-01-03" in out
    assert "Told by the newest 2 of 9 workflows: there is more." in out
    assert out.splitlines()[-1].split() == ["2026-01-10", "3", "2", "500", "B", "500", "B"]


def test_columns_follow_the_values_and_do_without_letters_that_cannot_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
    assert spark_text([0, 1, 2]) == "\u2581\u2585\u2588"
    assert spark_text([0, 0]) == "\u2581\u2581" and spark_text([]) == ""
    assert len(spark_text(range(100))) == 40
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert spark_text([0, 1]) == "_#"


def test_bars_and_ways_fit_the_page() -> None:
    assert [bar_text(share) for share in (0.0, 0.5, 1.0)] == ["", "#" * 10, "#" * 20]
    assert way_text(("a", "b")) == "a > b"
    assert way_text(tuple("abcdefghijkl")) == "a > b > c > d > e > (5 more) > k > l"


def test_much_is_cut_on_the_page_and_whole_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    runs = sample(*many_runs())
    kit = make_kit()
    told = told_of(
        risks=risks_of(kit, runs),
        agents=tuple(agents_of(runs)),
        paths=paths_of(runs),
        intervals=intervals_of(runs),
        recoveries=recoveries_of(kit, runs),
        anomalies=anomalies_of(runs),
    )
    brief = printed(capsys, told, Asked(is_brief=True))
    whole = printed(capsys, told, Asked(is_brief=False))
    assert brief.count("failed and is not tried again") == 5 and whole.count("is not tried again") == 7
    assert "write took 500.0 s" in brief
    assert "1 in journals, 1 after a crash" in brief and "nothing since" in whole
    assert "1 from an older checkpoint" in " ".join(brief.split())
    assert max(map(len, brief.splitlines())) <= 80


def test_programs_that_read_tables_get_tables_only(capsys: pytest.CaptureFixture[str]) -> None:
    runs = sample(*many_runs())
    service = make_service()
    service.create_checkpoint("A", {"n": 1})
    told = told_of(
        risks=risks_of(make_kit(), runs),
        anomalies=anomalies_of(runs),
        storage=storage(service._engine.kit),
        growth=GROWTH,
    )
    out = printed(capsys, told, Asked(is_brief=False, has_days=True), Output(layout="jsonl"))
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row.get("level") for row in rows} >= {"medium"}
    assert any(row.get("kind") == "duration" for row in rows)


def test_what_lies_in_quarantine_is_held_or_was_cut_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    service = make_service()
    service.create_checkpoint("A", {"n": 1})
    service.holds.place(workflow_id="A", reason="case 17")
    found = storage(service._engine.kit)
    assert "Of the newest 1 workflow:" in printed(
        capsys, told_of(storage=replace(found, total=5)), Asked(is_brief=True)
    )
    use = replace(
        found, kinds={"blobs": 75, "events": 25}, quarantined=1, quarantine_bytes=2000, free_bytes=10**9
    )
    out = printed(capsys, told_of(storage=use), Asked(is_brief=False))
    assert "Quarantine: 1 report, 2.0 KB" in out and "1.0 GB of the disk are free" in out
    assert "held" in out and "75% ###############" in out
    cut = paths_of(sample(Told("A").ran("a"), now=START + timedelta(days=1)))
    out = printed(capsys, told_of(paths=replace(cut, cut=2)), Asked(is_brief=True))
    assert "2 runs left out" in out
    assert "No journal tells of an agent from its beginning." in printed(
        capsys, told_of(paths=paths_of(sample())), Asked(is_brief=True)
    )


def test_more_rows_than_fit_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    odd = [Told(f"O-{number}").ran("write", 500.0) for number in range(7)]
    usual = Told("USUAL")
    for number in range(21):
        usual.ran("write", 9.0 + number % 3, f"write[{number}]")
    found = anomalies_of(sample(usual, *odd))
    assert "and 2 more" in printed(capsys, told_of(anomalies=found), Asked(is_brief=True))
    many = Told("MANY")
    for number in range(8):
        many.ran(f"agent-{number}", 1.0)
    assert "and 3 more" in printed(
        capsys, told_of(agents=tuple(agents_of(sample(many)))), Asked(is_brief=True)
    )
