"""Events in plain words, for a table, a page or a report. Whatever an event holds can be told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeGuard

from holdfast.application.draft import CREATED_EVENT
from holdfast.application.faults.health import STEP_EVENT, WRITTEN_EVENT
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.application.sessions.passing_on import HANDED_OFF_EVENT, TAKEN_OVER_EVENT
from holdfast.application.writer import PRUNED_EVENT
from holdfast.domain import run_events
from holdfast.domain.annotation import NOTED_EVENT, read_annotation
from holdfast.domain.checkpoint import STATUS_EVENT
from holdfast.domain.event import Event
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT

#: So much of a text is told; the event has the rest.
WORDS_MAX = 300
_SPACE = re.compile(r"\s+")


class Kind(StrEnum):
    """What an event is about."""

    RUN = "run"
    STAGE = "stage"
    AGENT = "agent"
    DECISION = "decision"
    APPROVAL = "approval"
    FAILURE = "failure"
    RECOVERY = "recovery"
    CHECKPOINT = "checkpoint"
    FINDING = "finding"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Story:
    """One event in words, as its store has them: who shows them makes them safe first.

    Attributes:
        kind: what it is about.
        text: what happened, on one line.
        detail: why, or what somebody said about it; may be empty.
    """

    kind: Kind
    text: str
    detail: str = ""


def story_of(event: Event) -> Story:
    """Tell one event."""
    if event.erased:
        return Story(Kind.NOTE, f"{event.type}: what it said was erased")
    tell = _TOLD.get(event.type)
    return tell(event) if tell is not None else _unknown(event)


def words(value: Any) -> str:
    """Write a value on one line, cut where it is long."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    # The rest need not be looked at: a text may be a book.
    line = _SPACE.sub(" ", text[: 4 * WORDS_MAX]).strip()
    return line if len(line) <= WORDS_MAX and len(text) <= 4 * WORDS_MAX else f"{line[:WORDS_MAX]} ..."


def duration_text(seconds: float) -> str:
    """Write how long something took: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
    )


def is_number(value: Any) -> TypeGuard[int | float]:
    """Tell whether a value can be added up."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def error_words(error: Any) -> str:
    """Write an error as the executor records it, `{"type", "message"}`, or as whatever it is."""
    if not isinstance(error, Mapping):
        return words(error)
    parts = [words(error.get("type")), words(error.get("message"))]
    return ": ".join(part for part in parts if part)


def _who(event: Event) -> str:
    return words(event.step_id or event.agent or "somebody")


def _joined(text: str, more: str) -> str:
    return f"{text}: {more}" if more else text


def _created(event: Event) -> Story:
    return Story(
        Kind.CHECKPOINT, f"checkpoint {event.cp_seq} was made" if event.cp_seq else "a checkpoint was made"
    )


def _noted(event: Event) -> Story:
    said = read_annotation(event.data, event.seq)
    told = ", ".join(filter(None, (*said.labels, said.note)))
    return Story(Kind.CHECKPOINT, _joined(f"checkpoint {event.cp_seq} was annotated", words(told)))


def is_pin(event: Event) -> bool:
    """Tell whether somebody pinned a checkpoint or said something of it: care for it, no work of its run.

    A change of status of one that is pinned looks the same, and is taken for that too.
    """
    is_told = event.type == STATUS_EVENT and not event.erased and "pinned" in event.data
    return is_told or event.type == NOTED_EVENT


def _status(event: Event) -> Story:
    data = event.data
    status = words(data.get("status"))
    kind = Kind.FAILURE if status == "failed" else Kind.CHECKPOINT
    return Story(kind, _joined(f"checkpoint {event.cp_seq} is {status}", words(data.get("error_message"))))


def _started(event: Event) -> Story:
    attempt = event.data.get("attempt")
    again = f", attempt {attempt}" if is_number(attempt) and attempt > 1 else ""
    return Story(Kind.AGENT, f"{_who(event)} began{again}")


def _completed(event: Event) -> Story:
    seconds = event.data.get("duration_seconds")
    return Story(
        Kind.AGENT, f"{_who(event)} is done" + (f" in {duration_text(seconds)}" if is_number(seconds) else "")
    )


def _failed(event: Event) -> Story:
    text = _joined(f"{_who(event)} failed", error_words(event.data.get("error")))
    return Story(Kind.FAILURE, text, "It is tried again." if event.data.get("retries") else "")


def _skipped(event: Event) -> Story:
    return Story(Kind.AGENT, _joined(f"{_who(event)} was not needed", words(event.data.get("reason"))))


def _stage(event: Event) -> Story:
    state = event.data.get("state")
    status = words(state.get("status")) if isinstance(state, Mapping) else ""
    stage = words(event.data.get("stage"))
    return Story(Kind.STAGE, f"stage {stage} is {status}" if status else f"stage {stage} changed")


