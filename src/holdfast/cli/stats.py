"""`holdfast stats`: what takes room, how it grows, what is slow or fails, and what deserves a look."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.cli.bars import bar
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.insight.summary import Stats
    from holdfast.application.kit import Kit

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
#: What each flag tells; `--by` chooses as well.
_FLAGS = {
    "growth": "growth",
    "forecast": "growth",
    "agents": "agents",
    "paths": "paths",
    "intervals": "intervals",
    "recoveries": "recoveries",
    "anomalies": "anomalies",
    "risk": "risks",
}
_BY = {"workflow": "storage", "kind": "storage", "agent": "agents"}


def _read_size(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no size; write 500MB, 50GB or a number of bytes.")
    return int(float(found[1]) * 1000 ** _POWERS[found[2].lower()])


@click.command("stats", cls=StoreCommand)
@click.argument("workflow", required=False)
@click.option(
    "--by", type=click.Choice([*_BY]), help="What takes room by workflow or kind, or time by agent."
)
@click.option("--growth", is_flag=True, help="Tell how the store grew, day by day.")
@click.option("--forecast", is_flag=True, help="Tell when the disk, or --quota, will be full.")
@click.option("--agents", is_flag=True, help="Tell which agents are slow, and which fail.")
@click.option("--paths", is_flag=True, help="Tell which ways runs take, and their loops.")
@click.option("--intervals", is_flag=True, help="Tell what checkpoints cost and save.")
@click.option("--recoveries", is_flag=True, help="Tell how recoveries ended.")
@click.option("--anomalies", is_flag=True, help="Find sizes and durations unlike the rest.")
@click.option("--risk", is_flag=True, help="Tell which live runs may fail, and why.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, 3660),
    default=30,
    show_default=True,
    help="How far back growth is told.",
)
@click.option("--quota", metavar="SIZE", callback=_read_size, help="What the store must not exceed: 50GB.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Read the journals of at most so many workflows.",
)
def command(
    call: Call,
    workflow: str | None,
    by: str | None,
    days: int,
    quota: int | None,
    limit: int,
    **flags: bool,
) -> None:
    """Count, forecast, and find what is slow or fails.

    Without an option that names a part, the most important of each is told.
    Nothing is changed.

    \b
    Example:
      holdfast stats --growth --forecast --days 90
    """
    from holdfast.application.insight.summary import LISTING_PARTS, PARTS
    from holdfast.cli.stats_page import Asked, print_stats

    chosen = {_FLAGS[name] for name, given in flags.items() if given} | ({_BY[by]} if by else set())
    parts = frozenset(chosen or PARTS)
    with reading(call) as kit:
        told = _counted(call, kit, workflow and find_workflow(kit, workflow), parts, days, quota, limit)
        if parts - LISTING_PARTS:
            facts: dict[str, int | str] = {"workflows": told.looked_at}
            types = [AuditType.EVENTS_READ, *([AuditType.TRAIL_READ] if told.recoveries else [])]
            tell(call, kit, [entry_of(kit, type, told.workflow_id, facts) for type in types])
    if call.output.as_json:
        whole = asdict(told)
        call.output.data({name: value for name, value in whole.items() if name not in {*PARTS} - parts})
        return
    asked = Asked(is_brief=not chosen, by=by, has_days=flags["growth"])
    print_stats(call.output, told, asked)


def _counted(
    call: Call,
    kit: Kit,
    workflow_id: str | None,
    parts: frozenset[str],
    days: int,
    quota_bytes: int | None,
    limit: int,
) -> Stats:
    from holdfast.application.insight.summary import stats

    with bar(call.output, "Reading journals") as show:
        return stats(
            kit,
            workflow_id,
            parts=parts,
            limit=limit,
            days=days,
            limit_bytes=quota_bytes,
            on_progress=show,
        )
