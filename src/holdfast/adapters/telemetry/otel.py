"""Spans through OpenTelemetry's API: nothing comes of them unless the program sets an SDK up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from holdfast.adapters.telemetry.own_version import own_version
from holdfast.domain.telemetry import Attributes

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class OtelSpan:
    """A span of OpenTelemetry's."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        context = span.get_span_context()
        is_real = context.is_valid
        #: The trace it belongs to, and its name for others; empty where nobody collects it.
        self.trace_id = trace.format_trace_id(context.trace_id) if is_real else ""
        self.traceparent = _traceparent(context) if is_real else ""

    def note(self, attributes: Attributes) -> None:
        """Describe it further."""
        self._span.set_attributes(attributes)

    def link(self, traceparent: str) -> None:
        """Say which earlier span it goes on with."""
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None:
            return
        trace_id, span_id, flags = (int(digits, 16) for digits in found.groups())
        earlier = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
        if earlier.is_valid:
            self._span.add_link(earlier)

    def end(self, problem: BaseException | None = None) -> None:
        """End it, with the kind of what went wrong."""
        if problem is not None:
            kind = getattr(problem, "code", type(problem).__name__)
            self._span.set_attribute("error.type", str(kind))
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class OtelTracing:
    """Makes spans with the tracer of whatever provider the program has set up."""

    def __init__(self, *, is_drafting: bool = False, provider: trace.TracerProvider | None = None) -> None:
        """Make spans; by default those of the provider that the program sets up, whenever it does."""
        self._tracer = trace.get_tracer("holdfast", own_version(), provider)
        self.is_drafting = is_drafting

    def begin(self, name: str, attributes: Attributes) -> OtelSpan:
        """Begin a span under the one that is current here."""
        return OtelSpan(self._tracer.start_span(name, kind=SpanKind.INTERNAL, attributes=attributes))

    @contextmanager
    def within(self, name: str, attributes: Attributes) -> Iterator[OtelSpan]:
        """Have a span that is the current one of the block."""
        span = self._tracer.start_span(name, kind=SpanKind.INTERNAL, attributes=attributes)
        made = OtelSpan(span)
        # What goes wrong is told by its kind alone: its text and its stack may hold secrets.
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            try:
                yield made
            except BaseException as problem:
                made.end(problem)
                raise
        made.end()


def _traceparent(context: SpanContext) -> str:
    ids = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
    return f"00-{ids[0]}-{ids[1]}-{int(context.trace_flags):02x}"
