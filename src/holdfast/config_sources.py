"""Where settings come from: what a caller asks for, HOLDFAST_*, holdfast.toml, and the user's own file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.domain.errors import ConfigError

PREFIX = "HOLDFAST_"
FILE_NAME = "holdfast.toml"
USER_FILE_NAME = "config.toml"
MEGABYTE = 1024 * 1024

#: Name another file, and the table in it that wins over all others.
CONFIG_VARIABLE = "HOLDFAST_CONFIG"
PROFILE_VARIABLE = "HOLDFAST_PROFILE"
_PROFILES = "profile"
_PROFILE_NAME = re.compile(r"[A-Za-z0-9_-]+")

#: What opening a store takes beside settings.
_ARGUMENTS = ("read_only", "create", "registry", "resolver", "config")
#: Variables of ours that are no settings: flags of the command line, and what `recover --exec` tells.
_OTHER_VARIABLES = frozenset(
    {
        *("HOLDFAST_CAMPAIGN", "HOLDFAST_CHECKPOINT_ID"),
        "HOLDFAST_COLOR",
        "HOLDFAST_CONFIG",
        "HOLDFAST_LOCAL_TIME",
        "HOLDFAST_LOG_FORMAT",
        "HOLDFAST_NO_INPUT",
        "HOLDFAST_OUTPUT",
        "HOLDFAST_PROFILE",
        "HOLDFAST_REQUEST_ID",
        *("HOLDFAST_VERBOSE", "HOLDFAST_WORKFLOW_ID"),
    }
)
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_WORDS = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}


class Source(StrEnum):
    """What gave a setting its value; the first of these that says anything wins."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a setting, and where it was given.

    Attributes:
        name: the setting.
        key: what it is called there: a variable, or a key of the file with its table.
        place: the file and the line, as far as that is known; else in words.
    """

    name: str
    value: Any
    source: Source
    key: str
    place: str


class Key(NamedTuple):
    """A key in a table of the file: the setting that it means, and how its value is read."""

    setting: str
    read: Callable[[Any], Any] = lambda value: value


def _algorithm(value: Any) -> Any:
    """Read yes and no as well as the name of a compression."""
    return ("zstd" if value else "none") if isinstance(value, bool) else value


def _megabytes(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("It should be a number of megabytes, 0 or more.")
    return int(value * MEGABYTE)


#: Tables of the file. What else can be set stands at its top, under its own name.
TABLES: Mapping[str, Mapping[str, Key]] = {
    "checkpoint": {
        "enabled": Key("enabled"),
        "storage_path": Key("store"),
        "compression": Key("compression", _algorithm),
        "compression_level": Key("compression_level"),
        "encryption": Key("encrypt"),
        "retention_days": Key("retain_days"),
        "max_checkpoints_per_phase": Key("max_per_phase"),
        "checkpoint_size_limit_mb": Key("limit_bytes", _megabytes),
        "progress_path": Key("progress_path"),
    },
    "recovery": {
        "auto_recovery": Key("auto_recovery"),
        "max_recovery_attempts": Key("max_recovery_attempts"),
        "recovery_timeout_seconds": Key("recovery_timeout_seconds"),
        "fallback_to_previous": Key("fallback_to_previous"),
        "on_no_valid": Key("on_no_valid"),
        "stale_seconds": Key("stale_seconds"),
        "on_fault": Key("on_fault"),
        "emergency_path": Key("emergency_path"),
        "memory_budget_mb": Key("memory_budget_bytes", _megabytes),
        "app": Key("app"),
    },
    "performance": {
        "async_writes": Key("background"),
        "batch_decisions": Key("batch_decisions"),
        "compression_level": Key("compression_level"),
        "memory_mapped_threshold_mb": Key("memory_map_bytes", _megabytes),
    },
    "run": {
        "program": Key("program"),
    },
}


def gather(
    kinds: Mapping[str, str],
    overrides: Mapping[str, Any],
    env: Mapping[str, str],
    path: str | os.PathLike[str] | None,
) -> dict[str, Given]:
    """Find each setting that was given, in the place that counts.

    Args:
        kinds: what each setting holds, by its name.
        overrides: what was asked for directly; None values do not count.
        env: the environment.
        path: a configuration file, which must exist; by default what HOLDFAST_CONFIG names, or
            `holdfast.toml` here, if there is one.

    Raises:
        ConfigError: an unknown name, or a text that cannot be read; says where.
    """
    chosen = path or env.get(CONFIG_VARIABLE) or None
    found = [
        *_from_user_file(kinds, env),
        *_from_file(kinds, chosen, env.get(PROFILE_VARIABLE, "")),
        *_from_env(kinds, env),
        *from_overrides(kinds, overrides),
    ]
    return {given.name: given for given in found}


def from_overrides(kinds: Mapping[str, str], overrides: Mapping[str, Any]) -> Iterator[Given]:
    """Take what was asked for directly; None values do not count."""
    for name, value in overrides.items():
        if value is not None:
            if name not in kinds:
                raise _unknown(name, "the arguments", [*kinds, *_ARGUMENTS])
            yield Given(name, value, Source.FLAG, f"--{name}", "the arguments")


def _from_env(kinds: Mapping[str, str], env: Mapping[str, str]) -> Iterator[Given]:
    for variable, text in env.items():
        if not variable.startswith(PREFIX) or variable in _OTHER_VARIABLES:
            continue
        if variable == _variable("store") and not text:
            # Not the usual one: whoever set it meant another.
            raise ConfigError(f"{variable} is empty", hint="Name a store by it, or unset it.")
        name = variable.removeprefix(PREFIX).lower()
        if name not in kinds:
            known = {_variable(setting): setting for setting in kinds}
            raise _unknown(variable, "the environment", known, _meant_by(name, _variable))
        yield Given(
            name, _parsed(variable, text, kinds[name]), Source.ENVIRONMENT, variable, "the environment"
        )


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _parsed(variable: str, text: str, kind: str) -> Any:
    """Read the text of an environment variable."""
    if kind == "switch":
        if text.lower() not in _WORDS:
            raise ConfigError(f"{variable} is {text!r}", hint="Use true or false.")
        return _WORDS[text.lower()]
    if kind.endswith("text") or (kind == "optional number" and not text):
        return text or None
    try:
        return float(text) if kind == "number of seconds" else int(text)
    except ValueError:
        whole = "" if kind == "number of seconds" else "whole "
        raise ConfigError(f"{variable} is {text!r}", hint=f"Use a {whole}number.") from None


# -- the file --------------------------------------------------------------------------------


def user_file(env: Mapping[str, str]) -> Path | None:
    """Answer where a user's own settings are, which those of a project win over; None if nobody can tell."""
    configured = env.get("XDG_CONFIG_HOME", "")
    # A relative path is no configuration at all, says its specification.
    if os.path.isabs(configured):
        return Path(configured, "holdfast", USER_FILE_NAME)
    home = env.get("HOME", "")
    return Path(home, ".config", "holdfast", USER_FILE_NAME) if os.path.isabs(home) else None


