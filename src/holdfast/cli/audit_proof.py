"""`holdfast audit proof`: evidence for one entry that needs no store, no network and no program of ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.audit_files import write_file
from holdfast.cli.audit_opening import find_line, keeping, looking
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import safe
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.domain.audit_entry import AuditEntry
    from holdfast.domain.tlogproof import TlogProof


@click.command("proof", cls=StoreCommand)
@click.argument("entry", metavar="SESSION#SEQ|SESSION:ID")
@click.option("--out", metavar="FILE", help="Write it there; print it otherwise.")
def command(call: Call, entry: str, out: str | None) -> None:
    """Write the evidence for one entry into a file.

    The file is a C2SP tlog-proof: the entry's place, the way to the root, and
    the signed head. The entry itself, without its payload, rides along as
    extra data. `holdfast audit verify FILE --key VKEY` checks it.

    \b
    Example:
      holdfast audit proof cli-2026-01-31#3 --out entry.tlog-proof
    """
    from dataclasses import replace

    with looking(call) as (kit, log):
        found, line = find_line(kit, entry)
        facts: dict[str, int | str] = {"format": "proof", "session": found.session_id, "seq": found.seq}
        tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, found.workflow_id, facts)])
        proof = _proven(log, found)
    if proof is None:
        with keeping(call) as log:
            proof = log.keeper.proof(found.session_id, found.seq)
    data = replace(proof, extra=line).encode()
    fields = {"session": found.session_id, "seq": found.seq, "index": proof.index, "bytes": len(data)}
    if out is not None:
        write_file(out, data)
    if call.output.as_json:
        call.output.data({**fields, "file": out, "proof": data.decode()})
    elif out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        call.output.note(f"Leaf {proof.index} of the tree: {safe(out)}, {len(data):,} bytes.")


def _proven(log: AuditLog, entry: AuditEntry) -> TlogProof | None:
    """Prove an entry by a head that was signed before; None if none covers it."""
    from holdfast.domain.errors import CheckpointNotFoundError

    try:
        return log.keeper.proof(entry.session_id, entry.seq)
    except CheckpointNotFoundError:
        return None
