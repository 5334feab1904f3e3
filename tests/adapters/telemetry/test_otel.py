"""Spans through OpenTelemetry's API."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from holdfast.adapters.telemetry.otel import OtelTracing
from tests.application.watched import Collected

EARLIER = "00-" + "1a" * 16 + "-" + "2b" * 8 + "-01"


def test_without_an_sdk_nothing_comes_of_it() -> None:
    tracing = OtelTracing(provider=trace.NoOpTracerProvider())
    with tracing.within("work", {"a": 1}) as span:
        span.note({"b": 2})
        span.link(EARLIER)
    assert span.trace_id == span.traceparent == ""


def test_a_span_is_the_current_one_of_its_block_only() -> None:
    collected = Collected()
    with collected.tracing.within("outer", {}) as outer, collected.tracing.within("inner", {}):
        assert trace.get_current_span().is_recording()
    assert not trace.get_current_span().is_recording()
    inner, whole = collected.spans
    assert inner.parent is not None and whole.context is not None
    assert inner.parent.span_id == whole.context.span_id
    assert outer.traceparent.startswith(f"00-{outer.trace_id}-{whole.context.span_id:016x}-0")


def test_one_that_was_begun_is_not_the_current_one() -> None:
    collected = Collected()
    span = collected.tracing.begin("save", {"a": "b"})
    assert not trace.get_current_span().is_recording()
    span.end(ValueError("its text stays here"))
    [ended] = collected.spans
    assert ended.status.status_code is StatusCode.ERROR
    assert ended.attributes == {"a": "b", "error.type": "ValueError"} and "its text" not in ended.to_json()


def test_a_link_names_the_earlier_span() -> None:
    collected = Collected()
    with collected.tracing.within("resumed", {}) as span:
        span.link(EARLIER)
    [ended] = collected.spans
    [link] = ended.links
    assert f"{link.context.trace_id:032x}" == "1a" * 16 and f"{link.context.span_id:016x}" == "2b" * 8
    assert ended.context is not None and ended.context.trace_id != link.context.trace_id


@pytest.mark.parametrize("text", ["", "00-1-2-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", EARLIER + "x"])
def test_what_names_no_span_is_left_out(text: str) -> None:
    collected = Collected()
    with collected.tracing.within("resumed", {}) as span:
        span.link(text)
    assert not collected.spans[0].links


def test_an_interruption_ends_a_span_too() -> None:
    collected = Collected()
    with pytest.raises(KeyboardInterrupt), collected.tracing.within("work", {}):
        raise KeyboardInterrupt
    [ended] = collected.spans
    assert ended.attributes == {"error.type": "KeyboardInterrupt"}
