"""What `/metrics` shows of a store, and of the server itself."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

import holdfast
from holdfast.adapters.telemetry.prometheus import PrometheusObserver
from holdfast.application.service import CheckpointService
from holdfast.server.metrics import ServerMetrics
from tests.application.services import make_kit, make_service
from tests.damage import Spoiler

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8,text/plain;q=0.5"


def samples(metrics: ServerMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    body, _ = metrics.expose(None)
    while b"holdfast_store_numbers_age_seconds" not in body:
        # A busy machine may need longer for the first numbers than anybody waits for them.
        body, _ = metrics.expose(None)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in plain_families(body.decode())
        for sample in family.samples
    }


def value(metrics: ServerMetrics, name: str, **labels: str) -> Any:
    return samples(metrics).get((f"holdfast_{name}", tuple(sorted(labels.items()))))


def test_the_store_is_told_whoever_wrote_it(tmp_path: Path) -> None:
    spoiler = Spoiler("file", tmp_path)
    spoiler.fill(4)
    spoiler.spoil_record(4)
    with spoiler.opened() as service:
        service.recover_workflow("WF")
        made = service.create_checkpoint("other", {"a": 1})
        service.acquire_lease("other", "somebody")
        service.audit.verify()
        service.flush()
        metrics = ServerMetrics(service._engine.kit)
        assert (
            value(
                metrics,
                "build_info",
                version=holdfast.__version__,
                python=platform.python_version(),
                backend="file",
            )
            == 1
        )
        assert value(metrics, "store_bytes", kind="live") > 0
        assert value(metrics, "store_bytes", kind="quarantine") > 0
        assert value(metrics, "store_free_bytes") > 0
        assert value(metrics, "store_dedup_ratio") > 0
        assert value(metrics, "store_readable", part="sizes") == 1
        assert value(metrics, "store_survey_complete") == 1
        assert value(metrics, "store_numbers_age_seconds") >= 0
        assert value(metrics, "active_runs", status="running") == 1
        assert value(metrics, "active_runs", status="idle") == 1
        assert value(metrics, "quarantined_checkpoints", kind="checkpoint") == 1
        assert value(metrics, "store_checkpoints_total") == 0
        assert value(metrics, "store_recoveries_total", outcome="fallback") == 0
        assert value(metrics, "audit_entries_total") == value(metrics, "audit_unanchored_entries") > 0
        assert value(metrics, "audit_ok") == 1 and value(metrics, "audit_verified_timestamp_seconds") > 0
        newest = value(metrics, "last_checkpoint_timestamp_seconds", backend="file")
        assert abs(newest - made.timestamp.timestamp()) < 1


def test_what_happens_while_it_serves_is_counted(tmp_path: Path) -> None:
    spoiler = Spoiler("file", tmp_path)
    spoiler.fill(4)
    spoiler.spoil_record(4)
    with spoiler.opened() as service:
        metrics = ServerMetrics(service._engine.kit, fresh_seconds=0)
        assert value(metrics, "store_recoveries_total", outcome="fallback") == 0
        service.recover_workflow("WF")
        while value(metrics, "store_recoveries_total", outcome="fallback") == 0:
            # New numbers are read once some time has passed for each that reading took.
            service.flush()
        assert value(metrics, "store_checkpoints_total") == 1


def test_requests_are_counted_by_their_route() -> None:
    metrics = ServerMetrics(make_kit())
    metrics.observe_request("/v1/checkpoints", "GET", 200, 0.2)
    metrics.observe_request("/v1/checkpoints", "BREW", 405, 0.1)
    name = "http_request_duration_seconds_sum"
    assert value(metrics, name, route="/v1/checkpoints", method="GET", code="200") == 0.2
    assert value(metrics, name, route="/v1/checkpoints", method="OTHER", code="405") == 0.1


def test_openmetrics_is_written_where_it_is_asked_for() -> None:
    metrics = ServerMetrics(make_kit())
    metrics.observe_request("/", "GET", 200, 0.2)
    body, content_type = metrics.expose(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text") and body.endswith(b"# EOF\n")
    assert {family.name for family in open_families(body.decode())} >= {"holdfast_build_info"}
    plain, content_type = metrics.expose("text/html")
    assert content_type.startswith("text/plain") and not plain.endswith(b"# EOF\n")
    body, content_type = metrics.expose("application/openmetrics-text; version=9\r\nX-Evil: 1")
    assert "Evil" not in content_type and body.endswith(b"# EOF\n")


def test_an_empty_store_tells_nothing_that_it_does_not_know() -> None:
    metrics = ServerMetrics(make_kit())
    names = {name for name, _ in samples(metrics)}
    unknown = {"last_checkpoint_timestamp_seconds", "audit_ok", "store_dedup_ratio", "store_free_bytes"}
    assert not {f"holdfast_{name}" for name in unknown} & names
    assert value(metrics, "audit_entries_total") == 0


def test_the_servers_own_work_is_shown_and_nothing_else_of_its_process() -> None:
    registry = CollectorRegistry()
    Counter("somebody_elses", "Not ours.", registry=registry)
    kit = replace(make_kit(), observer=PrometheusObserver("memory", registry))
    service = CheckpointService(kit)
    service.create_checkpoint("W", {"a": 1})
    metrics = ServerMetrics(kit)
    assert value(metrics, "checkpoint_writes_total", backend="memory", outcome="ok") == 1
    body, _ = metrics.expose(None)
    assert b"somebody_elses" not in body
    # What both know is told once, by what the store says.
    assert body.count(b"# TYPE holdfast_build_info ") == 1
    assert body.count(b"# TYPE holdfast_last_checkpoint_timestamp_seconds ") == 1


def test_a_store_that_is_gone_does_not_break_it() -> None:
    service = make_service()
    metrics = ServerMetrics(service._engine.kit)
    service.close()
    assert value(metrics, "store_readable", part="sizes") == 0
    assert value(metrics, "store_readable", part="survey") == 0
    assert value(metrics, "store_bytes", kind="live") is None


def test_no_series_is_named_after_a_workflow() -> None:
    service = make_service()
    service.create_checkpoint("WF-SECRET-NAME", {"a": 1}, agent_id="AGENT-NAME", session_id="SESSION-NAME")
    metrics = ServerMetrics(service._engine.kit)
    assert value(metrics, "active_runs", status="idle") == 1
    body, _ = metrics.expose(None)
    assert not any(name in body for name in (b"WF-SECRET-NAME", b"AGENT-NAME", b"SESSION-NAME"))