def _effect(event: Event) -> Story:
    name = words(event.data.get("name"))
    if event.type == run_events.EFFECT_STARTED:
        return Story(Kind.AGENT, f"{_who(event)} begins to change something outside: {name}")
    return Story(
        Kind.AGENT,
        f"{_who(event)} changed something outside: {name} {words(event.data.get('status'))}".rstrip(),
    )


def _milestone(event: Event) -> Story:
    return Story(Kind.AGENT, f"{_who(event)} reached {words(event.data.get('name'))}")


def _asked(event: Event) -> Story:
    data = event.data
    text = f"{_who(event)} asks for {words(data.get('name')) or 'an answer'}"
    return Story(Kind.APPROVAL, _joined(text, words(data.get("question"))))


def _answered(event: Event) -> Story:
    data = event.data
    did = "granted" if event.type == run_events.APPROVAL_GRANTED else "denied"
    text = f"{words(data.get('by')) or 'somebody'} {did} {words(data.get('name'))} of {_who(event)}"
    return Story(Kind.APPROVAL, text, words(data.get("note")))


def _run(event: Event) -> Story:
    fields = event.data.get("fields")
    status = words(fields.get("status")) if isinstance(fields, Mapping) else ""
    text = f"the run is {status.replace('_', ' ')}" if status else "the run's settings changed"
    kind = Kind.FAILURE if status == "failed" else Kind.RUN
    return Story(kind, _joined(text, error_words(event.data.get("error"))))


def _settled(event: Event) -> Story:
    data = event.data
    by, why = words(data.get("by")), words(data.get("discarded"))
    came = f"discarded, {why}" if why else "carried out"
    return Story(
        Kind.NOTE, f"a request ({words(data.get('kind'))}) was {came}" + (f" for {by}" if by else "")
    )


def _decided(event: Event) -> Story:
    data = event.data
    why = words(data.get("rationale"))
    sure = data.get("confidence")
    parts = [
        f"Why: {why}" if why else "",
        f"Confidence: {sure:.0%}" if is_number(sure) and 0 <= sure <= 1 else "",
    ]
    who = words(event.agent or event.step_id or "somebody")
    return Story(
        Kind.DECISION,
        f"{who} decided: {words(data.get('description'))}",
        ". ".join(part for part in parts if part),
    )


def _reported(event: Event) -> Story:
    return Story(Kind.FINDING, f"{_who(event)} reported: {words(event.data.get('title')) or 'untitled'}")


def _recovered(event: Event) -> Story:
    data = event.data
    source = words(data.get("checkpoint")) or "the beginning"
    count = data.get("events_replayed")
    replayed = f", {count:,} events replayed" if is_number(count) and count else ""
    return Story(Kind.RECOVERY, f"recovered from {source}{replayed}", words(data.get("reason")))


def _agent_state(event: Event) -> Story:
    state = event.data.get("state")
    known = state if isinstance(state, Mapping) else {}
    share = known.get("progress")
    far = f" ({share:.0%} done)" if is_number(share) and 0 <= share <= 1 else ""
    return Story(
        Kind.AGENT, _joined(f"{words(event.agent or event.step_id)} reports{far}", words(known.get("doing")))
    )


def _unknown(event: Event) -> Story:
    who = words(event.agent or event.step_id)
    return Story(Kind.NOTE, f"{words(event.type)} of {who}" if who else words(event.type))


def _said(kind: Kind, text: str) -> Callable[[Event], Story]:
    return lambda event: Story(kind, text)


_TOLD: Mapping[str, Callable[[Event], Story]] = {
    CREATED_EVENT: _created,
    STATUS_EVENT: _status,
    NOTED_EVENT: _noted,
    run_events.AGENT_STARTED: _started,
    run_events.AGENT_COMPLETED: _completed,
    run_events.AGENT_FAILED: _failed,
    run_events.AGENT_SKIPPED: _skipped,
    run_events.STAGE_UPDATED: _stage,
    run_events.EFFECT_STARTED: _effect,
    run_events.EFFECT_DONE: _effect,
    run_events.MILESTONE_REACHED: _milestone,
    run_events.APPROVAL_REQUESTED: _asked,
    run_events.APPROVAL_GRANTED: _answered,
    run_events.APPROVAL_DENIED: _answered,
    run_events.RUN_UPDATED: _run,
    run_events.REQUEST_SETTLED: _settled,
    DECISION_EVENT: _decided,
    REPORT_EVENT: _reported,
    RECOVERED_EVENT: _recovered,
    AGENT_STATE_EVENT: _agent_state,
    PRUNED_EVENT: _said(Kind.CHECKPOINT, "checkpoints that need not be kept were removed"),
    HANDED_OFF_EVENT: _said(Kind.RUN, "the work was handed to the next session"),
    TAKEN_OVER_EVENT: _said(Kind.RUN, "the next session took the work over"),
    STEP_EVENT: _said(Kind.FAILURE, "the store could not be written to, and less was kept than usual"),
    WRITTEN_EVENT: _said(Kind.RECOVERY, "what was held in memory has been written"),
}
#: Types that Holdfast itself has words for.
TYPES = frozenset(_TOLD)
