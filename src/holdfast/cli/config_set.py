"""`holdfast config set`: change one setting in a file, and leave everything else in it as it is."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from holdfast.cli.config_editing import Edit, edited, read_toml, toml_text
from holdfast.cli.config_path import config_file
from holdfast.cli.group import Call, StoreCommand, did_you_mean
from holdfast.cli.output import safe
from holdfast.domain.errors import ConfigError

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@click.command("set", cls=StoreCommand)
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="[VALUE]", required=False)
@click.option("--user", is_flag=True, help="In your own file, for all folders.")
@click.option("--project", is_flag=True, help="In the file of this folder. [default]")
@click.option("--unset", is_flag=True, help="Take the setting out of the file.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
def command(
    call: Call, name: str, value: str | None, user: bool, project: bool, unset: bool, dry_run: bool
) -> None:
    """Change one setting in a file, and nothing else.

    NAME is a setting, or a key of a table: checkpoint.retention_days. Comments
    and order stay. A file that cannot be changed safely, and a value that the
    setting cannot have, are refused.

    \b
    Example:
      holdfast config set retain_days 7 --project
    """
    if user and project:
        raise click.UsageError("give --user or --project")
    if unset == (value is not None):
        raise click.UsageError("give a VALUE, or --unset")
    # The file itself is changed, and not a link to it.
    path = os.path.realpath(config_file("user" if user else "project"))
    before = _read(path)
    keys = _place(name, read_toml(before, path))
    edit = Edit(keys, None if value is None else toml_text(_value(keys, value)))
    after = edited(before, edit, path)
    _check(after, path)
    if not dry_run and after != before:
        _replace(path, after)
    _tell(call, path, (before, after), name, dry_run=dry_run)


def _read(path: str) -> str:
    try:
        # As bytes: line ends stay as they are.
        return Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as fault:
        raise ConfigError(f"the configuration file cannot be read ({fault})", place=path) from fault


def _place(name: str, written: dict[str, Any]) -> tuple[str, ...]:
    """Answer where in the file a setting stands, or would have its place."""
    from holdfast.config_sources import TABLES

    table, dot, key = name.rpartition(".")
    if dot:
        if key not in TABLES.get(table, {}):
            raise _unknown(name, (f"{one}.{inner}" for one, keys in TABLES.items() for inner in keys))
        return (table, key)
    if name not in _kinds():
        raise _unknown(name, _kinds())
    for table, keys in TABLES.items():
        inside = written.get(table)
        for key, meant in keys.items():
            if meant.setting == name and isinstance(inside, dict) and key in inside:
                return (table, key)
    return (name,)


def _kinds() -> dict[str, str]:
    from holdfast.config import Config

    return {item.name: str(item.type) for item in fields(Config)}


def _unknown(name: str, known: Iterable[str]) -> click.UsageError:
    meant = did_you_mean(name, known)
    return click.UsageError(f"there is no setting {name}" + (f". {meant}" if meant else ""))


def _value(keys: tuple[str, ...], text: str) -> Any:
    """Read a value as a person writes it: a text needs no quotes, and yes is true."""
    from holdfast.config_sources import TABLES

    setting = keys[0] if len(keys) == 1 else TABLES[keys[0]][keys[1]].setting
    kind = _kinds()[setting]
    is_text = kind.startswith("str")
    if text.lower() in _WORDS and not (is_text and len(keys) == 1):
        # In a table, a switch may stand for a text: `compression = true`.
        return _WORDS[text.lower()]
    return text if is_text else _number(text)


def _number(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    # No number: the settings say so in their own words.
    return text


def _check(text: str, path: str) -> None:
    """Refuse a file that Holdfast would refuse."""
    from holdfast.config import Config

    with tempfile.NamedTemporaryFile("wb", suffix=".toml") as file:
        file.write(text.encode())
        file.flush()
        try:
            Config.traced({}, {}, file.name)
        except ConfigError as wrong:
            place = wrong.place.replace(file.name, path)
            raise ConfigError(wrong.message, place=place, hint=wrong.hint) from None


def _replace(path: str, text: str) -> None:
    """Put a new file in the place of the old one: whoever reads finds the one or the other."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    handle, fresh = tempfile.mkstemp(prefix=".holdfast-", suffix=".toml", dir=folder)
    try:
        with open(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(fresh, os.stat(path).st_mode & 0o777)
        os.replace(fresh, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        raise


def _tell(call: Call, path: str, texts: tuple[str, str], name: str, *, dry_run: bool) -> None:
    before, after = texts
    if call.output.as_json:
        call.output.data({"file": path, "name": name, "changed": before != after, "dry_run": dry_run})
        return
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=1, lineterm="")
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    for line in changed:
        call.output.line(call.output.paint(safe(line), "added" if line[0] == "+" else "removed"))
    if not changed:
        call.output.note(f"{safe(path)} says so already.")
    else:
        call.output.note(f"{'Nothing was changed' if dry_run else 'Changed'}: {safe(path)}")
