"""The only place that knows everybody: from a URL and a configuration to a service."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.adapters.crypto.keystore import KeyFolder
from holdfast.adapters.formats import for_mode
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.adapters.progress import progress_place
from holdfast.adapters.redactors import passing_redactor, redactor_maker
from holdfast.adapters.system import RandomIds, SystemClock, login_name, space_of
from holdfast.adapters.telemetry.choosing import observer_for, tracing_for
from holdfast.application.app import App, check_brought
from holdfast.application.kit import Kit
from holdfast.application.redaction.log_redaction import RedactingFilter
from holdfast.application.redaction.redacting import LOGS, HidingPeople, StoreRedactor
from holdfast.application.revealing import Resolver
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.secrecy.unlocking import may_create, open_vault
from holdfast.application.service import CheckpointService
from holdfast.config import Config, without_secrets
from holdfast.domain.errors import ConfigError, StoreNotFoundError
from holdfast.domain.ids import check_id
from holdfast.domain.plain import TypeRegistry
from holdfast.ports import Cipher, Clock, IdSource, KeySource, Store

if TYPE_CHECKING:
    from holdfast.application.async_opening import AsyncOpening
    from holdfast.domain.note import Verify

#: A scheme has two letters at least: `C:\\...` is a path.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(.*)", re.DOTALL)

#: Where a store is: a URL, or a path.
Url = str | os.PathLike[str]
_LOG = logging.getLogger("holdfast")

OpenStore = Callable[[str, Config, bool, bool], Store]


def _open_file(path: str, config: Config, read_only: bool, create: bool) -> Store:
    # Imported when first needed: nobody who uses another store waits for this one.
    from holdfast.adapters.filesystem.store import FilesystemStore

    if not path:
        raise ConfigError("the URL names no folder", place="file:", hint="Write file:PATH.")
    # That of a Path raises where a folder above may not be looked into; the store says that in our words.
    if os.path.isfile(path):
        raise ConfigError(
            "this is a file, and a store of files is a folder",
            place=path,
            hint=f"A store in one file is named by its kind: sqlite:{path}.",
        )
    return FilesystemStore.open(
        path,
        read_only=read_only,
        create=create,
        journal_bytes=config.journal_bytes,
        map_bytes=config.memory_map_bytes,
    )


def _open_memory(path: str, config: Config, read_only: bool, create: bool) -> Store:
    from holdfast.adapters.memory import MemoryStore

    return MemoryStore()


def _open_sqlite(path: str, config: Config, read_only: bool, create: bool) -> Store:
    from holdfast.adapters.sqlite.store import SqliteStore

    if not path:
        raise ConfigError("the URL names no file", place="sqlite:", hint="Write sqlite:PATH.")
    return SqliteStore.open(path, read_only=read_only, create=create)


def _open_postgres(rest: str, config: Config, read_only: bool, create: bool) -> Store:
    needed = "embedded-postgres" if config.store.startswith("postgresql+embedded:") else "postgres"
    try:
        from holdfast.adapters.postgres.store import PostgresStore
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] == "holdfast":
            raise
        raise ConfigError(
            f"a package for PostgreSQL is not installed ({missing.name})",
            hint=f"Run `pip install 'holdfast[{needed}]'`.",
        ) from missing
    return PostgresStore.open(config.store, read_only=read_only, create=create)


#: How each scheme is opened; a new store is one line here.
SCHEMES: dict[str, OpenStore] = {
    "file": _open_file,
    "memory": _open_memory,
    "sqlite": _open_sqlite,
    "postgresql": _open_postgres,
    "postgres": _open_postgres,
    "postgresql+embedded": _open_postgres,
}
#: Schemes whose `//` is just a manner of writing.
_PATHS = frozenset({"file", "sqlite"})


def open_store(config: Config, *, read_only: bool = False, create: bool = True) -> Store:
    """Open the store that a configuration names.

    Raises:
        ConfigError: the scheme is unknown.
        StoreNotFoundError: there is no store, and none is to be created.
    """
    found = _SCHEME.fullmatch(config.store)
    if found is None:
        return _open_file(config.store, config, read_only, create)
    scheme, rest = found.groups()
    if scheme not in SCHEMES:
        raise ConfigError(
            f"there is no store for {scheme!r}",
            place=without_secrets(config.store),
            hint=f"Known are: {', '.join(sorted(SCHEMES))}. A path may be written as it is.",
        )
    return SCHEMES[scheme](rest.removeprefix("//") if scheme in _PATHS else rest, config, read_only, create)


def sqlite_here() -> tuple[str, str, str]:
    """Tell which SQLite a store in one file is used with here, with which journal, and why that one."""
    from holdfast.adapters.sqlite.driver import best
    from holdfast.adapters.sqlite.journaling import choose

    driver = best()
    choice = choose(driver.version)
    return driver.title, choice.mode, choice.reason


def build_kit(
    store: Store,
    config: Config,
    registry: TypeRegistry | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    resolver: Resolver | None = None,
    app: App | None = None,
) -> Kit:
    """Put together what the use cases work with."""
    app = app or App()
    types = registry or app.types or TypeRegistry()
    vault = open_vault(store, _cipher, key_sources_of(config), encrypt=config.encrypt)
    redactor = _redactor(store, config, vault)
    if vault is not None and redactor is not None:
        types = types.of_people(HidingPeople(vault, redactor, OrmsgpackPacker(types)))
    elif vault is not None:
        types = types.of_people(vault)
    formats = for_mode(
        config.mode, config.compression, config.compression_threshold_bytes, config.compression_level
    )
    kit = Kit(
        store=store,
        packer=OrmsgpackPacker(types),
        formats=formats,
        registry=types,
        clock=clock or SystemClock(),
        ids=ids or RandomIds(),
        signing=KeyFolder(config.signing_key),
        redactor=redactor,
        resolver=resolver,
        vault=vault,
        app=app,
        # What is sealed in the store does not lie open beside it.
        progress=progress_place(store.url, config.progress_path) if vault is None else None,
        space=space_of(store.url),
        observer=app.observer or observer_for(store.url, is_wanted=config.metrics),
        tracing=tracing_for(is_wanted=config.tracing, is_drafting=config.tracing_gen_ai),
    )
    return _settled(kit, config)


def _settled(kit: Kit, config: Config) -> Kit:
    """Answer a kit with the settings that the use cases look at."""
    return replace(
        kit,
        warn_bytes=config.warn_bytes,
        limit_bytes=config.limit_bytes,
        blob_threshold_bytes=config.blob_threshold_bytes,
        cache_bytes=config.cache_bytes,
        retention=config.retention,
        background=config.background,
        batch_decisions=config.batch_decisions,
        audit=config.audit,
        strict_audit=config.strict_audit,
        audit_retain_days=config.audit_retain_days,
        head_interval=config.head_interval,
        session_id=check_id("session", config.session or f"session-{secrets.token_hex(4)}"),
        actor=check_id("actor", config.actor or login_name()),
        end_session=config.end_session,
        recovery=config.recovery,
        faults=config.faults,
    )


def key_sources_of(config: Config) -> list[KeySource]:
    """Answer where the keys are that a configuration names."""
    given = (config.encryption_key, config.encryption_key_next)
    return [key_source(text) for text in given if text is not None]


def _cipher() -> Cipher:
    try:
        from holdfast.adapters.crypto.cipher import Xaes256Gcm
    except ImportError as missing:
        raise _no_cryptography(missing) from missing
    return Xaes256Gcm()


def key_source(text: str) -> KeySource:
    """Answer where a key-encryption key comes from: `file:PATH`, `env:NAME`, `command:PROGRAM`."""
    from holdfast.adapters.crypto import key_sources

    return key_sources.key_source(text)


def new_key_file(path: str) -> None:
    """Make a key-encryption key in a new, private file."""
    from holdfast.adapters.crypto import key_sources

    key_sources.new_key_file(Path(path))


def without_any_secret(text: str) -> str:
    """Hide the secrets of a text that goes to no store."""
    return passing_redactor().text(text)


def _redactor(store: Store, config: Config, vault: Vault | None) -> StoreRedactor | None:
    """Answer what hides secrets before they come to a store, and let it look after our logs too."""
    if not config.redact:
        return None
    build = redactor_maker(config.redact_engine, config.redact_patterns)
    if LOGS.begin(build):
        logging.getLogger("holdfast").addFilter(RedactingFilter(LOGS))
    return StoreRedactor(store, build, vault)


def open(
    url: Url | None = None,
    *,
    config: Config | None = None,
    read_only: bool = False,
    create: bool = True,
    registry: TypeRegistry | None = None,
    resolver: Resolver | None = None,
    app: App | None = None,
    **settings: Any,
) -> CheckpointService:
    """Open a store and answer the service over it, a context manager.

    Args:
        url: where: a path, `file:PATH`, `sqlite:PATH`, `postgresql://...`, `postgresql+embedded:PATH` or
            `memory:`. By default what the configuration says.
        config: a whole configuration; by default read from HOLDFAST_* and holdfast.toml.
        read_only: never write anything.
        create: make the store if there is none.
        registry: types of the application's that states may hold; by default those of `app`.
        resolver: gives secrets back to restored states, which were stored without: is told where one was,
            as a JSON pointer, and the placeholder that stands there; answers the value, or None.
        app: handlers, reducers and migrations of the application's, for recovery.
        settings: single settings of the configuration: `mode="performance"`.

    Raises:
        ConfigError: an unknown scheme or setting, or an argument that is not what it should be.
        StoreNotFoundError: there is no store, and none is to be created.
    """
    chosen = _configured(url, config, settings)
    return CheckpointService(_open_kit(chosen, registry, resolver, app, read_only=read_only, create=create))


def _open_kit(
    config: Config,
    registry: TypeRegistry | None,
    resolver: Resolver | None,
    app: App | None,
    *,
    read_only: bool,
    create: bool,
) -> Kit:
    check_brought(app, registry, resolver)
    if not config.enabled:
        return build_kit(*_in_memory(config), registry, resolver=resolver, app=app)
    # No store is made that would have been an encrypted one, had the key been there.
    is_settled = create and may_create(key_sources_of(config), encrypt=config.encrypt)
    try:
        store = open_store(config, read_only=read_only, create=is_settled)
    except StoreNotFoundError as missing:
        if is_settled == create:
            raise
        raise ConfigError(
            "a key is configured, and there is no store",
            place=missing.place,
            hint="Make an encrypted one with `holdfast init --encrypt`, or leave encryption_key out.",
        ) from None
    try:
        kit = build_kit(store, config, registry, resolver=resolver, app=app)
        return replace(kit, spare=_spare(config, registry, app, is_encrypted=kit.vault is not None))
    except BaseException:
        store.close()
        raise


def _spare(
    config: Config, registry: TypeRegistry | None, app: App | None, *, is_encrypted: bool
) -> Callable[[], Kit]:
    """Answer what opens the second store, a new folder each time: encrypted if the first one is."""

    def open_spare() -> Kit:
        if config.emergency_path is not None:
            Path(config.emergency_path).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="holdfast-emergency-", dir=config.emergency_path)
        chosen = replace(config, store=f"{folder}/store", encrypt=is_encrypted, audit=False, background=False)
        try:
            return build_kit(open_store(chosen), chosen, registry, app=app)
        except BaseException:
            # It is tried again with each commit: what came of it must not pile up.
            shutil.rmtree(folder, ignore_errors=True)
            raise

    return open_spare


def _in_memory(config: Config) -> tuple[Store, Config]:
    """Stand in for the store of a configuration that is switched off."""
    _LOG.warning(
        "checkpoints are switched off (enabled = false): nothing is durable, and %s is left alone",
        without_secrets(config.store),
    )
    settled = replace(config, store="memory:", encrypt=False, encryption_key=None, encryption_key_next=None)
    return open_store(settled), settled


def _configured(url: Url | None, config: Config | None, settings: dict[str, Any]) -> Config:
    place = os.fspath(url) if isinstance(url, os.PathLike) else url
    asked = {**settings, "store": place} if place is not None else settings
    if config is None:
        return Config.load(asked)
    return config.amended(asked)


def key_place(origin: str, config: Config | None = None) -> str:
    """Tell where the private key of a log is kept, or would be."""
    return str(KeyFolder((config or Config.load()).signing_key).path(origin))


def signature_check() -> Verify:
    """Answer the function that checks Ed25519 signatures.

    Raises:
        ConfigError: the package that does it is not installed.
    """
    try:
        from holdfast.adapters.crypto.signing import verify
    except ImportError as missing:
        raise _no_cryptography(missing) from missing
    return verify


def _no_cryptography(missing: ImportError) -> ConfigError:
    return ConfigError(
        f"a package for signatures and encryption is not installed ({missing.name})",
        hint="Run `pip install 'holdfast[audit]'`.",
    )


def open_async(
    url: Url | None = None,
    *,
    config: Config | None = None,
    read_only: bool = False,
    create: bool = True,
    registry: TypeRegistry | None = None,
    resolver: Resolver | None = None,
    app: App | None = None,
    **settings: Any,
) -> AsyncOpening:
    """Open a store for coroutines: `async with open_async(url) as service`. Arguments as for `open`."""
    # An event loop takes as long to import as a store to open, and most never need one.
    from holdfast.application.async_opening import AsyncOpening

    def build() -> Kit:
        chosen = _configured(url, config, settings)
        return _open_kit(chosen, registry, resolver, app, read_only=read_only, create=create)

    return AsyncOpening(build)