def _from_user_file(kinds: Mapping[str, str], env: Mapping[str, str]) -> list[Given]:
    place = user_file(env)
    # One that is there and cannot be read is told, but not a folder that we may not look into; profiles are
    # chosen in the file of the project.
    return _from_file(kinds, place, "") if place is not None and os.path.isfile(place) else []


def _from_file(kinds: Mapping[str, str], path: str | os.PathLike[str] | None, profile: str) -> list[Given]:
    place = Path(FILE_NAME if path is None else path)
    try:
        text = place.read_text(encoding="utf-8")
        # Most have no such file.
        import tomllib

        written = tomllib.loads(text)
    except FileNotFoundError:
        if path is None:
            _check_profile(profile, {}, str(place))
            return []
        raise ConfigError("there is no such configuration file", place=str(place)) from None
    except (OSError, ValueError, RecursionError) as fault:
        raise ConfigError(f"the configuration file cannot be read ({fault})", place=str(place)) from fault
    file = ConfigFile(str(place), text)
    profiles = _profiles(kinds, written.pop(_PROFILES, {}), file)
    _check_profile(profile, profiles, str(place))
    # Later ones win.
    return [*_read(kinds, written, file), *profiles.get(profile, [])]


def _profiles(kinds: Mapping[str, str], written: Any, file: ConfigFile) -> dict[str, list[Given]]:
    """Read all profiles: a mistake in one that is not chosen today is one all the same."""
    if not isinstance(written, dict) or not all(isinstance(table, dict) for table in written.values()):
        raise ConfigError(
            "a profile is a table", place=file.at(_PROFILES), hint="Write [profile.NAME] above its settings."
        )
    for name in written:
        if not _PROFILE_NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name of a profile",
                place=file.at(_PROFILES, name),
                hint="Use letters, digits, - and _.",
            )
    return {name: _read(kinds, table, file, (_PROFILES, name)) for name, table in written.items()}


