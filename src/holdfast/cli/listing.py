"""`holdfast list`: what is in a store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading
from holdfast.cli.output import Output, counted, size_text

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.record import Entry

_DEFAULT_LIMIT = 100


@click.command("list", cls=StoreCommand)
@click.argument("workflow", required=False)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Show at most so many, the newest first.",
)
def command(call: Call, workflow: str | None, limit: int) -> None:
    """List workflows, or the checkpoints of one.

    \b
    Example:
      holdfast list WF-2026-001 --limit 20
    """
    with reading(call) as kit:
        if workflow is None:
            _list_workflows(call.output, kit, limit)
        else:
            _list_checkpoints(call.output, kit, find_workflow(kit, workflow), limit)


def _list_workflows(output: Output, kit: Kit, limit: int) -> None:
    found = [(workflow_id, *_newest(kit, workflow_id)) for workflow_id in kit.store.workflows()]
    found.sort(key=lambda one: (one[1].timestamp if one[1] else "", one[0]), reverse=True)
    shown = found[:limit]
    if output.as_json:
        output.data(
            {
                "store": kit.store.url,
                "workflows": [
                    {
                        "workflow_id": name,
                        "checkpoints": count,
                        "latest": meta_fields(name, entry) if entry else None,
                    }
                    for name, entry, count in shown
                ],
                "total": len(found),
            }
        )
        return
    if not found:
        output.note("The store is empty: no workflow has made a checkpoint yet.")
        return
    rows = [_workflow_row(name, entry, count) for name, entry, count in shown]
    output.table(("WORKFLOW", "CHECKPOINTS", "NEWEST (UTC)", "TYPE", "STATUS", "STATE"), rows, right=" r   r")
    _tell_rest(output, len(found), len(shown), "workflow")


def _newest(kit: Kit, workflow_id: str) -> tuple[Entry | None, int]:
    """Answer the newest checkpoint of a workflow and how many there are."""
    from holdfast.application.resolve import living

    kept = list(living(kit.store, workflow_id))
    return (kept[0] if kept else None), len(kept)


def _workflow_row(name: str, entry: Entry | None, count: int) -> tuple[str, ...]:
    if entry is None:
        return (name, "0", "-", "-", "-", "-")
    return (
        name,
        f"{count:,}",
        time_text(entry.timestamp),
        entry.type,
        entry.status,
        size_text(entry.state_bytes),
    )


def _list_checkpoints(output: Output, kit: Kit, workflow_id: str, limit: int) -> None:
    from holdfast.application.resolve import living

    total = sum(1 for _ in living(kit.store, workflow_id))
    entries = list(islice(living(kit.store, workflow_id), limit))
    if output.as_json:
        fields = [meta_fields(workflow_id, entry) for entry in entries]
        output.data(
            {"store": kit.store.url, "workflow_id": workflow_id, "checkpoints": fields, "total": total}
        )
        return
    output.table(*checkpoint_table(workflow_id, entries), right="    rr")
    _tell_rest(output, total, len(entries), "checkpoint")


def checkpoint_table(
    workflow_id: str, entries: Sequence[Entry]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Answer head and rows of a table of checkpoints."""
    head = ("CHECKPOINT", "CREATED (UTC)", "TYPE", "STATUS", "STATE", "STORED", "STAGE", "AGENT")
    return head, [_checkpoint_row(workflow_id, entry) for entry in entries]


def _checkpoint_row(workflow_id: str, entry: Entry) -> tuple[str, ...]:
    return (
        f"{workflow_id}@{entry.sequence}",
        time_text(entry.timestamp),
        entry.type,
        f"{entry.status}, pinned" if entry.pinned else entry.status,
        size_text(entry.state_bytes),
        size_text(entry.length),
        entry.stage or "-",
        entry.agent or "-",
    )


def _tell_rest(output: Output, total: int, shown: int, noun: str) -> None:
    if total > shown:
        output.note(f"{shown:,} of {counted(total, noun)}; --limit {total} shows all.")


def meta_fields(workflow_id: str, entry: Entry) -> dict[str, Any]:
    """Write what a listing knows about a checkpoint for programs."""
    return {
        "id": f"{workflow_id}@{entry.sequence}",
        "workflow_id": workflow_id,
        "sequence": entry.sequence,
        "uuid": entry.uuid,
        "created_at": entry.timestamp,
        "type": entry.type,
        "status": entry.status,
        "stage_id": entry.stage,
        "agent_id": entry.agent,
        "session_id": entry.session,
        "phase": entry.phase,
        "label": entry.label,
        "retry_count": entry.retry_count,
        "pinned": entry.pinned,
        "pruned": entry.pruned,
        "size_bytes": entry.state_bytes,
        "stored_bytes": entry.length,
        "parent": f"{workflow_id}@{entry.parent}" if entry.parent else None,
        "checksum": entry.checksum,
    }


def time_text(timestamp: str) -> str:
    """Shorten a stored timestamp to seconds."""
    return timestamp[:19].replace("T", " ")
