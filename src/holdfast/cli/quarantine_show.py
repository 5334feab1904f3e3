"""`holdfast quarantine show`: why something was set aside, and the bytes themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import entry_of, reading, tell
from holdfast.cli.output import Output, safe, size_text
from holdfast.cli.quarantine_list import as_fields, status
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.quarantine import Quarantined
    from holdfast.domain.recovery_plan import Damage


@click.command("show", cls=StoreCommand)
@click.argument("name")
@click.option(
    "--save",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the bytes of each part into this folder, as they were found.",
)
def command(call: Call, name: str, save: Path | None) -> None:
    """Show why something was set aside, and its bytes.

    \b
    Example:
      holdfast quarantine show NAME --save evidence
    """
    from holdfast.application.quarantine_files import parts_of_report, report_of

    with reading(call) as kit:
        report = report_of(kit.store, name)
        parts = parts_of_report(kit.store, name)
        damage = _damage(kit, report)
        if save is not None:
            facts: dict[str, int | str] = {"quarantine": name, "evidence": f"sha256:{report.sha256}"}
            tell(call, kit, [entry_of(kit, AuditType.STATE_READ, report.workflow_id, facts)])
    if save is not None:
        _save(save, parts)
    if call.output.as_json:
        call.output.data({**as_fields(report), "damage": [str(one) for one in damage]})
    else:
        _print(call.output, report, damage, save)


def _damage(kit: Kit, report: Quarantined) -> tuple[Damage, ...]:
    """Tell what is in the way of the checkpoint at this moment."""
    from holdfast.application.recovery.unusable import why_unusable

    if report.workflow_id is None or report.sequence is None:
        return ()
    return why_unusable(kit.store, report.workflow_id, report.sequence)


def _save(folder: Path, parts: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, data) in enumerate(parts.items(), 1):
        # A name in a report may have been written by anybody.
        is_plain = name.replace("-", "").isalnum()
        (folder / (name if is_plain else f"part-{number}")).write_bytes(data)


def _print(output: Output, report: Quarantined, damage: tuple[Damage, ...], save: Path | None) -> None:
    rows = [
        ("what", report.place),
        ("status", status(report)),
        ("reason", report.reason),
        ("found", f"{time_text(report.found_at)} UTC by {report.found_by or 'the store'}"),
        ("sha256", report.sha256),
        ("checksum", report.checksum or ""),
    ]
    if report.released is not None:
        rows.append(("released", f"{time_text(report.released.at)} UTC: {report.released.reason}"))
    rows += [("damaged now", str(one)) for one in damage]
    for part in report.parts:
        kept = "kept" if part.is_copied else "whole, not copied"
        rows.append(("part", f"{part.name}, {size_text(part.size_bytes)}, {kept}"))
    for label, text in rows:
        if text:
            output.line(f"{label:<12} {safe(text)}")
    if save is not None:
        output.note(f"Saved to {safe(str(save))}")