def _check_profile(profile: str, known: Mapping[str, Any], place: str) -> None:
    if profile and profile not in known:
        raise _unknown(profile, place, known, "" if known else "The file has none.", noun="profile")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file and its text, to tell where in it something stands."""

    path: str
    text: str

    def at(self, *keys: str) -> str:
        """Name the file and the line on which the value of a key ends."""
        line = self._line(keys)
        return self.path if line is None else f"{self.path}:{line}"

    def _line(self, keys: tuple[str, ...]) -> int | None:
        """Find the first line that, with all before it, makes a file that has the key."""
        import tomllib

        lines = self.text.splitlines(keepends=True)
        for count in range(1, len(lines) + 1):
            try:
                found: Any = tomllib.loads("".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                # In the middle of a value of several lines.
                continue
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                return count
        return None


def _read(
    kinds: Mapping[str, str], written: Mapping[str, Any], file: ConfigFile, above: tuple[str, ...] = ()
) -> list[Given]:
    """Read the top of a file and its tables, or of a profile and those below it."""
    found: dict[str, Given] = {}
    for given in _written(kinds, written, file, above):
        if (other := found.get(given.name)) is not None:
            hint = f"Remove {other.key} or {given.key}."
            raise ConfigError(f"{given.name} is set twice", place=placed(given).place, hint=hint)
        found[given.name] = given
    return list(found.values())


def _written(
    kinds: Mapping[str, str], written: Mapping[str, Any], file: ConfigFile, above: tuple[str, ...]
) -> Iterator[Given]:
    for name, value in written.items():
        place = file.at(*above, name) if name not in kinds else file.path
        if name in TABLES and isinstance(value, dict):
            yield from _in_table(kinds, name, value, file, above)
        elif name in TABLES:
            raise ConfigError(
                f"{name} is no table", place=place, hint=f"Write {_title(*above, name)} above its keys."
            )
        elif isinstance(value, dict):
            raise _unknown(
                _title(*above, name), place, [_title(*above, table) for table in TABLES], noun="table"
            )
        elif name not in kinds:
            raise _unknown(name, place, kinds, _meant_by(name))
        else:
            yield Given(name, value, Source.FILE, f"{_title(*above)} {name}".strip(), file.path)


def _title(*names: str) -> str:
    """Write the head of a table: `[profile.test]`."""
    return f"[{'.'.join(names)}]" if names else ""


def _in_table(
    kinds: Mapping[str, str],
    table: str,
    written: Mapping[str, Any],
    file: ConfigFile,
    above: tuple[str, ...],
) -> Iterator[Given]:
    keys, title = TABLES[table], _title(*above, table)
    for name, value in written.items():
        if name not in keys:
            place = f"{file.at(*above, table, name)} {title}"
            raise _unknown(name, place, keys, _elsewhere(name, kinds))
        key = keys[name]
        try:
            read = key.read(value)
        except ValueError as wrong:
            raise ConfigError(
                f"{name} is {value!r}", place=f"{file.at(*above, table, name)} {title}", hint=str(wrong)
            ) from None
        yield Given(key.setting, read, Source.FILE, f"{title} {name}", file.path)


def placed(given: Given) -> Given:
    """Find the line of a value from a file, which costs too much to be done for values that are right."""
    if given.source is not Source.FILE:
        return given
    table, _, name = given.key.rpartition(" ")
    keys = [*table.strip("[]").split("."), name] if table else [name]
    try:
        file = ConfigFile(given.place, Path(given.place).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return given
    return replace(given, place=file.at(*keys))


# -- names that are not known ----------------------------------------------------------------


def _meant_by(name: str, written: Callable[[str], str] = str) -> str:
    """Tell what a key that has its place in a table is called outside of it."""
    for table, keys in TABLES.items():
        if name in keys:
            return f"That is its name in [{table}]; here it is {written(keys[name].setting)}."
    return ""


def _elsewhere(name: str, kinds: Mapping[str, str]) -> str:
    """Tell where a setting has its place that was written into the wrong table."""
    for table, keys in TABLES.items():
        if name in keys:
            return f"It has its place in [{table}]."
    return "It has its place at the top of the file, above all tables." if name in kinds else ""


def _unknown(
    name: str, place: str, known: Iterable[str], hint: str = "", *, noun: str = "setting"
) -> ConfigError:
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    guess = hint or (f"Did you mean {close[0]}?" if close else "")
    return ConfigError(
        f"there is no {noun} {name}",
        place=place,
        hint=guess or f"Known are: {', '.join(names)}.",
    )
