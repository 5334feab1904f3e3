"""`holdfast init`: make a store, and the key that signs its trail."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import Output, safe
from holdfast.domain.errors import CheckpointError, StoreNotFoundError

if TYPE_CHECKING:
    from holdfast.application.service import CheckpointService


@click.command("init", cls=StoreCommand)
@click.option("--encrypt", is_flag=True, help="Encrypt it, with the key that encryption_key names.")
def command(call: Call, encrypt: bool) -> None:
    """Make a new, empty store.

    A store that is there already is left as it is. A new one gets a key that
    signs its trail, outside of it, if the package for that is installed: give
    the public key that is printed to whoever is to verify.

    \b
    Example:
      holdfast init --store .holdfast
    """
    key: dict[str, Any] = {}
    try:
        with reading(call) as kit:
            url, created = kit.store.url, False
    except StoreNotFoundError:
        with writing(call, create=True, encrypt=encrypt) as service:
            key = _made_key(call.output, service)
        with reading(call) as kit:
            url, created = kit.store.url, True
    if call.output.as_json:
        call.output.data({"store": url, "created": created, **key})
    elif not call.output.quiet:
        _print(call.output, url, key, created=created)


def _made_key(output: Output, service: CheckpointService) -> dict[str, Any]:
    """Make the key and sign the first head; a store is of use without them, too."""
    from holdfast import bootstrap

    keeper = service.audit.keeper
    if find_spec("cryptography") is None:
        return {}
    try:
        keeper.anchor(create_key=True)
        key = keeper.own_key()
        return {"public_key": str(key), "private_key": bootstrap.key_place(keeper.origin())} if key else {}
    except CheckpointError as problem:
        output.note(f"No signing key was made: {safe(problem)}")
        return {}


def _print(output: Output, url: str, key: dict[str, Any], *, created: bool) -> None:
    output.line(f"{'Made a store' if created else 'There is a store already'} at {safe(url)}")
    if key:
        output.line(f"public key   {safe(key['public_key'])}")
        output.note(f"The private key is in {safe(key['private_key'])}. Keep a copy; it is not in the store.")
