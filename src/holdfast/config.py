"""One frozen configuration: a flag wins over HOLDFAST_*, that over holdfast.toml, that over the default."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from holdfast.config_sources import Given, Source, from_overrides, gather, placed
from holdfast.domain.errors import ConfigError
from holdfast.domain.lift import LIFT_THRESHOLD_BYTES
from holdfast.domain.recovery import OnNoValid, RecoverySettings
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.retry import FaultSettings

_CHOICES = {
    "mode": ("default", "performance", "compliance"),
    "compression": ("none", "zstd", "gzip"),
    "redact_engine": ("auto", "re2", "re"),
    "on_no_valid": tuple(OnNoValid),
    "on_fault": ("raise", "degrade"),
}
#: The lowest and the highest level of a compression; none has none.
_LEVELS = {"zstd": (-131072, 22), "gzip": (0, 9)}
#: What names a file or a folder, if only after a scheme.
_PLACES = frozenset(
    {
        *("store", "progress_path", "emergency_path", "redact_patterns", "resolver", "program"),
        *("signing_key", "encryption_key", "encryption_key_next"),
    }
)
#: What numbers have to lie between, where more than 0 is asked of them.
_BOUNDS = {"journal_bytes": (1, 64 * 1024**3)}
_APP = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
#: Up to the last "@": a password that should have been escaped and was not is not shown in part either.
_CREDENTIALS = re.compile(r"//.*@", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"(?i)([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be set. Sizes are in bytes.

    Attributes:
        store: where the store is: a path, or a URL such as `file:PATH`, `sqlite:PATH`, `postgresql://...`.
        enabled: False keeps everything in memory only, and says so in the log.
        mode: `default` writes JSON, `performance` MessagePack, `compliance` CBOR.
        compression: none, zstd or gzip, for payloads of at least `compression_threshold_bytes`.
        compression_level: None for a sensible one.
        warn_bytes: a state above this gets a warning, again each time it has doubled.
        limit_bytes: a state above this is refused.
        blob_threshold_bytes: strings and bytes above this are kept once, as blobs.
        retain: whether old checkpoints are removed in the background, by the `retain_*` rules.
        max_per_phase: at most so many checkpoints of one phase are kept.
        cache_bytes: how much of the last states of workflows is remembered.
        journal_bytes: size of the filesystem store's journal, at most 64 GiB.
        memory_map_bytes: the filesystem store reads files from this size on through a memory map.
        background: whether keyframes and retention have a thread; else they delay their caller.
        batch_decisions: whether a decision goes with the next commit, a second later at the latest, and
            nobody waits for it; a crash before that loses it.
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
        resolver: gives back what was hidden, to `holdfast reveal` and the dashboard: where the secrets are
            (`file:PATH`, `env:NAME`, `command:PROGRAM`), or a function of yours as `module:function`.
        auto_recovery: whether workflows that crashed are recovered when the store is opened.
        max_recovery_attempts: how often the work of one checkpoint is resumed; its own limit wins.
        recovery_timeout_seconds: how long a recovery may take.
        fallback_to_previous: whether an older checkpoint may stand in for one that does not verify.
        on_no_valid: where none verifies: `error`, or `fresh` to start over.
        stale_seconds: a workflow without an owner that was quiet for so long has crashed.
        on_fault: what cannot be made durable: `raise` tells the caller, `degrade` keeps it in memory.
        memory_budget_bytes: how much is kept in memory so.
        emergency_path: a folder for what memory does not hold; beside temporary files by default.
        progress_path: a folder for the progress reports of workflows; by default in the store's folder, or
            beside its file, and nowhere where a store has neither.
        metrics: whether what this process does is counted in prometheus_client's own registry.
        tracing: whether spans are made through OpenTelemetry's API.
        tracing_gen_ai: whether spans of runs have attributes of the drafts for generative AI, too.
        app: handlers, reducers and migrations for the command line, as `module:object`; see docs/config.md.
        program: the workflow that `holdfast resume` goes on with, as `module:workflow` or `file.py:workflow`.
        web_url: where people open the dashboard, for `holdfast show --web`.
    """

    store: str = ".holdfast"
    enabled: bool = True
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
    memory_map_bytes: int = 10 * 1024 * 1024
    background: bool = True
    batch_decisions: bool = False
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
    resolver: str | None = None
    auto_recovery: bool = False
    max_recovery_attempts: int = 3
    recovery_timeout_seconds: float = 300.0
    fallback_to_previous: bool = True
    on_no_valid: str = OnNoValid.ERROR.value
    stale_seconds: float = 300.0
    on_fault: str = "raise"
    memory_budget_bytes: int = 64 * 1024 * 1024
    emergency_path: str | None = None
    progress_path: str | None = None
    metrics: bool = False
    tracing: bool = False
    tracing_gen_ai: bool = False
    app: str | None = None
    program: str | None = None
    web_url: str = "http://127.0.0.1:8787/ui/"

    def __post_init__(self) -> None:
        for name in _KINDS:
            _check(name, getattr(self, name), name)
        low, high = _LEVELS.get(self.compression, (-math.inf, math.inf))
        if self.compression_level is not None and not low <= self.compression_level <= high:
            raise ConfigError(
                f"compression_level is {self.compression_level}",
                hint=f"Levels of {self.compression} go from {low} to {high}.",
            )

    @property
    def retention(self) -> RetentionPolicy | None:
        """The rules for removing checkpoints, None if nothing is removed unasked."""
        if not self.retain:
            return None
        return RetentionPolicy(self.retain_count, self.retain_days, self.max_per_phase)

    @property
    def recovery(self) -> RecoverySettings:
        """How recovery behaves."""
        return RecoverySettings(
            self.auto_recovery,
            self.max_recovery_attempts,
            self.recovery_timeout_seconds,
            self.fallback_to_previous,
            OnNoValid(self.on_no_valid),
            self.stale_seconds,
        )

    @property
    def faults(self) -> FaultSettings:
        """What to do when nothing can be made durable."""
        return FaultSettings(
            is_degrading=self.on_fault == "degrade",
            memory_bytes=self.memory_budget_bytes,
            emergency_path=self.emergency_path,
        )

    def __repr__(self) -> str:
        held = ((item.name, getattr(self, item.name)) for item in fields(self))
        texts = (f"{name}={shown(name, value)}" for name, value in held)
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
            path: a configuration file, which must exist; by default what HOLDFAST_CONFIG names, or
                `holdfast.toml` here, if there is one. HOLDFAST_PROFILE names a table of it that wins.

        Raises:
            ConfigError: an unknown setting, or a value that it cannot have; says where.
        """
        return cls.traced(overrides, env, path)[0]

    @classmethod
    def traced(
        cls,
        overrides: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> tuple[Config, dict[str, Given]]:
        """Read the configuration as `load` does, and tell where what is not a default was given."""
        given = gather(_KINDS, overrides or {}, os.environ if env is None else env, path)
        for one in given.values():
            _check_given(one)
        return cls(**{name: one.value for name, one in given.items()}), given

    @classmethod
    def for_runs(cls, overrides: Mapping[str, Any] | None = None) -> Config:
        """Read the configuration as `load` does, for a run: it degrades unless `on_fault` is configured."""
        config, given = cls.traced(overrides)
        return config if "on_fault" in given else config.amended({"on_fault": "degrade"})

    def amended(self, overrides: Mapping[str, Any]) -> Config:
        """Answer the configuration with some settings changed; None values do not count."""
        return replace(self, **{one.name: one.value for one in from_overrides(_KINDS, overrides)})


def without_secrets(url: str) -> str:
    """Write a URL for people: without user names, passwords and keys."""
    return _SECRET_PARAMETER.sub(r"\1***", _CREDENTIALS.sub("//***@", url))


def shown(name: str, value: Any) -> str:
    """Write the value of a setting for people; what follows `command:` may hold secrets."""
    if isinstance(value, str) and (name.startswith("encryption_key") or name == "resolver"):
        scheme, colon, _ = value.partition(":")
        return f"{scheme}:..." if colon else "..."
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return "-" if value is None else without_secrets(value) if name == "store" else str(value)


#: What a setting holds: text, a number, a number or nothing, or yes and no.
_KINDS = {
    item.name: {
        "str": "text",
        "int": "number",
        "int | None": "optional number",
        "bool": "switch",
        "float": "number of seconds",
        "str | None": "optional text",
    }[str(item.type)]
    for item in fields(Config)
}


def _check_given(given: Given) -> None:
    """Refuse a value with the words of whoever gave it, and where that was."""
    try:
        _check(given.name, given.value, given.key if given.source is not Source.FLAG else given.name)
    except ConfigError as wrong:
        raise ConfigError(wrong.message, place=placed(given).place, hint=wrong.hint) from None


def _check(name: str, value: object, called: str) -> None:
    """Refuse a value that a setting cannot have."""
    choices = _CHOICES.get(name)
    if choices is not None and value not in choices:
        raise ConfigError(f"{called} is {value!r}", hint=f"Use one of {', '.join(choices)}.")
    if not _fits(value, _KINDS[name]):
        told = repr(without_secrets(value) if isinstance(value, str) else value)
        raise ConfigError(f"{called} is {told}", hint=f"It should be a {_KINDS[name]}.")
    if name in _PLACES and isinstance(value, str):
        _check_place(value, called)
    low, high = _BOUNDS.get(name, (-math.inf, math.inf))
    if isinstance(value, int | float) and not low <= value <= high:
        raise ConfigError(f"{called} is {value}", hint=f"Use a number from {low} to {high}.")
    if isinstance(value, int | float) and value < 0 and name != "compression_level":
        raise ConfigError(f"{called} is {value}", hint="Use 0 or more.")
    if name == "recovery_timeout_seconds" and not value:
        raise ConfigError(f"{called} is 0", hint="Give a recovery some time.")
    if name == "app" and isinstance(value, str) and not _APP.fullmatch(value):
        raise ConfigError(f"{called} is {value!r}", hint="Write module:object, as in `flows.main:app`.")


def _check_place(text: str, called: str) -> None:
    """Refuse what no file can be named; the text is not repeated, it may be a secret by mistake."""
    if "\0" in text:
        raise ConfigError(f"{called} holds a NUL", hint="No name of a file has one: take it out.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as fault:
        # It is told by its number: it cannot be printed either.
        letter = f"U+{ord(text[fault.start]):04X}"
        raise ConfigError(
            f"{called} holds {letter}, which no name of a file can have here",
            hint="Take it out; a path made of bytes is decoded by os.fsdecode.",
        ) from None


def _fits(value: object, kind: str) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return {
        "text": isinstance(value, str) and bool(value),
        "switch": isinstance(value, bool),
        "number": is_number,
        "number of seconds": is_number or (isinstance(value, float) and math.isfinite(value)),
        "optional number": is_number or value is None,
        "optional text": value is None or (isinstance(value, str) and bool(value)),
    }[kind]
