"""Runs and their agents on the time line of a trace.

A run that goes on in another process is another span. It links to the one before, whose name stands in the
state's `metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from holdfast.application.observing import NO_SPAN
from holdfast.domain.telemetry import Attributes, Span, Tracing

#: Key of the state's `metadata`.
TRACEPARENT = "traceparent"

_WORKFLOW = "invoke_workflow"
_AGENT = "invoke_agent"


class RunSpan:
    """The span of a run."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def remembered(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Link to the span that a state remembers; answer its metadata with this one in that one's place."""
        before = metadata.get(TRACEPARENT)
        if isinstance(before, str):
            self._span.link(before)
        if not self._span.traceparent:
            return dict(metadata)
        return {**metadata, TRACEPARENT: self._span.traceparent}

    def ended(self, status: str) -> None:
        """Say how the run stands."""
        self._span.note({"holdfast.run.status": status})


@contextmanager
def run_span(tracing: Tracing | None, name: str, workflow_id: str) -> Iterator[RunSpan]:
    """Have a span around a run, or around what one process does of it."""
    if tracing is None:
        yield RunSpan(NO_SPAN)
        return
    about: dict[str, str] = {"holdfast.workflow_id": workflow_id, "holdfast.workflow": name}
    if tracing.is_drafting:
        about |= {
            "gen_ai.operation.name": _WORKFLOW,
            "gen_ai.workflow.name": name,
            "gen_ai.conversation.id": workflow_id,
        }
    with tracing.within(f"{_WORKFLOW} {name}", about) as span:
        yield RunSpan(span)


def agent_span(
    tracing: Tracing | None, name: str, step_id: str, workflow_id: str
) -> AbstractContextManager[object]:
    """Have a span around all attempts of one step of an agent."""
    if tracing is None:
        return nullcontext()
    about: dict[str, str] = {
        "holdfast.workflow_id": workflow_id,
        "holdfast.agent": name,
        "holdfast.step_id": step_id,
    }
    if tracing.is_drafting:
        about |= {
            "gen_ai.operation.name": _AGENT,
            "gen_ai.agent.name": name,
            "gen_ai.conversation.id": workflow_id,
        }
    attributes: Attributes = about
    return tracing.within(f"{_AGENT} {name}", attributes)
