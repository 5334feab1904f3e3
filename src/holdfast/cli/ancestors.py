"""What a checkpoint grew out of: the checkpoints before it, and those of the workflow it was forked from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.cli.listing import CHECKPOINT_HEAD, checkpoint_row, meta_fields
from holdfast.cli.output import Output, counted
from holdfast.domain.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.resolve import Found

#: So many are shown at most.
SHOWN_MAX = 100


def ancestors(kit: Kit, found: Found) -> list[Found]:
    """Answer the ancestors of a checkpoint, the nearest first, and one more than are shown if there are."""
    return list(islice(_chain(kit, found), SHOWN_MAX + 1))


def _chain(kit: Kit, found: Found) -> Iterator[Found]:
    from holdfast.application.resolve import Found

    seen: set[str] = set()
    start: Found | None = found
    while start is not None and start.workflow_id not in seen:
        workflow_id, last = start.workflow_id, start.entry.sequence
        seen.add(workflow_id)
        if start is not found:
            yield start
        for entry in kit.store.entries(workflow_id, newest_first=True):
            if entry.sequence < last:
                yield Found(workflow_id, entry)
        start = _origin(kit, workflow_id)


def _origin(kit: Kit, workflow_id: str) -> Found | None:
    """Find the checkpoint at or before the point that a workflow was forked from, if it is still there."""
    from holdfast.application.forks import forks
    from holdfast.application.resolve import resolve
    from holdfast.domain.ids import parse_ref

    fork = next((one for one in forks(kit.store) if one.workflow_id == workflow_id), None)
    if fork is None:
        return None
    try:
        if not parse_ref(fork.point).is_point:
            return resolve(kit.store, fork.point)
        from holdfast.cli.points import travel_in

        return travel_in(kit).at(fork.point).found
    except CheckpointNotFoundError:
        return None


def show_ancestors(found: Found, parents: list[Found], output: Output) -> None:
    """Print the ancestors of a checkpoint."""
    shown = parents[:SHOWN_MAX]
    if output.as_json:
        fields = [meta_fields(one.workflow_id, one.entry) for one in shown]
        output.data({"id": str(found), "parents": fields, "is_cut": len(parents) > SHOWN_MAX})
        return
    if not shown:
        output.note("It grew out of nothing: it is the first.")
        return
    rows = [checkpoint_row(one.workflow_id, one.entry) for one in shown]
    output.table(CHECKPOINT_HEAD, rows, right="    rr")
    if len(parents) > SHOWN_MAX:
        output.note(f"The nearest {counted(SHOWN_MAX, 'checkpoint')}; there are more.")
