"""One frozen configuration: a flag wins over HOLDFAST_*, that over holdfast.toml, that over the default."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from holdfast.domain.errors import ConfigError
from holdfast.domain.lift import LIFT_THRESHOLD_BYTES
from holdfast.domain.retention import RetentionPolicy

PREFIX = "HOLDFAST_"
FILE_NAME = "holdfast.toml"

_MODES = ("default", "performance", "compliance")
_ENGINES = ("auto", "re2", "re")
_COMPRESSIONS = ("none", "zstd", "gzip")
_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
#: Up to the last "@": a password that should have been escaped and was not is not shown in part either.
_CREDENTIALS = re.compile(r"//.*@", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"(?i)([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be set. Sizes are in bytes.

    Attributes:
        store: where the store is: a path, or a URL such as `file:PATH`, `sqlite:PATH`, `postgresql://...`.
        mode: `default` writes JSON, `performance` MessagePack, `compliance` CBOR.
        compression: none, zstd or gzip, for payloads of at least `compression_threshold_bytes`.
        compression_level: None for a sensible one.
        warn_bytes: a state above this gets a warning, again each time it has doubled.
        limit_bytes: a state above this is refused.
        blob_threshold_bytes: strings and bytes above this are kept once, as blobs.
        retain: whether old checkpoints are removed in the background, by the `retain_*` rules.
        max_per_phase: at most so many checkpoints of one phase are kept.
        cache_bytes: how much of the last states of workflows is remembered.
        journal_bytes: size of the filesystem store's journal.
        background: whether keyframes and retention have a thread; else they delay their caller.
        audit: whether every operation is told in the trail.
        audit_retain_days: payloads of the trail that are younger than this cannot be pruned.
        strict_audit: whether a read that cannot be told in the trail is refused.
        head_interval: a head of the log is signed each time this many entries were told, if there is a key.
        session: session of this opening, for what belongs to no other; a new one by default.
        end_session: whether closing the service ends the session; else others may go on with it.
        actor: who acts, as the trail names it; the login name by default.
        encrypt: whether a store that is made now is an encrypted one; an existing one stays what it is.
        encryption_key: where the key of an encrypted store is: `file:PATH`, `env:NAME`, `command:PROGRAM`.
        encryption_key_next: the key that it is about to be replaced by, accepted as well.
        signing_key: file of the key that signs the log's heads; one in the user's own folder by default.
        redact: whether secrets are hidden before anything is written.
        redact_patterns: a TOML file with patterns and names of the user's own; see docs/redaction.md.
        redact_engine: what searches for secrets: `re2`, `re`, or `auto` for the faster one installed.
    """

    store: str = ".holdfast"
    mode: str = "default"
    compression: str = "zstd"
    compression_threshold_bytes: int = 100 * 1024
    compression_level: int | None = None
    warn_bytes: int = 500 * 1024
    limit_bytes: int = 100 * 1024 * 1024
    blob_threshold_bytes: int = LIFT_THRESHOLD_BYTES
    retain: bool = True
    retain_count: int = 10
    retain_days: int = 30
    max_per_phase: int | None = None
    cache_bytes: int = 64 * 1024 * 1024
    journal_bytes: int = 8 * 1024 * 1024
    background: bool = True
    audit: bool = True
    strict_audit: bool = False
    audit_retain_days: int = 183
    head_interval: int = 1024
    session: str | None = None
    end_session: bool = True
    actor: str | None = None
    encrypt: bool = False
    encryption_key: str | None = None
    encryption_key_next: str | None = None
    signing_key: str | None = None
    redact: bool = True
    redact_patterns: str | None = None
    redact_engine: str = "auto"

    def __post_init__(self) -> None:
        _check_choice("mode", self.mode, _MODES)
        _check_choice("compression", self.compression, _COMPRESSIONS)
        _check_choice("redact_engine", self.redact_engine, _ENGINES)
        for name, kind in _KINDS.items():
            _check_kind(name, getattr(self, name), kind)

    @property
    def retention(self) -> RetentionPolicy | None:
        """The rules for removing checkpoints, None if nothing is removed unasked."""
        if not self.retain:
            return None
        return RetentionPolicy(self.retain_count, self.retain_days, self.max_per_phase)

    def __repr__(self) -> str:
        shown = ((item.name, getattr(self, item.name)) for item in fields(self))
        texts = (f"{name}={_shown(name, value)}" for name, value in shown)
        return f"Config({', '.join(texts)})"

    @classmethod
    def load(
        cls,
        overrides: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Config:
        """Read the configuration.

        Args:
            overrides: what was asked for directly; None values do not count.
            env: the environment, the process's own by default.
            path: a configuration file, which must exist; by default `holdfast.toml` here, if there is one.

        Raises:
            ConfigError: an unknown setting, or a value that it cannot have; says where.
        """
        settings = {
            **_from_file(path),
            **_from_env(os.environ if env is None else env),
            **_from_overrides(overrides or {}),
        }
        return cls(**settings)

    def amended(self, overrides: Mapping[str, Any]) -> Config:
        """Answer the configuration with some settings changed; None values do not count."""
        return replace(self, **_from_overrides(overrides))


def without_secrets(url: str) -> str:
    """Write a URL for people: without user names, passwords and keys."""
    return _SECRET_PARAMETER.sub(r"\1***", _CREDENTIALS.sub("//***@", url))


def _shown(name: str, value: Any) -> str:
    """Write a setting for people; what follows `command:` may hold secrets."""
    if name == "store":
        return without_secrets(value)
    is_command = name.startswith("encryption_key") and value is not None
    return repr(f"{value.partition(':')[0]}:...") if is_command else repr(value)


#: What a setting holds: text, a number, a number or nothing, or yes and no.
_KINDS = {
    item.name: {
        "str": "text",
        "int": "number",
        "int | None": "optional number",
        "bool": "switch",
        "str | None": "optional text",
    }[str(item.type)]
    for item in fields(Config)
}


def _from_file(path: str | os.PathLike[str] | None) -> dict[str, Any]:
    place = Path(FILE_NAME if path is None else path)
    try:
        settings = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path is None:
            return {}
        raise ConfigError("there is no such configuration file", place=str(place)) from None
    except (OSError, ValueError) as fault:
        raise ConfigError(f"the configuration file cannot be read ({fault})", place=str(place)) from fault
    _check_names(settings, str(place))
    return settings


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    named = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in env.items()
        if name.startswith(PREFIX) and name not in _OTHER_VARIABLES
    }
    _check_names(named, "the environment", prefix=PREFIX)
    return {name: _parsed(name, text) for name, text in named.items()}


