"""Services that somebody counts and traces, with whoever hears of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast.adapters.telemetry.otel import OtelTracing
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.telemetry import FoundBy, Recovered, Saved
from tests.application.services import make_kit


@dataclass
class Heard:
    """An observer that keeps all it is told."""

    saves: list[Saved] = field(default_factory=list)
    recoveries: list[Recovered] = field(default_factory=list)
    failures: list[FoundBy] = field(default_factory=list)
    removals: list[tuple[int, int, str]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def saved(self, saved: Saved) -> None:
        self.saves.append(saved)

    def recovered(self, recovered: Recovered) -> None:
        self.recoveries.append(recovered)

    def invalid(self, found_by: FoundBy) -> None:
        self.failures.append(found_by)

    def pruned(self, checkpoints: int, freed_bytes: int, policy: str) -> None:
        self.removals.append((checkpoints, freed_bytes, policy))

    def waited(self, seconds: float) -> None:
        self.waits.append(seconds)


class Collected:
    """OpenTelemetry's SDK, collecting in memory."""

    def __init__(self, *, is_drafting: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("program")
        self.tracing = OtelTracing(is_drafting=is_drafting, provider=provider)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]


def watched_kit(heard: Heard | None = None, collected: Collected | None = None, **more: Any) -> Kit:
    """Put a kit together that tells of what is done with it."""
    return replace(make_kit(**more), observer=heard, tracing=collected.tracing if collected else None)


def watched_service(
    heard: Heard | None = None, collected: Collected | None = None, **more: Any
) -> CheckpointService:
    return CheckpointService(watched_kit(heard, collected, **more))
