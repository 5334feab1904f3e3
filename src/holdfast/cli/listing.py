"""`holdfast list`: what is in a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.list_paging import SORTS, Filters, Page, checkpoint_page, workflow_page
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import find_workflow, reading
from holdfast.cli.output import Cell, Output, counted, safe, size_text
from holdfast.domain.errors import CheckpointError

if TYPE_CHECKING:
    from holdfast.application.insight.runs import RunBook, RunRow
    from holdfast.application.kit import Kit
    from holdfast.domain.record import Entry

#: A workflow of a page, its newest checkpoint, and how it stands.
_Listed = tuple[str, "Entry | None", "RunRow | None"]

_DEFAULT_LIMIT = 100
#: How runs stand, and checkpoints; a test compares them, so that no command has to load so much.
_RUN_STATES = (
    "running",
    "waiting",
    "paused",
    "crashed",
    "failed",
    "cancelled",
    "completed",
    "idle",
    "empty",
    "unreadable",
)
_CHECKPOINT_STATES = ("active", "completed", "failed", "recovering")


@click.command("list", cls=StoreCommand)
@click.argument("workflow", required=False)
@click.option("--status", metavar="S", help="Only those that stand so: crashed, waiting, completed.")
@click.option("--agent", metavar="NAME", help="Only those of this agent.")
@click.option("--label", metavar="TEXT", help="Only those with this label.")
@click.option("--session", metavar="S", help="Only those of this session.")
@click.option("--since", metavar="TIME", callback=read_moment, help="Only later ones: 2026-01-31, or 7d.")
@click.option("--until", metavar="TIME", callback=read_moment, help="Only earlier ones.")
@click.option("--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="Which first.")
@click.option("--cursor", metavar="C", help="Go on after a page: the next_cursor that it told.")
@click.option("--branch", metavar="WORKFLOW", help="Only this workflow and what was forked from it.")
@click.option("--tree", is_flag=True, help="Show which workflow was forked from which.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Show at most so many.",
)
def command(
    call: Call,
    workflow: str | None,
    sort: str,
    cursor: str | None,
    branch: str | None,
    tree: bool,
    limit: int,
    **filters: Any,
) -> None:
    """List workflows, or the checkpoints of one.

    A workflow is sought by how its run stands, and by what its newest
    checkpoint says.

    \b
    Example:
      holdfast list WF-2026-001 --limit 20
    """
    wanted = Filters(**filters)
    _check_status(wanted.status, is_run=workflow is None)
    if workflow is not None and branch is not None:
        raise click.UsageError("--branch lists workflows: leave the other WORKFLOW out")
    with reading(call) as kit:
        for name in filter(None, (workflow, branch)):
            find_workflow(kit, name)
        if tree:
            if cursor or wanted != Filters():
                raise click.UsageError("--tree goes with WORKFLOW or --branch, --limit and nothing else")
            _list_tree(call.output, kit, workflow, branch, limit)
        elif workflow is None:
            from holdfast.application.insight.runs import RunBook

            book = RunBook(kit)
            names = None if branch is None else _names_of(kit, branch)
            wanted, is_wanted = _about_runs(kit, book, wanted)
            page = workflow_page(kit.store, wanted, sort, cursor, limit, is_wanted, names)
            _list_workflows(call.output, kit, book, page)
        else:
            wanted = replace(wanted, labelled=_labelled(kit, workflow, wanted.label))
            page = checkpoint_page(kit.store, workflow, wanted, sort, cursor, limit)
            _list_checkpoints(call.output, kit, workflow, page)


def _check_status(status: str | None, *, is_run: bool) -> None:
    """Refuse what nothing could ever be like.

    Raises:
        UsageError: there is no such status.
    """
    known = [*(_RUN_STATES if is_run else ()), *_CHECKPOINT_STATES]
    if status is not None and status not in known:
        raise click.UsageError(f"--status is one of {', '.join(dict.fromkeys(known))}")


def _labelled(kit: Kit, workflow_id: str, label: str | None) -> frozenset[int]:
    """Answer the checkpoints that were given a label after they were made."""
    if label is None:
        return frozenset()
    from holdfast.application.annotating import annotations_of
    from holdfast.application.reading import Reader
    from holdfast.application.resolve import Found

    found = [Found(workflow_id, entry) for entry in kit.store.entries(workflow_id) if not entry.pruned]
    said = annotations_of(Reader(kit), workflow_id, found)
    return frozenset(sequence for sequence, one in said.items() if label in one.labels)


def _about_runs(kit: Kit, book: RunBook, wanted: Filters) -> tuple[Filters, Callable[[str], bool] | None]:
    """Part what the newest checkpoint tells from what the whole workflow does: how it stands, its labels."""
    checks = list[Callable[[str], bool]]()
    if wanted.status in _RUN_STATES:
        checks.append(partial(_stands_so, book, wanted.status))
    if wanted.label is not None:
        checks.append(partial(_has_label, kit, wanted.label))
    if not checks:
        return wanted, None
    status = None if wanted.status in _RUN_STATES else wanted.status
    return replace(wanted, status=status, label=None), lambda name: all(check(name) for check in checks)


def _stands_so(book: RunBook, status: str | None, name: str) -> bool:
    row = book.row(name)
    return row is not None and row.status == status


def _has_label(kit: Kit, label: str, name: str) -> bool:
    """Tell whether a checkpoint of a workflow has a label; of one that cannot be read nobody knows."""
    try:
        made_with = {entry.label for entry in kit.store.entries(name) if not entry.pruned}
        return label in made_with or bool(_labelled(kit, name, label))
    except CheckpointError as damage:
        click.echo(f"warning: {safe(name)} cannot be read: {safe(damage.message)}", err=True)
        return False


def _list_workflows(output: Output, kit: Kit, book: RunBook, page: Page) -> None:
    found = [(name, entry, book.row(name)) for name, entry in page.rows]
    if output.as_json:
        workflows = [
            {
                "workflow_id": name,
                "checkpoints": row.checkpoints if row else 0,
                "status": row.status if row else "empty",
                "reason": row.reason if row else "",
                "latest": meta_fields(name, entry) if entry else None,
            }
            for name, entry, row in found
        ]
        told = {"store": kit.store.url, "workflows": workflows, "total": page.total}
        output.data({**told, "next_cursor": page.next_cursor})
        _warn(output, found)
        return
    if not found:
        output.note(
            "Nothing is like that."
            if page.is_filtered
            else "The store is empty: no workflow has made a checkpoint yet."
        )
        return
    rows = [_workflow_row(name, entry, row) for name, entry, row in found]
    output.table(("WORKFLOW", "CHECKPOINTS", "NEWEST (UTC)", "TYPE", "STATUS", "STATE"), rows, right=" r   r")
    _tell_rest(output, page, "workflow")
    _warn(output, found)


def _warn(output: Output, found: Sequence[_Listed]) -> None:
    """Say of which workflows damage hides how they stand: that is no way of standing."""
    unreadable = [(name, row.reason) for name, _, row in found if row and row.status == "unreadable"]
    for name, reason in unreadable:
        click.echo(f"warning: {safe(name)}: {safe(reason)}", err=True)
    if unreadable:
        output.note("`holdfast doctor` says what is damaged, and what to do about it.")


def _workflow_row(name: str, entry: Entry | None, row: RunRow | None) -> tuple[str, ...]:
    status = row.status if row else "empty"
    count = f"{row.checkpoints if row else 0:,}"
    if status == "unreadable" and count == "0":
        count = "-"
    if entry is None:
        return (name, count, "-", "-", status, "-")
    return (
        name,
        count,
        time_text(entry.timestamp),
        entry.type,
        status,
        size_text(entry.state_bytes),
    )


def _list_checkpoints(output: Output, kit: Kit, workflow_id: str, page: Page) -> None:
    entries = [entry for _, entry in page.rows if entry is not None]
    if output.as_json:
        fields = [meta_fields(workflow_id, entry) for entry in entries]
        told = {"store": kit.store.url, "workflow_id": workflow_id, "checkpoints": fields}
        output.data({**told, "total": page.total, "next_cursor": page.next_cursor})
        return
    output.table(*checkpoint_table(workflow_id, entries), right="    rr")
    _tell_rest(output, page, "checkpoint")


def _names_of(kit: Kit, branch: str) -> list[str]:
    """Name the workflows of a branch, its first one first."""
    from holdfast.cli.lineage import branch_of

    return [kin.workflow_id for kin in branch_of(kit.store, branch).all()]


def _list_tree(output: Output, kit: Kit, workflow_id: str | None, branch: str | None, limit: int) -> None:
    from holdfast.cli.lineage import branch_of, family, forest

    if branch is not None:
        roots = [branch_of(kit.store, branch)]
    else:
        roots = forest(kit.store) if workflow_id is None else [family(kit.store, workflow_id)]
    if output.as_json:
        trees = [root.fields(kit.store) for root in roots[:limit]]
        output.data({"store": kit.store.url, "trees": trees, "total": len(roots)})
        return
    for root in roots[:limit]:
        output.tree(root.branch(kit.store))
    if len(roots) > limit:
        output.note(f"{limit:,} of {counted(len(roots), 'tree')}; --limit {len(roots)} shows all.")


def checkpoint_table(
    workflow_id: str, entries: Sequence[Entry]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Answer head and rows of a table of checkpoints."""
    return CHECKPOINT_HEAD, [checkpoint_row(workflow_id, entry) for entry in entries]


CHECKPOINT_HEAD = ("CHECKPOINT", "CREATED (UTC)", "TYPE", "STATUS", "STATE", "STORED", "STAGE", "AGENT")


def checkpoint_row(workflow_id: str, entry: Entry) -> tuple[str, ...]:
    """Answer the cells of one checkpoint."""
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


def _tell_rest(output: Output, page: Page, noun: str) -> None:
    if page.next_cursor is not None:
        shown = f"{len(page.rows):,} of {counted(page.total, noun)}; --limit {page.total} shows all"
        output.note(f"{shown}, --cursor {page.next_cursor} those that follow.")


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


def time_text(timestamp: str) -> Cell:
    """Shorten a stored timestamp to seconds."""
    return Cell(timestamp[:19].replace("T", " "), timestamp)
