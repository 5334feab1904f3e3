"""What is watched: one row for each workflow, kept up to date by its new events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.application.insight.event_story import Kind, Story, story_of
from holdfast.application.insight.following import ENDED, Follower, by_checkpoint, last_told, run_status
from holdfast.cli.listing import time_text
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED
from holdfast.domain.time import timestamp_text

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.event import Event

HEAD = ("WORKFLOW", "STATUS", "CHECKPOINTS", "DONE", "FAILED", "LAST (UTC)", "WHAT")
RIGHT = "  rrr"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened, and how its workflow stands after it."""

    event: Event
    story: Story
    status: str

    @property
    def timestamp(self) -> str:
        """When it happened."""
        return timestamp_text(self.event.timestamp)


@dataclass(slots=True)
class Row:
    """How one workflow stands; `done` and `failed` count what agents did while it was watched."""

    workflow_id: str
    status: str
    #: What its run last said of itself; None where it never did.
    told: str | None = None
    checkpoints: int = 0
    done: int = 0
    failed: int = 0
    last: str = ""
    doing: str = ""


class Watch:
    """Looks at workflows again and again, the given ones or all that anything happens in."""

    def __init__(
        self, kit: Kit, workflow_ids: Sequence[str], since: datetime | None, kinds: Collection[str]
    ) -> None:
        self._kit = kit
        self._kinds = frozenset(kinds)
        # Before rows are made: what happens meanwhile is a change, and not passed over.
        self._follower = Follower(kit, workflow_ids, since=since)
        self._rows = {name: self._row(name) for name in workflow_ids}

    @property
    def failed(self) -> list[str]:
        """The workflows that stand failed."""
        return [row.workflow_id for row in self._rows.values() if row.status == "failed"]

    @property
    def standing(self) -> list[tuple[str, str]]:
        """Each workflow, and how it stands."""
        return [(row.workflow_id, row.status) for row in self._rows.values()]

    def look(self) -> list[Change]:
        """Look once; answer what is new and asked for."""
        changes = [self._taken(event) for event in self._follower.changes()]
        return [change for change in changes if self._is_wanted(change)]

    def is_over(self, until: str | None) -> bool:
        """Tell whether what is waited for has come."""
        standing = [row.status for row in self._rows.values()]
        if until is None or not standing:
            return False
        return (until == "failed" and "failed" in standing) or all(status in ENDED for status in standing)

    def cells(self, count: int) -> list[tuple[str, ...]]:
        """Answer so many rows, those that changed last."""
        newest = sorted(self._rows.values(), key=lambda row: row.last, reverse=True)
        return [_cells(row) for row in newest[: max(count, 1)]]

    def _is_wanted(self, change: Change) -> bool:
        return not self._kinds or not self._kinds.isdisjoint((change.event.type, change.story.kind.value))

    def _row(self, workflow_id: str) -> Row:
        sequence = self._kit.store.head(workflow_id).sequence
        told = last_told(self._kit, workflow_id)
        return Row(workflow_id, told or by_checkpoint(self._kit, workflow_id), told, sequence)

    def _taken(self, event: Event) -> Change:
        """Keep the row of a workflow up to date."""
        row = self._rows.get(event.workflow_id)
        if row is None:
            row = self._rows[event.workflow_id] = Row(event.workflow_id, "")
        story = story_of(event)
        row.told = run_status(event) or row.told
        if row.told is not None:
            row.status = row.told
        elif story.kind in (Kind.CHECKPOINT, Kind.FAILURE) or not row.status:
            row.status = by_checkpoint(self._kit, event.workflow_id)
        row.checkpoints = max(row.checkpoints, event.cp_seq or 0)
        row.done += event.type == AGENT_COMPLETED
        row.failed += event.type == AGENT_FAILED
        row.last, row.doing = timestamp_text(event.timestamp), story.text
        return Change(event, story, row.status)


def _cells(row: Row) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.checkpoints, row.done, row.failed))
    last = time_text(row.last) if row.last else "-"
    return (row.workflow_id, row.status, *counts, last, row.doing)
