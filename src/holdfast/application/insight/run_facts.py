"""What is known of a workflow without opening a state: its listing, and the end of its journal.

Nothing of it changes while the head of the workflow stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from holdfast.application.draft import CREATED_EVENT
from holdfast.application.insight.event_lines import EventLine, event_lines
from holdfast.application.insight.event_story import error_words, is_pin, words
from holdfast.application.insight.following import EVENTS_BACK, run_status
from holdfast.application.kit import Kit
from holdfast.application.recovery.incomplete import ENDS
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.application.writer import PRUNED_EVENT
from holdfast.domain import run_events
from holdfast.domain.annotation import NOTED_EVENT, read_annotation
from holdfast.domain.checkpoint import STATUS_EVENT
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import Event
from holdfast.domain.record import Entry, Head
from holdfast.domain.time import parse_timestamp

#: So many names are remembered for filters.
NAMES_MAX = 200

#: Whether a recovery passed over checkpoints that are no use: then it makes one of its own right away.
_DONE, _SAVING = "done", "saving"
_ANSWERS = frozenset({run_events.APPROVAL_GRANTED, run_events.APPROVAL_DENIED})
_TELLING = frozenset(
    {
        run_events.RUN_UPDATED,
        run_events.APPROVAL_REQUESTED,
        run_events.AGENT_FAILED,
        run_events.AGENT_SKIPPED,
        STATUS_EVENT,
        NOTED_EVENT,
        RECOVERED_EVENT,
        *_ANSWERS,
        *ENDS,
    }
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One workflow, as far as its listing and its last events tell.

    Attributes:
        newest: its newest checkpoint that is kept.
        checkpoints: how many are kept.
        agents, made_with: names that its checkpoints, and for agents its last events, carry, for filters.
        given: labels that checkpoints were given later, each with a checkpoint, as its last events say.
        last_at: when it was last written; that somebody pinned a checkpoint is no work of it.
        told: how its run stands by its own words; empty where it has none.
        error: what went wrong last, in words.
        open: step and name of each question that is not answered.
        ended: how an event after the newest checkpoint says that it ended; empty where none does.
        last_type: type of its last event.
        recovery: empty unless it was brought back, and nothing was written since that goes on with it.
        problem: why it cannot be read; empty where it can.
    """

    workflow_id: str
    head: Head
    newest: Entry | None = None
    checkpoints: int = 0
    agents: frozenset[str] = frozenset()
    made_with: frozenset[str] = frozenset()
    given: frozenset[tuple[int, str]] = frozenset()
    last_at: str = ""
    told: str = ""
    error: str = ""
    open: frozenset[tuple[str, str]] = frozenset()
    ended: str = ""
    last_type: str = ""
    recovery: str = ""
    problem: str = ""

    @property
    def labels(self) -> frozenset[str]:
        """All labels that its checkpoints have."""
        return self.made_with.union(label for _, label in self.given)

    @property
    def is_settled(self) -> bool:
        """Whether this holds for as long as the head stays: checkpoints go after it is told that they do."""
        return self.last_type != PRUNED_EVENT and not self.problem


def read_facts(kit: Kit, workflow_id: str, head: Head, known: RunFacts | None = None) -> RunFacts:
    """Read what is new since it was looked at last, or everything; damage is told and hides no other."""
    try:
        facts = _read(kit, workflow_id, head, known)
        parse_timestamp(facts.last_at)
        return facts
    except CheckpointError as damage:
        last_at = known.last_at if known else ""
        return unreadable_facts(
            kit, RunFacts(workflow_id, head, last_at=last_at, problem=words(damage.message))
        )


def unreadable_facts(kit: Kit, facts: RunFacts) -> RunFacts:
    """Add the checkpoints of a workflow that cannot be read, where at least its listing can be."""
    try:
        listed = _with_entries(kit, facts, 0)
        parse_timestamp(listed.last_at)
        return listed
    except CheckpointError:
        return facts


def _read(kit: Kit, workflow_id: str, head: Head, known: RunFacts | None) -> RunFacts:
    base = known if known is not None and known.is_settled else RunFacts(workflow_id, Head())
    facts = replace(base, head=head)
    after = base.head.event_seq or max(head.event_seq - EVENTS_BACK, 0)
    for line in event_lines(kit, workflow_id, after, _TELLING):
        if line.type == PRUNED_EVENT and base.head.event_seq:
            # What was removed, perhaps because somebody asked for that, is not remembered here.
            return _read(kit, workflow_id, head, None)
        facts = _with_event(facts, line)
    return _with_entries(kit, facts, base.head.sequence)


