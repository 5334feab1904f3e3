"""`holdfast audit export`: everything that somebody needs who verifies elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.audit_opening import anchor_if_possible, find_session, looking
from holdfast.cli.bars import Show, bar
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import entry_of, refuse_inside, tell
from holdfast.cli.output import Output, counted, safe, size_text
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.audit.audit_export import ExportResult
    from holdfast.application.audit.period import Period


@click.command("export", cls=StoreCommand)
@click.argument("folder", metavar="DIR")
@click.option("--session", metavar="S", help="Only this session, with a proof for each of its entries.")
@click.option(
    "--from",
    "since",
    metavar="TIME",
    callback=read_moment,
    help="Only what was recorded from then on: 2026-01-31, or 7d.",
)
@click.option("--to", "until", metavar="TIME", callback=read_moment, help="Only what was recorded before.")
@click.option(
    "--no-payloads",
    "--redact",
    "no_payloads",
    is_flag=True,
    help="Leave payloads out; everything can still be verified.",
)
@click.option("--import", "import_id", metavar="ID", help="A trail that `holdfast copy` took along.")
def command(
    call: Call,
    folder: str,
    session: str | None,
    since: datetime | None,
    until: datetime | None,
    no_payloads: bool,
    import_id: str | None,
) -> None:
    """Write the trail into a folder that anyone can verify.

    DIR must be empty, or not there. It holds a C2SP tlog-tiles log, the signed
    heads, public keys, each session as JSON lines and, unless left out, the
    payloads, which may hold personal data. Its README.txt tells how to verify
    it without Holdfast. A session or a period has a proof for each entry
    instead; of a period nothing is shown of what was before and after.

    \b
    Example:
      holdfast audit export export/ --session cli-2026-01-31 --no-payloads
      holdfast audit export january/ --from 2026-01-01 --to 2026-02-01 --redact
    """
    from holdfast.application.audit.audit_export import write_export

    period = _period(since, until, session)
    if import_id is not None:
        _write_import(call, folder, import_id, is_whole=not (session or period or no_payloads))
        return
    with looking(call) as (kit, _):
        refuse_inside(folder, kit.store.url, "DIR")
        facts: dict[str, int | str] = {"payloads": "no" if no_payloads else "yes"}
        if session is not None:
            facts["session"] = find_session(kit, session)
        if period is not None:
            ends = {"since": period.since, "until": period.until}
            facts |= {name: text for name, text in ends.items() if text}
        # Told before: the entry goes along, and what could not be told never left.
        if tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, facts)]):
            anchor_if_possible(call)
        with bar(call.output, "export") as show, _tidied(folder):
            result = write_export(
                kit,
                folder,
                session,
                period=period,
                include_payloads=not no_payloads,
                on_file=_counting(show),
            )
    if call.output.as_json:
        call.output.data(_fields(result, period, has_payloads=not no_payloads))
    else:
        _print(call.output, result, period, has_payloads=not no_payloads)


def _period(since: datetime | None, until: datetime | None, session: str | None) -> Period | None:
    """Answer the period that is wanted; None where it is everything.

    Raises:
        UsageError: it ends before it begins, or goes with a session.
    """
    if since is None and until is None:
        return None
    if session is not None:
        raise click.UsageError("a session is exported whole: give either --session, or --from and --to")
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from has to lie before --to")
    from holdfast.application.audit.period import Period

    return Period.between(since, until)


def _fields(result: ExportResult, period: Period | None, *, has_payloads: bool) -> dict[str, object]:
    return {
        "folder": str(result.folder),
        "session": result.session_id,
        "from": (period.since if period else "") or None,
        "to": (period.until if period else "") or None,
        "entries": result.entries,
        "signed_size": result.signed_size,
        "files": result.files,
        "bytes": result.bytes,
        "payloads": has_payloads,
        "absent": result.absent,
    }


def _print(output: Output, result: ExportResult, period: Period | None, *, has_payloads: bool) -> None:
    output.line(
        f"{counted(result.entries, 'entry')} in {counted(result.files, 'file')}, {size_text(result.bytes)}, "
        f"at {safe(result.folder)}"
    )
    if period is not None:
        output.note(
            "It shows that nothing between its first and its last entry was left out, and nothing of what was"
            " before and after: for that, export the whole log."
        )
    if not result.signed_size:
        output.note("Nothing was ever signed: run `holdfast audit anchor` first, and export again.")
    if result.absent:
        output.note(
            f"{counted(result.absent, 'payload')} did not come along: erased, or lost. "
            "`holdfast audit verify --payloads` on the store tells which."
        )
    if has_payloads:
        output.note("It holds payloads, which may be personal data. Hand it on accordingly.")


@contextmanager
def _tidied(folder: str) -> Iterator[None]:
    """Take the folders away again that were made for an export that came to nothing."""
    place = Path(folder)
    made = [path for path in (place, *place.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in made:
            # One that holds something stays.
            with suppress(OSError):
                path.rmdir()
        raise


def _counting(show: Show) -> Callable[[str], None]:
    """Answer what shows how many files there are by now; nobody knows how many there will be."""
    numbers = count(1)
    return lambda name: show(next(numbers), 0, name)


def _write_import(call: Call, folder: str, import_id: str, *, is_whole: bool) -> None:
    """Write a trail that came from another store out again, as it arrived."""
    from holdfast.application.audit.trail_copying import write_import

    if not is_whole:
        raise click.UsageError("--import gives the trail as it arrived: whole, with its payloads")
    with looking(call) as (kit, _):
        refuse_inside(folder, kit.store.url, "DIR")
        facts: dict[str, int | str] = {"import": import_id, "payloads": "yes"}
        tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, facts)])
        with _tidied(folder):
            files, size = write_import(kit.store, import_id, folder)
    if call.output.as_json:
        call.output.data({"folder": folder, "import": import_id, "files": files, "bytes": size})
    else:
        call.output.line(f"{counted(files, 'file')}, {size_text(size)}, at {safe(folder)}")
