"""The only place that knows everybody: from a URL and a configuration to a service."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any

from holdfast.adapters.formats import for_mode
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.adapters.system import RandomIds, SystemClock, login_name
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.config import Config, without_secrets
from holdfast.domain.errors import ConfigError
from holdfast.domain.plain import TypeRegistry
from holdfast.ports import Clock, IdSource, Store

#: A scheme has two letters at least: `C:\\...` is a path.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(.*)", re.DOTALL)

OpenStore = Callable[[str, Config, bool, bool], Store]


def _open_file(path: str, config: Config, read_only: bool, create: bool) -> Store:
    # Imported when first needed: nobody who uses another store waits for this one.
    from holdfast.adapters.filesystem.store import FilesystemStore

    if not path:
        raise ConfigError("the URL names no folder", place="file:", hint="Write file:PATH.")
    return FilesystemStore.open(path, read_only=read_only, create=create, journal_bytes=config.journal_bytes)


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
) -> Kit:
    """Put together what the use cases work with."""
    types = registry or TypeRegistry()
    formats = for_mode(
        config.mode, config.compression, config.compression_threshold_bytes, config.compression_level
    )
    return Kit(
        store=store,
        packer=OrmsgpackPacker(types),
        formats=formats,
        registry=types,
        clock=clock or SystemClock(),
        ids=ids or RandomIds(),
        warn_bytes=config.warn_bytes,
        limit_bytes=config.limit_bytes,
        blob_threshold_bytes=config.blob_threshold_bytes,
        cache_bytes=config.cache_bytes,
        retention=config.retention,
        background=config.background,
        audit=config.audit,
        strict_audit=config.strict_audit,
        session_id=config.session or f"session-{secrets.token_hex(4)}",
        actor=config.actor or login_name(),
    )


def open(
    url: str | None = None,
    *,
    config: Config | None = None,
    read_only: bool = False,
    create: bool = True,
    registry: TypeRegistry | None = None,
    **settings: Any,
) -> CheckpointService:
    """Open a store and answer the service over it, a context manager.

    Args:
        url: where: a path, `file:PATH`, `sqlite:PATH`, `postgresql://...`, `postgresql+embedded:PATH` or
            `memory:`. By default what the configuration says.
        config: a whole configuration; by default read from HOLDFAST_* and holdfast.toml.
        read_only: never write anything.
        create: make the store if there is none.
        registry: types of the application's that states may hold.
        settings: single settings of the configuration: `mode="performance"`.

    Raises:
        ConfigError: an unknown scheme or setting.
        StoreNotFoundError: there is no store, and none is to be created.
    """
    chosen = _configured(url, config, settings)
    store = open_store(chosen, read_only=read_only, create=create)
    return CheckpointService(build_kit(store, chosen, registry))


def _configured(url: str | None, config: Config | None, settings: dict[str, Any]) -> Config:
    asked = {**settings, "store": url} if url is not None else settings
    if config is None:
        return Config.load(asked)
    return config.amended(asked)


class AsyncOpening:
    """A service about to be opened: await it, or use it with `async with`."""

    def __init__(self, build: Callable[[], Kit]) -> None:
        self._build = build
        self._service: AsyncCheckpointService | None = None

    def __await__(self) -> Generator[Any, None, AsyncCheckpointService]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncCheckpointService:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._service is not None:
            await self._service.close()

    async def _open(self) -> AsyncCheckpointService:
        self._service = AsyncCheckpointService(await asyncio.to_thread(self._build))
        return self._service


def open_async(
    url: str | None = None,
    *,
    config: Config | None = None,
    read_only: bool = False,
    create: bool = True,
    registry: TypeRegistry | None = None,
    **settings: Any,
) -> AsyncOpening:
    """Open a store for coroutines: `async with open_async(url) as service`. Arguments as for `open`."""

    def build() -> Kit:
        chosen = _configured(url, config, settings)
        return build_kit(open_store(chosen, read_only=read_only, create=create), chosen, registry)

    return AsyncOpening(build)
