"""`holdfast config show`: every setting as it holds here, and where that comes from."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand, did_you_mean
from holdfast.cli.output import safe

if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.config_sources import Given


@click.command("show", cls=StoreCommand)
@click.argument("names", metavar="[SETTING]...", nargs=-1)
@click.option("--origin", is_flag=True, help="Tell where each value comes from.")
@click.option("--changed", is_flag=True, help="Leave out what has its default.")
@click.option("--file", "path", metavar="FILE", help="Read this file instead of ./holdfast.toml.")
def command(call: Call, names: tuple[str, ...], origin: bool, changed: bool, path: str | None) -> None:
    """Show every setting as it holds here.

    Settings that are wrong are told as by every command: which, where, and
    what could have been meant. Passwords and keys are not shown.

    \b
    Example:
      holdfast config show --origin --changed
    """
    from holdfast.config import Config

    config, given = Config.traced({"store": call.store}, path=path)
    chosen = _chosen(config, names)
    if changed:
        chosen = [name for name in chosen if name in given]
    if call.output.as_json:
        call.output.data({"settings": [_told(config, given, name, with_origin=origin) for name in chosen]})
        return
    rows = [(name, _shown(name, getattr(config, name)), _origin_text(given.get(name))) for name in chosen]
    head = ("SETTING", "VALUE", "FROM")
    columns = slice(None if origin else 2)
    call.output.table(head[columns], [row[columns] for row in rows])


def _chosen(config: Config, names: tuple[str, ...]) -> list[str]:
    known = [item.name for item in fields(config)]
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known)
            raise click.UsageError(f"there is no setting {name}" + (f". {meant}" if meant else ""))
    return list(names) or known


def _told(config: Config, given: dict[str, Given], name: str, *, with_origin: bool) -> dict[str, Any]:
    """Tell of one setting; a text that may hold a secret as it is shown to people."""
    value = getattr(config, name)
    told = {"name": name, "value": _shown(name, value) if isinstance(value, str) else value}
    return {**told, "origin": _origin(given.get(name))} if with_origin else told


def _origin(given: Given | None) -> dict[str, str]:
    from holdfast.config_sources import Source, placed

    if given is None:
        return {"source": Source.DEFAULT.value}
    told = {"source": given.source.value, "key": given.key}
    return {**told, "place": placed(given).place} if given.source is Source.FILE else told


def _origin_text(given: Given | None) -> str:
    """Write where a value comes from: `flag --store`, `HOLDFAST_STORE`, `holdfast.toml:3 store`."""
    told = _origin(given)
    if told["source"] == "flag":
        return safe(f"flag {told['key']}")
    return safe(f"{told['place']} {told['key']}") if "place" in told else told.get("key", told["source"])


def _shown(name: str, value: Any) -> str:
    from holdfast.bootstrap import without_any_secret
    from holdfast.config import shown

    return without_any_secret(shown(name, value))
