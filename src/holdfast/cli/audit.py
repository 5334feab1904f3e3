"""`holdfast audit`: the commands about the trail, each loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

#: Module and summary of each command, as for the commands of the first floor.
AUDIT_COMMANDS: Mapping[str, tuple[str, str]] = {
    "anchor": ("audit_anchor", "Sign the head of the trail now, and have it witnessed."),
    "export": ("audit_export", "Write the trail into a folder that anyone can verify."),
    "log": ("audit_log", "List entries of the trail, the newest last."),
    "proof": ("audit_proof", "Write the evidence for one entry into a file."),
    "prune": ("audit_prune", "Remove old payloads; entries and proofs stay."),
    "register": ("audit_register", "Tell what is processed, why and for how long (GDPR, Art. 30)."),
    "report": ("audit_report", "Tell a session to people, or gather an evidence pack."),
    "show": ("audit_show", "Show one entry and what it holds."),
    "verify": ("audit_verify", "Check the trail of a store, an export or a proof."),
    "witness": ("audit_witness", "Sign the heads of logs that only ever grow."),
}

command = Commands(
    table=AUDIT_COMMANDS,
    name="audit",
    help="""Look at the trail, verify it, sign it, hand it out.

    Every operation on a store is told in its trail: chained in sessions, and
    leaves of one Merkle tree whose heads are signed.

    \b
    Example:
      holdfast audit verify --store .holdfast
    """,
)
