"""Counting for Prometheus: what this process did, in the registry that its own /metrics shows."""

from __future__ import annotations

import platform
import threading
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from holdfast.adapters.telemetry.own_version import own_version
from holdfast.domain.telemetry import FoundBy, Recovered, RecoveryOutcome, Saved, SaveOutcome

#: From a commit in memory to one behind a slow disk.
_SAVE_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_RECOVERY_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_WAIT_SECONDS = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60)
_STEPS = (0, 1, 2, 5, 10, 25, 50, 100, 1000)
_SIZE_BYTES = tuple(4**power for power in range(3, 15))


class Instruments:
    """Every metric of a process, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.build_info = Gauge(
            "holdfast_build_info",
            "Which Holdfast this is; always 1.",
            ["version", "python", "backend"],
            registry=registry,
        )
        self.writes = Counter(
            "holdfast_checkpoint_writes",
            "Checkpoints that were asked for, by what became of them.",
            ["backend", "outcome"],
            registry=registry,
        )
        self.write_seconds = Histogram(
            "holdfast_checkpoint_write_duration_seconds",
            "How long checkpoints took, by phase.",
            ["backend", "phase"],
            buckets=_SAVE_SECONDS,
            registry=registry,
        )
        self.size_bytes = Histogram(
            "holdfast_checkpoint_size_bytes",
            "Size of checkpoints: the whole state, and what was stored of it.",
            ["kind", "stage"],
            buckets=_SIZE_BYTES,
            registry=registry,
        )
        self.last_timestamp = Gauge(
            "holdfast_last_checkpoint_timestamp_seconds",
            "When the newest checkpoint was made, in seconds since 1970.",
            # Without one there is no series before the first checkpoint, and so no alert about 1970.
            ["backend"],
            registry=registry,
        )
        self._begin_recovery(registry)
        self._begin_upkeep(registry)

    def _begin_recovery(self, registry: CollectorRegistry) -> None:
        self.recoveries = Counter(
            "holdfast_recoveries", "Recoveries, by how they ended.", ["outcome"], registry=registry
        )
        self.recovery_seconds = Histogram(
            "holdfast_recovery_duration_seconds",
            "How long recoveries took.",
            ["outcome"],
            buckets=_RECOVERY_SECONDS,
            registry=registry,
        )
        self.lost_steps = Histogram(
            "holdfast_recovery_lost_steps",
            "Checkpoints passed over and events lost by a recovery.",
            ["outcome"],
            buckets=_STEPS,
            registry=registry,
        )

    def _begin_upkeep(self, registry: CollectorRegistry) -> None:
        self.invalid = Counter(
            "holdfast_validation_failures",
            "Stored bytes that were not what was committed, by who found them.",
            ["reason"],
            registry=registry,
        )
        self.quarantines = Counter(
            "holdfast_quarantines", "Pieces that recoveries set aside as evidence.", registry=registry
        )
        self.pruned = Counter(
            "holdfast_pruned_checkpoints", "Checkpoints that were removed.", ["policy"], registry=registry
        )
        self.pruned_bytes = Counter(
            "holdfast_pruned_bytes", "Bytes that removals gave back.", ["policy"], registry=registry
        )
        self.lock_wait_seconds = Histogram(
            "holdfast_lock_wait_seconds",
            "Waits for another thread's work on the same workflow.",
            buckets=_WAIT_SECONDS,
            registry=registry,
        )


_MUTEX = threading.Lock()
_KNOWN: WeakKeyDictionary[CollectorRegistry, Instruments] = WeakKeyDictionary()


def instruments_in(registry: CollectorRegistry) -> Instruments:
    """Answer the metrics of a registry, which can hold each just once, however many stores are open."""
    with _MUTEX:
        known = _KNOWN.get(registry)
        if known is None:
            known = _KNOWN[registry] = Instruments(registry)
        return known


class PrometheusObserver:
    """Counts what is done with one store."""

    def __init__(self, backend: str, registry: CollectorRegistry = REGISTRY) -> None:
        """Count in a registry; by default the one that prometheus_client shows.

        Args:
            backend: the kind of store: file, sqlite, postgresql, memory.
            registry: any other, each of which holds the metrics of all stores that count there.
        """
        self.registry = registry
        self._backend = backend
        self._instruments = instruments_in(registry)
        self._instruments.build_info.labels(own_version(), platform.python_version(), backend).set(1)
        self._writes = {
            outcome: self._instruments.writes.labels(backend, outcome.value) for outcome in SaveOutcome
        }
        phases = self._instruments.write_seconds
        self._encode, self._queue, self._write = (
            phases.labels(backend, phase) for phase in ("encode", "queue", "write")
        )
        for recovery in RecoveryOutcome:
            # A rate needs a beginning: the first failure would not be seen otherwise.
            self._instruments.recoveries.labels(recovery.value)
        for found_by in FoundBy:
            self._instruments.invalid.labels(found_by.value)

    def saved(self, saved: Saved) -> None:
        """Count a checkpoint that was asked for."""
        exemplar = _exemplar(saved.trace_id)
        self._writes[saved.outcome].inc(exemplar=exemplar)
        self._encode.observe(saved.encode_seconds, exemplar)
        if saved.queue_seconds is not None and saved.write_seconds is not None:
            self._queue.observe(saved.queue_seconds, exemplar)
            self._write.observe(saved.write_seconds, exemplar)
        if saved.made_at is None:
            return
        kind = "full" if saved.is_whole else "delta"
        self._instruments.size_bytes.labels(kind, "raw").observe(saved.raw_bytes)
        self._instruments.size_bytes.labels(kind, "stored").observe(saved.stored_bytes)
        self._instruments.last_timestamp.labels(self._backend).set(saved.made_at)

    def recovered(self, recovered: Recovered) -> None:
        """Count a recovery."""
        outcome, exemplar = recovered.outcome.value, _exemplar(recovered.trace_id)
        self._instruments.recoveries.labels(outcome).inc(exemplar=exemplar)
        self._instruments.recovery_seconds.labels(outcome).observe(recovered.seconds, exemplar)
        self._instruments.lost_steps.labels(outcome).observe(recovered.lost_steps, exemplar)
        self._instruments.quarantines.inc(recovered.quarantined)

    def invalid(self, found_by: FoundBy) -> None:
        """Count that stored bytes are not what was committed."""
        self._instruments.invalid.labels(found_by.value).inc()

    def pruned(self, checkpoints: int, freed_bytes: int, policy: str) -> None:
        """Count what was removed."""
        self._instruments.pruned.labels(policy).inc(checkpoints)
        self._instruments.pruned_bytes.labels(policy).inc(max(freed_bytes, 0))

    def waited(self, seconds: float) -> None:
        """Count a wait."""
        self._instruments.lock_wait_seconds.observe(seconds)


def _exemplar(trace_id: str) -> dict[str, str] | None:
    return {"trace_id": trace_id} if trace_id else None
