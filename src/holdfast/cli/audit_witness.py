"""`holdfast audit witness`: sign what only ever grows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.audit_trust import read_keys
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import safe

if TYPE_CHECKING:
    from holdfast.application.audit.witnessing import Witness
    from holdfast.domain.witness import Refusal

REQUEST_BYTES_MAX = 256 * 1024


@click.command("witness", cls=StoreCommand)
@click.option("--key", "key_file", metavar="FILE", required=True, help="File of the witness's private key.")
@click.option("--name", metavar="NAME", help="Make that key, with this name, if there is no such file.")
@click.option(
    "--log",
    "logs",
    metavar="VKEY|FILE",
    multiple=True,
    required=True,
    help="Public key of a log to sign for; may be given again.",
)
@click.option(
    "--state", "folder", metavar="DIR", required=True, help="Folder that remembers what was signed."
)
@click.option("--listen", metavar="HOST:PORT", help="Answer over HTTP there; port 0 takes a free one.")
@click.option("--public", is_flag=True, help="Let --listen be an address that others reach.")
def command(
    call: Call,
    key_file: str,
    name: str | None,
    logs: tuple[str, ...],
    folder: str,
    listen: str | None,
    public: bool,
) -> None:
    """Sign the heads of logs that only ever grow.

    A witness needs no store. Run it where the keeper of the log cannot reach,
    and never put its folder back to an older copy. Without --listen it reads
    one request from standard input and prints the cosignature: any way to
    bring a file to another machine will do. Ends with 21 if the log does not
    grow out of what was signed before, with 31 if it is refused otherwise.

    \b
    Example:
      holdfast audit witness --key w.key --log log.vkey --state seen
    """
    from holdfast.bootstrap_witness import open_witness

    if public and listen is None:
        raise click.UsageError("--public goes with --listen")
    witness = open_witness(key_file, read_keys(logs), folder, name=name)
    if listen is None:
        _answer_once(call, witness)
    else:
        _listen(call, witness, listen, public=public)


def _listen(call: Call, witness: Witness, address: str, *, public: bool) -> None:
    from holdfast.bootstrap_witness import witness_server

    with witness_server(witness, address, public=public) as server:
        if call.output.as_json:
            call.output.data({"url": server.url, "vkey": str(witness.key)})
        else:
            call.output.line(f"{safe(witness.key)} listens at {server.url}")
        sys.stdout.flush()
        server.serve_forever()


def _answer_once(call: Call, witness: Witness) -> None:
    from holdfast.domain.note import Signature

    call.output.note(f"witness {safe(witness.key)}")
    decided = witness.decide(sys.stdin.buffer.read(REQUEST_BYTES_MAX + 1))
    if not isinstance(decided, Signature):
        raise _refused(decided)
    if call.output.as_json:
        call.output.data({"vkey": str(witness.key), "cosignature": str(decided)})
    else:
        call.output.line(safe(decided))


def _refused(refusal: Refusal) -> Failure:
    from holdfast.domain.witness import Status

    is_other = refusal.status in (Status.INCONSISTENT, Status.CONFLICT)
    hint = f"Ask again with a proof from size {refusal.seen_size}." if refusal.seen_size is not None else ""
    leave = Exit.NOT_VERIFIED if refusal.status == Status.INCONSISTENT else Exit.REFUSED
    code = "inconsistent" if is_other and not hint else "refused"
    return Failure(code, leave, f"nothing was signed ({int(refusal.status)}): {refusal.reason}", hint=hint)
