"""`holdfast audit anchor`: sign the head of the trail, have it witnessed, remember it elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_files import read_file, write_file
from holdfast.cli.audit_opening import keeping, looking
from holdfast.cli.audit_trust import read_keys, read_pin
from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import Output, counted, safe
from holdfast.domain.errors import ChecksumMismatchError

if TYPE_CHECKING:
    from holdfast.application.audit.log_keeping import LogKeeper
    from holdfast.domain.note import VerifierKey
    from holdfast.domain.treehead import TreeHead


@click.command("anchor", cls=StoreCommand)
@click.option("--pin", metavar="FILE", help="Remember the head in this file too; keep it elsewhere.")
@click.option(
    "--witness", "urls", metavar="URL", multiple=True, help="Ask this witness to sign; may be given again."
)
@click.option(
    "--witness-key", metavar="VKEY|FILE", multiple=True, help="Public key that its signature must be by."
)
@click.option("--request", metavar="FILE", help="Write what a witness is to be asked there; - prints it.")
@click.option(
    "--old-size", metavar="N", type=click.IntRange(min=0), help="Size of the last head that witness signed."
)
@click.option("--cosignature", metavar="FILE", help="Take in what a witness answered; - reads it.")
@changes()
def command(
    call: Call,
    pin: str | None,
    urls: tuple[str, ...],
    witness_key: tuple[str, ...],
    request: str | None,
    old_size: int | None,
    cosignature: str | None,
    change: Change,
) -> None:
    """Sign the head of the trail now, and have it witnessed.

    At first use a key is made, outside the store. Give the public key to
    whoever is to verify, by a way that does not lead through the store. Ends
    with 21 if the trail is not what was signed, pinned or witnessed before.

    \b
    Example:
      holdfast audit anchor --pin head --witness http://127.0.0.1:8788
    """
    keys = read_keys(witness_key)
    if change.dry_run:
        _plan(call, urls)
        return
    with keeping(call, reason=change.reason) as log:
        try:
            if cosignature is not None:
                log.keeper.add_cosignature(read_file(cosignature), keys)
            else:
                log.keeper.anchor(create_key=True)
            for url in urls:
                _ask(log.keeper, url, keys, old_size)
            if pin is not None:
                _pin(log.keeper, pin)
        except ChecksumMismatchError as error:
            raise Failure(
                error.code, Exit.NOT_VERIFIED, error.message, place=error.place, hint=error.hint
            ) from None
        if request is not None:
            write_file(request, log.keeper.add_checkpoint_request(_asked_size(log.keeper, old_size)))
        fields = _fields(log.keeper)
    if request != "-":
        _print(call.output, fields, pin)


def _plan(call: Call, urls: tuple[str, ...]) -> None:
    """Tell how much would be signed, and who would be asked to sign it too."""
    with looking(call) as (kit, log):
        newest = log.keeper.checkpoint()
        size = kit.store.integrate()
    signed = "a head was signed before" if newest else "for the first time"
    asked = f", and ask {safe(', '.join(urls))}" if urls else ""
    text = f"Would sign {counted(size, 'entry')}, {signed}{asked}"
    tell_plan(call.output, text, size=size, is_first=newest is None, witnesses=list(urls))


def _newest(keeper: LogKeeper) -> bytes:
    from holdfast.domain.errors import CheckpointNotFoundError

    checkpoint = keeper.checkpoint()
    if checkpoint is None:
        raise CheckpointNotFoundError("the log has no signed head", hint="Run `holdfast audit anchor`.")
    return checkpoint


def _ask(keeper: LogKeeper, url: str, keys: Iterable[VerifierKey], old_size: int | None) -> None:
    """Bring the newest head to a witness, and its signature back."""
    from holdfast.application.audit.witnessing import ask_witness
    from holdfast.bootstrap_witness import witness_at

    size = _asked_size(keeper, old_size)
    signatures = ask_witness(_newest(keeper), keeper.add_checkpoint_request, witness_at(url), old_size=size)
    keeper.add_cosignature("".join(f"{line}\n" for line in signatures).encode(), tuple(keys))


def _asked_size(keeper: LogKeeper, given: int | None) -> int:
    """Answer the size of the last head that any witness signed; one that saw another tells so."""
    from holdfast.domain.note import parse_note
    from holdfast.domain.treehead import parse_head

    if given is not None:
        return given
    notes = [parse_note(head) for head in keeper.heads()]
    heads = [(parse_head(note.text), {line.name for line in note.signatures}) for note in notes]
    return max((head.size for head, names in heads if names - {head.origin}), default=0)


def _pin(keeper: LogKeeper, path: str) -> None:
    """Put the newest head into a file, if it grew out of the one that is there."""
    from holdfast.domain.note import parse_note
    from holdfast.domain.treehead import check_growth, parse_head

    checkpoint = _newest(keeper)
    head: TreeHead = parse_head(parse_note(checkpoint).text)
    if os.path.exists(path):
        old = read_pin(path, head.origin)
        _check_growth(keeper, old, head)
        if old.size == head.size:
            return
    else:
        check_growth(head, head, keeper.tiles.hashes(head.size))
    write_file(path, checkpoint)


def _check_growth(keeper: LogKeeper, old: TreeHead, new: TreeHead) -> None:
    from holdfast.domain.treehead import check_growth

    try:
        check_growth(old, new, keeper.tiles.hashes(new.size))
    except ChecksumMismatchError as error:
        raise ChecksumMismatchError(
            f"the pinned head is not one of this log: {error.message}",
            hint="The store was put back, cut or rewritten since, or the pin is another log's.",
        ) from None


def _fields(keeper: LogKeeper) -> dict[str, Any]:
    from holdfast import bootstrap
    from holdfast.domain.note import parse_note
    from holdfast.domain.treehead import parse_head

    checkpoint = _newest(keeper)
    note = parse_note(checkpoint)
    head = parse_head(note.text)
    return {
        "origin": head.origin,
        "size": head.size,
        "root": head.root.hex(),
        "keys": list(map(str, keeper.keys())),
        "private_key": bootstrap.key_place(head.origin),
        "witnesses": sorted({line.name for line in note.signatures} - {head.origin}),
        "checkpoint": checkpoint.decode(),
    }


def _print(output: Output, fields: dict[str, Any], pin: str | None) -> None:
    if output.as_json:
        output.data(fields)
        return
    output.line(f"signed       {counted(fields['size'], 'entry')}, root {fields['root']}")
    for key in fields["keys"]:
        output.line(f"public key   {safe(key)}")
    if fields["witnesses"]:
        output.line(f"witnessed    by {safe(', '.join(fields['witnesses']))}")
    if pin is not None:
        output.line(f"pinned       in {safe(pin)}")
    if len(fields["keys"]) > 1:
        output.note("More than one key has signed this log: whoever verifies it needs all of them.")
    output.note(f"The private key is in {safe(fields['private_key'])}. Keep a copy; it is not in the store.")
