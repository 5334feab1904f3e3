"""What is unlike the rest is told with its reason, and nothing else is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.anomalies import LEAST_BYTES, anomalies, anomalies_of
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import Told, sample


def sized(*sizes: int) -> Told:
    told = Told()
    for size in sizes:
        told.checkpoint(size)
    return told


def timed(name: str, *durations: float) -> Told:
    told = Told(name)
    for number, seconds in enumerate(durations):
        told.ran("write", seconds, f"write[{number}]")
    return told


@pytest.mark.parametrize("url", STORES)
def test_a_state_that_grows_at_once_is_found_in_a_real_store(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path, retain=False) as service:
        for number in range(12):
            text = "x" * (400_000 if number == 9 else 100)
            service.create_checkpoint("A", {"n": number, "text": text})
        found = anomalies(kit_of(service))
    assert [(one.kind, one.place) for one in found.anomalies] == [("size", "A@10"), ("size", "A@11")]
    assert "grew from" in found.anomalies[0].reason or "grew from" in found.anomalies[1].reason
    assert found.compared == 11


def test_runs_of_a_real_team_give_no_false_alarm(tmp_path: Path) -> None:
    with open_at("memory:", tmp_path) as service:
        for number in range(8):
            run(service, team(), f"W-{number}", rounds=2)
        found = anomalies(kit_of(service))
    assert found.compared >= 8 and found.anomalies == ()


def test_a_step_that_takes_far_longer_is_told_with_what_is_usual() -> None:
    told = timed("A", *[9.0, 10.0, 11.0] * 4, 120.0)
    (one,) = anomalies_of(sample(told)).anomalies
    assert (one.kind, one.workflow_id, one.place, one.agent) == ("duration", "A", "write[12]", "write")
    assert one.reason == "write took 120.0 s, 12.0 times longer than the usual 10.0 s of 13 results"
    (short,) = anomalies_of(sample(timed("A", *[90.0, 100.0, 110.0] * 4, 0.0))).anomalies
    assert "shorter" in short.reason and short.score < 0


def test_only_what_is_in_the_workflow_that_was_asked_for_is_told_and_all_are_compared() -> None:
    usual, odd = timed("A", *[9.0, 10.0, 11.0] * 4), timed("B", 120.0)
    assert len(anomalies_of(sample(usual, odd), "B").anomalies) == 1
    assert anomalies_of(sample(usual, odd), "A").anomalies == ()
    assert anomalies_of(sample(odd), "B").anomalies == ()


@given(st.integers(1, 10**8), st.floats(0.01, 1e5), st.integers(2, 40))
def test_constant_sizes_and_durations_are_never_an_alarm(size, seconds, count) -> None:
    told = sized(*[size] * count)
    for number in range(count):
        told.ran("write", seconds, f"write[{number}]")
    assert anomalies_of(sample(told)).anomalies == ()


@given(st.integers(1000, 10**6), st.integers(1, 10**5), st.integers(10, 40))
def test_a_state_that_grows_evenly_is_no_alarm_once_it_has_some_size(start, step, count) -> None:
    base = start + 10 * step
    assert anomalies_of(sample(sized(*[base + step * place for place in range(count)]))).anomalies == ()


def test_what_hardly_matters_is_not_told() -> None:
    assert anomalies_of(sample(sized(*[100] * 10, 100 + LEAST_BYTES // 2))).anomalies == ()
    assert anomalies_of(sample(timed("A", *[0.1] * 10, 0.9))).anomalies == ()
    assert anomalies_of(sample(sized(*[10**7] * 10, 10**7 + LEAST_BYTES))).anomalies == ()


def test_few_values_are_compared_with_nothing() -> None:
    found = anomalies_of(sample(sized(1000, 10**7), timed("A", 1.0, 100.0)))
    assert (found.compared, found.anomalies) == (0, ())


def test_a_state_that_was_empty_is_no_step_to_measure_by() -> None:
    assert anomalies_of(sample(sized(0, *[10**6] * 10))).compared == 9


def test_very_many_are_cut_and_told() -> None:
    usual = [timed(f"U-{number}", *[9.0, 10.0, 11.0] * 200) for number in range(1)]
    odd = [timed(f"O-{number}", 500.0) for number in range(120)]
    found = anomalies_of(sample(*usual, *odd))
    assert (len(found.anomalies), found.left_off) == (100, 20)
