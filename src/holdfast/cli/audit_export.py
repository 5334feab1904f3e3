"""`holdfast audit export`: everything that somebody needs who verifies elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import click

from holdfast.cli.audit_opening import anchor_if_possible, find_session, looking
from holdfast.cli.bars import Show, bar
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, refuse_inside, tell
from holdfast.cli.output import counted, safe, size_text
from holdfast.domain.audit_type import AuditType


@click.command("export", cls=StoreCommand)
@click.argument("folder", metavar="DIR")
@click.option("--session", metavar="S", help="Only this session, with a proof for each of its entries.")
@click.option("--no-payloads", is_flag=True, help="Leave payloads out; everything can still be verified.")
@click.option("--import", "import_id", metavar="ID", help="A trail that `holdfast copy` took along.")
def command(call: Call, folder: str, session: str | None, no_payloads: bool, import_id: str | None) -> None:
    """Write the trail into a folder that anyone can verify.

    DIR must be empty, or not there. It holds a C2SP tlog-tiles log, the signed
    heads, public keys, each session as JSON lines and, unless left out, the
    payloads, which may hold personal data. Its README.txt tells how to verify
    it without Holdfast.

    \b
    Example:
      holdfast audit export export/ --session cli-2026-01-31 --no-payloads
    """
    from holdfast.application.audit.audit_export import write_export

    if import_id is not None:
        _write_import(call, folder, import_id, is_whole=session is None and not no_payloads)
        return
    with looking(call) as (kit, _):
        refuse_inside(folder, kit.store.url, "DIR")
        facts: dict[str, int | str] = {"payloads": "no" if no_payloads else "yes"}
        if session is not None:
            facts["session"] = find_session(kit, session)
        # Told before: the entry goes along, and what could not be told never left.
        if tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, facts)]):
            anchor_if_possible(call)
        with bar(call.output, "export") as show:
            result = write_export(
                kit, folder, session, include_payloads=not no_payloads, on_file=_counting(show)
            )
    if call.output.as_json:
        call.output.data(
            {
                "folder": str(result.folder),
                "session": result.session_id,
                "entries": result.entries,
                "signed_size": result.signed_size,
                "files": result.files,
                "bytes": result.bytes,
                "payloads": not no_payloads,
                "absent": result.absent,
            }
        )
        return
    call.output.line(
        f"{counted(result.entries, 'entry')} in {counted(result.files, 'file')}, {size_text(result.bytes)}, "
        f"at {safe(result.folder)}"
    )
    if not result.signed_size:
        call.output.note("Nothing was ever signed: run `holdfast audit anchor` first, and export again.")
    if result.absent:
        call.output.note(
            f"{counted(result.absent, 'payload')} did not come along: erased, or lost. "
            "`holdfast audit verify --payloads` on the store tells which."
        )
    if not no_payloads:
        call.output.note("It holds payloads, which may be personal data. Hand it on accordingly.")


def _counting(show: Show) -> Callable[[str], None]:
    """Answer what shows how many files there are by now; nobody knows how many there will be."""
    numbers = count(1)
    return lambda name: show(next(numbers), 0, name)


def _write_import(call: Call, folder: str, import_id: str, *, is_whole: bool) -> None:
    """Write a trail that came from another store out again, as it arrived."""
    from holdfast.application.audit.trail_copying import write_import

    if not is_whole:
        raise click.UsageError("--import gives the trail as it arrived, without --session and --no-payloads")
    with looking(call) as (kit, _):
        refuse_inside(folder, kit.store.url, "DIR")
        facts: dict[str, int | str] = {"import": import_id, "payloads": "yes"}
        tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, facts)])
        files, size = write_import(kit.store, import_id, folder)
    if call.output.as_json:
        call.output.data({"folder": folder, "import": import_id, "files": files, "bytes": size})
    else:
        call.output.line(f"{counted(files, 'file')}, {size_text(size)}, at {safe(folder)}")
