"""`holdfast events`: the journal of a workflow, and what is added to it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import Output, json_line, safe
from holdfast.cli.unknown_types import warn_of_unknown
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.event import Event

_DEFAULT_LIMIT = 100
#: So long nobody looks whether something was added.
PAUSE_SECONDS = 0.5
_HEAD = ("SEQ", "TIME (UTC)", "TYPE", "AGENT", "WHAT")
_TYPE_COLUMNS, _AGENT_COLUMNS = 20, 12


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which events were asked for."""

    types: tuple[str, ...]
    agent: str | None
    after: int | None
    since: datetime | None
    limit: int

    @property
    def is_everything(self) -> bool:
        return not self.types and self.agent is None and self.since is None

    def takes(self, event: Event) -> bool:
        is_late = self.since is None or event.timestamp >= self.since
        return is_late and (not self.types or event.type in self.types) and self.agent in (None, event.agent)


@click.command("events", cls=StoreCommand)
@click.argument("workflow")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only of this type; may be given again.")
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@click.option(
    "--after", metavar="N", type=click.IntRange(min=0), help="Only those after event N, oldest first."
)
@click.option("--since", metavar="TIME", callback=read_moment, help="Only later ones: 2026-01-31, or 7d.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Show at most so many: the newest, with --after the oldest.",
)
@click.option("--follow", is_flag=True, help="Go on with what is added, until interrupted.")
def command(
    call: Call,
    workflow: str,
    types: tuple[str, ...],
    agent: str | None,
    after: int | None,
    since: datetime | None,
    limit: int,
    follow: bool,
) -> None:
    """Print the events of a workflow, and follow them.

    Each is verified on top of the one before. With --json each is one line.

    \b
    Example:
      holdfast events WF-2026-001 --type DECISION_RECORDED --since 7d
    """
    with reading(call) as kit:
        find_workflow(kit, workflow)
        facts: dict[str, int | str] = {"after": after or 0, **({"follow": "yes"} if follow else {})}
        tell(call, kit, [entry_of(kit, AuditType.EVENTS_READ, workflow, facts)])
        wanted = _Wanted(types, agent, after, since, limit)
        _check_types(kit, workflow, types)
        lost = _lost(kit, workflow)
        shown, last = _known(kit, workflow, wanted)
        if shown or lost is None:
            _print(call.output, shown)
        if lost is not None:
            raise lost
        if follow:
            _follow(call.output, kit, workflow, last, wanted)


def _check_types(kit: Kit, workflow_id: str, types: tuple[str, ...]) -> None:
    from holdfast.application.insight.event_story import TYPES
    from holdfast.domain.reducers import REDUCERS
    from holdfast.domain.run_events import RUN_REDUCERS

    warn_of_unknown(types, {*TYPES, *REDUCERS, *RUN_REDUCERS}, kit.store.events(workflow_id))


def _lost(kit: Kit, workflow_id: str) -> CheckpointCorruptError | None:
    """Answer what is wrong if the newest checkpoint was made after an event that is not there."""
    newest = next(iter(kit.store.entries(workflow_id, newest_first=True)), None)
    last = kit.store.head(workflow_id).event_seq
    if newest is None or newest.event_seq <= last:
        return None
    return CheckpointCorruptError(
        f"events are gone: the last is {last}, and checkpoint {newest.sequence} was made after"
        f" {newest.event_seq}",
        place=f"events of {workflow_id}",
        hint=f"They are in no file here; `holdfast copy BACKUP STORE {workflow_id}` brings them back.",
    )


def _known(kit: Kit, workflow_id: str, wanted: _Wanted) -> tuple[list[Event], int]:
    """Find what is there and asked for; answer it, and the last event that was looked at."""
    last = kit.store.head(workflow_id).event_seq
    # Without a filter the newest ones are found by their number, and nothing before them is read.
    newest = max(last - wanted.limit, 0) if wanted.is_everything else 0
    begin = newest if wanted.after is None else wanted.after
    found = (event for event in _read(kit, workflow_id, begin, last) if wanted.takes(event))
    shown = deque(found, wanted.limit) if wanted.after is None else islice(found, wanted.limit)
    return list(shown), last


def _read(kit: Kit, workflow_id: str, after: int, last: int) -> Iterator[Event]:
    from holdfast.application.reading import Reader

    events = Reader(kit).opened_events(workflow_id, after)
    return (event for event in events if after < event.seq <= last)


def _print(output: Output, events: list[Event]) -> None:
    if output.as_json:
        _print_lines(events)
    elif events:
        output.table(_HEAD, [event_row(event) for event in events], right="r")
    else:
        output.note("There is no such event.")


def _print_lines(events: Iterable[Event]) -> None:
    for event in events:
        click.echo(json_line(event_fields(event)))


def _follow(output: Output, kit: Kit, workflow_id: str, last: int, wanted: _Wanted) -> None:
    """Print what is added, line by line, for as long as nobody interrupts it."""
    from holdfast.application.insight.following import Follower

    follower = Follower(kit, [workflow_id])
    follower.begin_after(workflow_id, last)
    while True:
        new = [event for event in follower.changes() if wanted.takes(event)]
        if output.as_json or output.layout == "jsonl":
            _print_lines(new)
        else:
            output.lines(row_line(event) for event in new)
        time.sleep(PAUSE_SECONDS)


def row_line(event: Event) -> str:
    """Write an event as one line that stands below those of a table, whose widths nobody knows any more."""
    seq, at, kind, agent, text = event_row(event)
    padded = (seq.rjust(5), at, kind.ljust(_TYPE_COLUMNS), agent.ljust(_AGENT_COLUMNS), text)
    return safe("  ".join(padded))


def event_row(event: Event) -> tuple[str, ...]:
    """Answer the cells of an event."""
    from holdfast.application.insight.event_story import story_of
    from holdfast.domain.time import timestamp_text

    story = story_of(event)
    text = f"{story.text} ({story.detail})" if story.detail else story.text
    return (f"{event.seq}", time_text(timestamp_text(event.timestamp)), event.type, event.agent or "-", text)


def event_fields(event: Event) -> dict[str, Any]:
    """Write an event for programs."""
    from holdfast.application.insight.event_story import story_of
    from holdfast.domain.time import timestamp_text

    story = story_of(event)
    return {
        "message_type": "event",
        "workflow_id": event.workflow_id,
        "seq": event.seq,
        "timestamp": timestamp_text(event.timestamp),
        "type": event.type,
        "kind": story.kind.value,
        "text": story.text,
        "detail": story.detail,
        "agent": event.agent,
        "step_id": event.step_id,
        "parent_id": event.parent_id,
        "cp_seq": event.cp_seq,
        "cost": as_json_tree(dict(event.cost)) if event.cost is not None else None,
        "data": as_json_tree(dict(event.data)),
        "hash": event.hash,
        "erased": event.erased,
    }