#: Variables of ours that are no settings.
_OTHER_VARIABLES = frozenset({"HOLDFAST_CAMPAIGN"})


def _from_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in overrides.items() if value is not None}
    _check_names(given, "the arguments")
    return given


def _check_names(settings: Mapping[str, Any], place: str, prefix: str = "") -> None:
    for name in settings:
        if name not in _KINDS:
            known = ", ".join(sorted(_KINDS))
            shown = f"{prefix}{name.upper()}" if prefix else name
            raise ConfigError(f"there is no setting {shown}", place=place, hint=f"Known are: {known}.")


def _parsed(name: str, text: str) -> Any:
    """Read the text of an environment variable."""
    kind = _KINDS[name]
    if kind == "switch":
        if text.lower() not in _WORDS:
            raise ConfigError(f"{PREFIX}{name.upper()} is {text!r}", hint="Use true or false.")
        return _WORDS[text.lower()]
    if kind.endswith("text") or (kind == "optional number" and not text):
        return text or None
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{PREFIX}{name.upper()} is {text!r}", hint="Use a whole number.") from None


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}", hint=f"Use one of {', '.join(choices)}.")


def _check_kind(name: str, value: object, kind: str) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        "text": isinstance(value, str) and bool(value),
        "switch": isinstance(value, bool),
        "number": is_number,
        "optional number": is_number or value is None,
        "optional text": value is None or (isinstance(value, str) and bool(value)),
    }
    if not fits[kind]:
        shown = without_secrets(value) if isinstance(value, str) else repr(value)
        raise ConfigError(f"{name} is {shown}", hint=f"It should be a {kind}.")
    if is_number and name != "compression_level" and isinstance(value, int) and value < 0:
        raise ConfigError(f"{name} is {value}", hint="Use 0 or more.")
