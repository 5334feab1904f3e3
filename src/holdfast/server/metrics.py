"""What `/metrics` tells: the store as a whole, whoever writes to it, and the requests of this server."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from holdfast import __version__
from holdfast.application.insight.run_survey import RunNumbers, RunStanding
from holdfast.application.insight.store_numbers import FRESH_SECONDS, StoreNumbers, StoreWatch
from holdfast.application.insight.trail_counting import TrailNumbers
from holdfast.application.kit import Kit
from holdfast.domain.quarantine import Kind
from holdfast.domain.telemetry import RecoveryOutcome

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_OPENMETRICS = "application/openmetrics-text"
_PREFIX = "holdfast_"
#: How recoveries can be told from the trail: whoever was refused before it began is not told as one.
_TOLD = (RecoveryOutcome.OK, RecoveryOutcome.FALLBACK, RecoveryOutcome.FAILED)


class ServerMetrics:
    """Keeps and writes the numbers of one server. Safe to use from several threads."""

    def __init__(self, kit: Kit, *, fresh_seconds: float = FRESH_SECONDS) -> None:
        """Begin to count; the numbers of the store are read at most once in so many seconds."""
        # One of its own: whatever else counts in this process is not the server's to show.
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "holdfast_http_request_duration_seconds",
            "How long requests took.",
            ["route", "method", "code"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._registry.register(_StoreCollector(kit, fresh_seconds))
        own = getattr(kit.observer, "registry", None)
        self._shown = _Joined(self._registry, own if isinstance(own, CollectorRegistry) else None)

    def observe_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            route: its template, as `/v1/workflows/{workflow_id}`: addresses would be a series each.
            method: of the request.
            status: of the response.
            seconds: from its first byte to the last of the answer.
        """
        known = method if method in _METHODS else "OTHER"
        self._requests.labels(route, known, str(status)).observe(seconds)

    def expose(self, accept: str | None) -> tuple[bytes, str]:
        """Write everything, as OpenMetrics where that is asked for; answer the body and its content type."""
        # What was sent is not handed on: it may name versions that nobody can write.
        encode, content_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in (accept or "") else "")
        return encode(self._shown), content_type


class _Joined(Collector):
    """The server's numbers, and those of its own process that say nothing about the same."""

    def __init__(self, server: CollectorRegistry, process: CollectorRegistry | None) -> None:
        self._server = server
        self._process = process

    def collect(self) -> Iterator[Metric]:
        shown = set()
        for metric in self._server.collect():
            shown.add(metric.name)
            yield metric
        for metric in self._process.collect() if self._process is not None else ():
            if metric.name.startswith(_PREFIX) and metric.name not in shown:
                yield metric


class _StoreCollector(Collector):
    """Tells the numbers of a store when it is asked for them."""

    def __init__(self, kit: Kit, fresh_seconds: float) -> None:
        self._backend = kit.store.url.partition(":")[0]
        self._watch = StoreWatch(kit, fresh_seconds=fresh_seconds)

    def describe(self) -> list[Metric]:
        # Asked for by the registry, which would read the store for it otherwise.
        return []

    def collect(self) -> Iterator[Metric]:
        numbers = self._watch.numbers()
        yield self._build_info()
        yield from _store(numbers)
        yield from _audit(numbers)
        if numbers.trail is not None:
            yield from _trail(numbers.trail)
        if numbers.runs is not None:
            yield from _runs(numbers.runs)
        yield from self._last_checkpoint(numbers)
        yield from _single(
            "store_numbers_age_seconds", "How old these numbers are.", self._watch.age_seconds()
        )

    def _build_info(self) -> Metric:
        labels = ["version", "python", "backend"]
        info = GaugeMetricFamily(_PREFIX + "build_info", "Which Holdfast this is; always 1.", labels=labels)
        info.add_metric([__version__, platform.python_version(), self._backend], 1)
        return info

    def _last_checkpoint(self, numbers: StoreNumbers) -> Iterator[Metric]:
        told = [part.last_checkpoint_at for part in (numbers.trail, numbers.runs) if part is not None]
        newest = max((at for at in told if at is not None), default=None)
        if newest is not None:
            family = GaugeMetricFamily(
                _PREFIX + "last_checkpoint_timestamp_seconds",
                "When the newest checkpoint was made, in seconds since 1970.",
                labels=["backend"],
            )
            family.add_metric([self._backend], newest)
            yield family


def _store(numbers: StoreNumbers) -> Iterator[Metric]:
    readable = GaugeMetricFamily(
        _PREFIX + "store_readable", "Whether a part of the numbers could be read.", labels=["part"]
    )
    for part, is_read in numbers.readable.items():
        readable.add_metric([part], is_read)
    yield readable
    sizes = GaugeMetricFamily(_PREFIX + "store_bytes", "What the store takes.", labels=["kind"])
    for kind, size_bytes in numbers.store_bytes.items():
        sizes.add_metric([kind], size_bytes)
    yield sizes
    yield from _single("store_free_bytes", "What is free of the store's disk.", numbers.free_bytes)
    aside = GaugeMetricFamily(
        _PREFIX + "quarantined_checkpoints", "What stands in quarantine, by what it is.", labels=["kind"]
    )
    if "quarantine" in numbers.readable:
        for kind in Kind:
            aside.add_metric([kind], numbers.quarantined.get(kind, 0))
    yield aside


def _audit(numbers: StoreNumbers) -> Iterator[Metric]:
    if numbers.audit_entries is not None:
        yield CounterMetricFamily(
            _PREFIX + "audit_entries", "Entries of the trail.", value=numbers.audit_entries
        )
    yield from _single(
        "audit_unanchored_entries", "Entries that no signed head covers yet.", numbers.unanchored
    )


def _trail(trail: TrailNumbers) -> Iterator[Metric]:
    yield CounterMetricFamily(
        _PREFIX + "store_checkpoints", "Checkpoints that the trail tells of.", value=trail.checkpoints
    )
    recoveries = CounterMetricFamily(
        _PREFIX + "store_recoveries", "Recoveries that the trail tells of.", labels=["outcome"]
    )
    for outcome in _TOLD:
        recoveries.add_metric([outcome], trail.recoveries[outcome])
    yield recoveries
    yield from _single(
        "audit_verified_timestamp_seconds", "When the log was last verified as a whole.", trail.verified_at
    )
    yield from _single("audit_ok", "Whether nothing was wrong with the log, then and since.", trail.is_ok)


def _runs(runs: RunNumbers) -> Iterator[Metric]:
    active = GaugeMetricFamily(
        _PREFIX + "active_runs", "Workflows that have not come to their end.", labels=["status"]
    )
    for standing in RunStanding:
        active.add_metric([standing], runs.runs[standing])
    yield active
    yield from _single(
        "store_dedup_ratio", "How many times smaller checkpoints are than whole states.", runs.dedup_ratio
    )
    yield from _single(
        "store_survey_complete", "Whether every workflow was looked at by now.", runs.is_complete
    )


def _single(name: str, help_text: str, value: float | None) -> Iterator[Metric]:
    """Tell one number; nothing where it is not known: a zero would be believed."""
    if value is not None:
        yield GaugeMetricFamily(_PREFIX + name, help_text, value=float(value))