def _with_entries(kit: Kit, facts: RunFacts, seen: int) -> RunFacts:
    """Count the checkpoints since one that was seen; the newest is read anew, its status may have changed."""
    newest, count = None, facts.checkpoints if seen else 0
    agents, labels, kept = set(facts.agents), set(facts.made_with), set[int]()
    for entry in kit.store.entries(facts.workflow_id, newest_first=True):
        if entry.pruned:
            continue
        newest = newest or entry
        if entry.sequence <= seen:
            break
        count += 1
        kept.add(entry.sequence)
        _remember(agents, entry.agent)
        _remember(labels, entry.label)
    last_at = max(facts.last_at, newest.timestamp if newest else "")
    return replace(
        facts,
        newest=newest,
        checkpoints=count,
        agents=frozenset(agents),
        made_with=frozenset(labels),
        given=frozenset(one for one in facts.given if one[0] <= seen or one[0] in kept),
        last_at=last_at,
    )


def _remember(names: set[str], name: str | None) -> None:
    if name is not None and len(names) < NAMES_MAX:
        names.add(name)


def _with_event(facts: RunFacts, line: EventLine) -> RunFacts:
    agents = set(facts.agents)
    _remember(agents, line.agent)
    is_pinned = line.event is not None and is_pin(line.event)
    facts = replace(
        facts,
        last_at=facts.last_at if is_pinned else max(facts.last_at, line.at),
        last_type=line.type,
        agents=frozenset(agents),
        recovery=facts.recovery if is_pinned else _recovery(facts, line),
    )
    if line.type == CREATED_EVENT:
        return replace(facts, ended="")
    if line.event is None or line.event.erased or line.type == RECOVERED_EVENT:
        return facts
    return _with_told(facts, line.event)


def _recovery(facts: RunFacts, line: EventLine) -> str:
    """Tell whether a workflow is recovered and no more than that, after an event."""
    if line.type == RECOVERED_EVENT:
        passed_over = line.event.data.get("passed_over") if line.event and not line.event.erased else None
        return _SAVING if passed_over else _DONE
    if line.type == CREATED_EVENT and facts.last_type == RECOVERED_EVENT and facts.recovery == _SAVING:
        return _DONE
    return facts.recovery if line.type == PRUNED_EVENT else ""


def _with_told(facts: RunFacts, event: Event) -> RunFacts:
    data: Mapping[str, Any] = event.data
    if event.type == run_events.RUN_UPDATED:
        return replace(facts, told=run_status(event) or facts.told, ended="")
    if event.type == run_events.AGENT_FAILED:
        said = error_words(data.get("error"))
        return replace(facts, error=": ".join(part for part in (event.step_id or event.agent, said) if part))
    if event.type == STATUS_EVENT:
        return replace(facts, error=words(data.get("error_message")) or facts.error)
    if event.type == NOTED_EVENT:
        return replace(facts, given=_given(facts.given, event))
    if event.type in ENDS:
        return replace(facts, ended=ENDS[event.type], error=words(data.get("error")) or facts.error)
    if event.type == run_events.AGENT_SKIPPED:
        return replace(facts, open=frozenset(one for one in facts.open if not _is_part_of(one[0], event)))
    question = (event.step_id or "", str(data.get("name")))
    if event.type == run_events.APPROVAL_REQUESTED:
        return replace(facts, open=facts.open | {question})
    return replace(facts, open=facts.open - {question})


def _given(before: frozenset[tuple[int, str]], event: Event) -> frozenset[tuple[int, str]]:
    """Put what was said last about a checkpoint in the place of what was said before."""
    if event.cp_seq is None:
        return before
    others = {one for one in before if one[0] != event.cp_seq}
    said = ((event.cp_seq, label) for label in read_annotation(event.data, event.seq).labels)
    return frozenset(others.union(islice(said, max(NAMES_MAX - len(others), 0))))


def _is_part_of(step_id: str, event: Event) -> bool:
    """Tell whether a step is the one that an event is about, or was spawned by it."""
    return step_id == event.step_id or step_id.startswith(f"{event.step_id}>")
