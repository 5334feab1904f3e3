"""`holdfast audit verify`: how far a trail can be trusted, with or without its store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from holdfast.cli.audit_files import write_file
from holdfast.cli.audit_opening import looking
from holdfast.cli.audit_trust import LEVELS, Known, level_of, read_keys, read_pin
from holdfast.cli.audit_verdict import leave_of, print_report
from holdfast.cli.bars import bar
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import Output
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.audit.export_source import ExportSource
    from holdfast.domain.log_check import Level, LogReport


@click.command("verify", cls=StoreCommand)
@click.argument("export", metavar="[EXPORT]", required=False)
@click.option(
    "--key", "keys", metavar="VKEY|FILE", multiple=True, help="Public key of the log; may be given again."
)
@click.option(
    "--pin", "pins", metavar="FILE|SIZE:ROOT", multiple=True, help="A head seen earlier; may be given again."
)
@click.option(
    "--witness", "witnesses", metavar="VKEY|FILE", multiple=True, help="Public key of a witness, as --key."
)
@click.option(
    "--quorum",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="So many witnesses must have signed.",
)
@click.option(
    "--require",
    type=click.Choice(LEVELS),
    help="The level to be reached. [default: what the keys and pins given are for]",
)
@click.option(
    "--remember", metavar="FILE", help="A pin that, if all is right, is replaced by the head seen now."
)
@click.option("--payloads", is_flag=True, help="Read the payloads and compare them as well.")
@click.option("--entry", metavar="FILE", help="The entry that a proof is for, where it does not hold it.")
def command(
    call: Call,
    export: str | None,
    keys: tuple[str, ...],
    pins: tuple[str, ...],
    witnesses: tuple[str, ...],
    quorum: int,
    require: str | None,
    remember: str | None,
    payloads: bool,
    entry: str | None,
) -> None:
    """Check the trail of a store, an export or a proof.

    EXPORT is the folder of an export or a .tlog-proof file; neither needs a
    store. Ends with 0 if all is right, with 21 if anything is wrong, and with
    22 if nothing is wrong but the level required was not reached (a key, a pin
    or a signature is missing), or the trail says nothing of a workflow that is
    in the store.

    \b
    Example:
      holdfast audit verify export/ --key log.vkey --pin head --require pinned
    """
    is_proof = export is not None and not os.path.isdir(export)
    if is_proof and remember is not None:
        raise click.UsageError(
            "--remember is for a log or an export: a proof says nothing of what came before"
        )
    if remember is not None and os.path.exists(remember):
        pins = (*pins, remember)
    known = Known(read_keys(keys), pins, read_keys(witnesses), quorum)
    required = level_of(require) if require else known.level
    if export is not None and is_proof:
        from holdfast.cli.audit_evidence import verify_proof

        raise click.exceptions.Exit(verify_proof(call, export, entry, known, required))
    if export is None:
        report = _verify_store(call, known, required, payloads=payloads)
    else:
        report = _verify_export(call, export, known, required)
    leave = leave_of(report, required)
    if remember is not None and leave is Exit.DONE:
        leave = _remember(call.output, report, remember)
    raise click.exceptions.Exit(leave)


def _verify_store(call: Call, known: Known, required: Level, *, payloads: bool) -> LogReport:
    with looking(call) as (kit, log):
        pins = known.read_pins(log.keeper.known_origin())
        trust = log.trust(known.keys, pins, known.witnesses, known.quorum)
        with bar(call.output, "verify") as show:
            report = log.verify(trust, payloads=payloads, on_progress=show)
        facts: dict[str, int | str] = {
            "level": report.level.label,
            "size": report.head.size,
            "entries": report.entries,
            "faults": report.fault_count,
        }
        told = [entry_of(kit, AuditType.TRAIL_VERIFIED, None, facts, failed=bool(report.fault_count))]
        if report.first_fault is not None:
            place = {"kind": str(report.first_fault.kind), "place": report.first_fault.place[:512]}
            told.append(entry_of(kit, AuditType.INTEGRITY_FAILED, None, {**place}, failed=True))
        tell(call, kit, told)
        print_report(call.output, kit.store.url, report, required, _remark(log, known))
    return report


def _remark(log: AuditLog, known: Known) -> str:
    """Say what the signatures are worth where no key was given."""
    if known.keys or not log.keeper.keys():
        return ""
    if log.keeper.own_key() is not None:
        return "checked with the key that is kept on this machine; --key gives another"
    return "checked with keys that the store itself names: who rewrites it can name others; give --key"


def _verify_export(call: Call, folder: str, known: Known, required: Level) -> LogReport:
    """Verify a folder by itself: no store is opened, and nothing is believed but what was given."""
    from holdfast import bootstrap
    from holdfast.application.audit.export_source import ExportSource
    from holdfast.domain.log_check import Trust

    source = ExportSource(folder)
    check = bootstrap.signature_check() if known.keys or known.witnesses else _nobody
    trust = Trust(check, known.keys, known.read_pins(_origin(source)), known.witnesses, known.quorum)
    with bar(call.output, "verify") as show:
        report = source.verify(trust, on_progress=show)
    remark = "" if known.keys else "not checked: give --key with a key that did not come with the export"
    print_report(call.output, folder, report, required, remark)
    return report


def _remember(output: Output, report: LogReport, path: str) -> Exit:
    """Put the head that was seen into a file; not in the place of one that it was not compared with."""
    head = report.head
    if not head.origin:
        output.note("Nothing to remember: the log has no name yet. `holdfast audit anchor` gives it one.")
    elif os.path.exists(path) and report.pinned_size < read_pin(path, head.origin).size:
        output.note(
            f"{path} stays as it was: a part of a log cannot be compared with it, only the whole can."
        )
        return Exit.INCONCLUSIVE
    else:
        write_file(path, head.text().encode())
    return Exit.DONE


def _nobody(key: bytes, message: bytes, signature: bytes) -> bool:
    """Check signatures where no key is known: there is none to check."""
    return False


def _origin(source: ExportSource) -> str:
    """Answer the name that an export has for its log, for pins that have none."""
    from holdfast.domain.errors import CheckpointError
    from holdfast.domain.note import parse_note
    from holdfast.domain.treehead import parse_head

    try:
        return parse_head(parse_note(source.checkpoint()).text).origin
    except CheckpointError:
        return ""
