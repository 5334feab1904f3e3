"""What Prometheus is shown of a process."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from holdfast.adapters.telemetry.prometheus import PrometheusObserver, instruments_in
from holdfast.domain.telemetry import FoundBy, Recovered, RecoveryOutcome, Saved, SaveOutcome


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def observer(registry: CollectorRegistry) -> PrometheusObserver:
    return PrometheusObserver("file", registry)


def value(registry: CollectorRegistry, name: str, **labels: str) -> Any:
    return registry.get_sample_value(f"holdfast_{name}", labels)


def test_a_checkpoint_is_counted_with_its_phases_and_sizes(
    registry: CollectorRegistry, observer: PrometheusObserver
) -> None:
    observer.saved(Saved(SaveOutcome.OK, 0.1, 0.2, 0.3, True, 900, 300, 1_000_000.5))
    assert value(registry, "checkpoint_writes_total", backend="file", outcome="ok") == 1
    for phase, seconds in (("encode", 0.1), ("queue", 0.2), ("write", 0.3)):
        name = "checkpoint_write_duration_seconds_sum"
        assert value(registry, name, backend="file", phase=phase) == seconds
    assert value(registry, "checkpoint_size_bytes_sum", kind="full", stage="raw") == 900
    assert value(registry, "checkpoint_size_bytes_sum", kind="full", stage="stored") == 300
    assert value(registry, "last_checkpoint_timestamp_seconds", backend="file") == 1_000_000.5


def test_what_was_not_made_has_no_size_and_no_time(
    registry: CollectorRegistry, observer: PrometheusObserver
) -> None:
    observer.saved(Saved(SaveOutcome.CONFLICT, 0.1))
    assert value(registry, "checkpoint_writes_total", backend="file", outcome="conflict") == 1
    assert value(registry, "checkpoint_write_duration_seconds_count", backend="file", phase="write") == 0
    assert value(registry, "checkpoint_size_bytes_count", kind="delta", stage="raw") is None
    assert value(registry, "last_checkpoint_timestamp_seconds", backend="file") is None


def test_recoveries_removals_failures_and_waits_are_counted(
    registry: CollectorRegistry, observer: PrometheusObserver
) -> None:
    observer.recovered(Recovered(RecoveryOutcome.FALLBACK, 1.5, lost_steps=2, quarantined=3))
    observer.invalid(FoundBy.RECOVERY)
    observer.pruned(4, 100, "retention")
    observer.pruned(1, -5, "asked")
    observer.waited(0.25)
    assert value(registry, "recoveries_total", outcome="fallback") == 1
    assert value(registry, "recovery_duration_seconds_sum", outcome="fallback") == 1.5
    assert value(registry, "recovery_lost_steps_sum", outcome="fallback") == 2
    assert value(registry, "quarantines_total") == 3
    assert value(registry, "validation_failures_total", reason="recovery") == 1
    assert value(registry, "pruned_checkpoints_total", policy="retention") == 4
    assert value(registry, "pruned_bytes_total", policy="asked") == 0
    assert value(registry, "lock_wait_seconds_sum") == 0.25


def test_what_never_happened_is_shown_as_zero(
    registry: CollectorRegistry, observer: PrometheusObserver
) -> None:
    assert value(registry, "recoveries_total", outcome="failed") == 0
    assert value(registry, "validation_failures_total", reason="trail") == 0


def test_two_stores_of_a_process_share_a_registry(registry: CollectorRegistry) -> None:
    first, second = PrometheusObserver("file", registry), PrometheusObserver("sqlite", registry)
    for observer in (first, second, second):
        observer.saved(Saved(SaveOutcome.OK, 0.1))
    assert value(registry, "checkpoint_writes_total", backend="file", outcome="ok") == 1
    assert value(registry, "checkpoint_writes_total", backend="sqlite", outcome="ok") == 2
    assert instruments_in(registry) is instruments_in(registry)


def test_a_trace_can_be_found_from_a_number(
    registry: CollectorRegistry, observer: PrometheusObserver
) -> None:
    observer.saved(Saved(SaveOutcome.OK, 0.1, 0.2, 0.3, trace_id="ab" * 16))
    observer.recovered(Recovered(RecoveryOutcome.OK, 1.0, trace_id="cd" * 16))
    text = openmetrics(registry).decode()
    assert text.count('trace_id="' + "ab" * 16) == 4 and text.count('trace_id="' + "cd" * 16) == 3


def test_both_formats_can_be_read(registry: CollectorRegistry, observer: PrometheusObserver) -> None:
    observer.saved(Saved(SaveOutcome.OK, 0.1, 0.2, 0.3, True, 900, 300, 1.0))
    families = {family.name for family in text_string_to_metric_families(openmetrics(registry).decode())}
    assert "holdfast_checkpoint_writes" in families
    assert b"# TYPE holdfast_checkpoint_writes_total counter" in generate_latest(registry)
