"""`holdfast audit report`: what a session's trail tells people, and the evidence pack for auditors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_files import written_whole
from holdfast.cli.audit_opening import anchor_if_possible, find_session, looking
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import counted, safe
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.audit.reporting import Reports
    from holdfast.application.kit import Kit
    from holdfast.domain.log_check import LogReport

FORMATS = ("jsonl", "csv", "html", "bundle")
FRAMEWORKS = ("soc2", "gdpr", "ai-act")


@click.command("report", cls=StoreCommand)
@click.option("--session", metavar="S", help="The session to report on.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(FORMATS),
    default="html",
    show_default=True,
    help="How; bundle is a zip file with all of them, the export and a signed statement.",
)
@click.option(
    "--pack",
    "packs",
    type=click.Choice(FRAMEWORKS),
    multiple=True,
    help="Gather evidence for these controls into the folder --out; may be given again.",
)
@click.option(
    "--at", "size", metavar="N", type=click.IntRange(min=0), help="Make --pack of the first N entries only."
)
@click.option("--out", metavar="FILE|DIR", help="Write there; a report is printed otherwise.")
def command(
    call: Call, session: str | None, layout: str, packs: tuple[str, ...], size: int | None, out: str | None
) -> None:
    """Tell a session to people, or gather an evidence pack.

    A report holds payloads, which may be personal data. A pack holds none: of
    each control what is asked, the entries that answer it, and their proofs.

    \b
    Example:
      holdfast audit report --session s-1 --format html --out report.html
    """
    if bool(packs) == (session is not None):
        raise click.UsageError("give --session or --pack")
    if out is None and (packs or layout == "bundle"):
        raise click.UsageError("--out is needed: this is more than can be printed")
    if size is not None and not packs:
        raise click.UsageError("--at goes with --pack")
    if session is not None and out is not None and not os.path.isdir(os.path.dirname(out) or "."):
        raise click.UsageError(f"{out} cannot be written: its folder is not there")
    with looking(call) as (kit, log):
        facts: dict[str, int | str] = {"format": f"pack {' '.join(packs)}" if packs else layout}
        if session is not None:
            facts["session"] = find_session(kit, session)
        # Told before: what could not be told never left.
        if tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, facts)]):
            anchor_if_possible(call)
        if session is not None:
            _report(call, kit, log, session, layout, out)
        else:
            _pack(call, kit, log, packs, size, out or "")


def _reports(kit: Kit, log: AuditLog) -> Reports:
    from holdfast.application.audit.reporting import Reports
    from holdfast.application.secrecy.sealing import read_payload

    return Reports(kit, log.keeper, log.trust(), partial(read_payload, kit.vault))


def _report(call: Call, kit: Kit, log: AuditLog, session_id: str, layout: str, out: str | None) -> None:
    reports = _reports(kit, log)
    verified: LogReport | None = log.verify(payloads=True) if layout in ("html", "bundle") else None
    if out is None:
        _print(call, session_id, layout, reports.write(layout, session_id, verified))
        return
    with written_whole(out) as file:
        if layout == "bundle":
            reports.bundle(file, session_id, verified)
        else:
            file.writelines(reports.write(layout, session_id, verified))
    written = os.path.getsize(out)
    if call.output.as_json:
        call.output.data({"session": session_id, "format": layout, "file": out, "bytes": written})
    else:
        call.output.note(f"Wrote {safe(out)}, {written:,} bytes.")


def _print(call: Call, session_id: str, layout: str, pieces: Iterable[bytes]) -> None:
    if call.output.as_json:
        text = b"".join(pieces).decode("utf-8", "replace")
        call.output.data({"session": session_id, "format": layout, "report": text})
        return
    sys.stdout.flush()
    for piece in pieces:
        sys.stdout.buffer.write(piece)


def _pack(call: Call, kit: Kit, log: AuditLog, packs: tuple[str, ...], size: int | None, out: str) -> None:
    index: dict[str, Any] = _reports(kit, log).pack(Path(out), size, packs)
    if call.output.as_json:
        call.output.data({"folder": out, **index})
        return
    controls = index["controls"]
    call.output.line(f"{counted(len(controls), 'control')} in {safe(out)}; read {safe(out)}/index.html")
