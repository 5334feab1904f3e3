"""Opening: from a URL and settings to a service that works."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import bootstrap
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.config import Config
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointWriteError,
    ConfigError,
    StoreNotFoundError,
    UnsupportedTypeError,
)
from holdfast.domain.plain import TypeRegistry
from tests.cli.conftest import without_privileges


@dataclass
class Point:
    x: int


def test_memory_is_opened_by_its_scheme() -> None:
    assert isinstance(bootstrap.open_store(Config(store="memory:")), MemoryStore)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_folder_is_opened_by_its_path_or_url(tmp_path: Path, form: str) -> None:
    store = bootstrap.open_store(Config(store=form.format(tmp_path / "store")))
    assert isinstance(store, FilesystemStore)
    store.close()
    assert (tmp_path / "store" / "holdfast.json").is_file()


@pytest.mark.parametrize("url", ["carrier-pigeon://me:secret@host/x", "file:"])
def test_an_unknown_scheme_names_the_known_ones_and_no_secret(url: str) -> None:
    with pytest.raises(ConfigError, match="file") as caught:
        bootstrap.open(url)
    assert "secret" not in str(caught.value)


def test_a_store_that_is_not_there_is_not_created_unasked(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        bootstrap.open(str(tmp_path / "none"), create=False)
    assert not (tmp_path / "none").exists()


def test_a_path_below_a_folder_that_may_not_be_entered_is_told_as_such() -> None:
    # Those of pytest may not be entered by others, and whoever owns one may.
    with tempfile.TemporaryDirectory() as place:
        locked = Path(place) / "locked"
        locked.mkdir()
        Path(place).chmod(0o755)
        locked.chmod(0)
        with without_privileges(), pytest.raises(CheckpointError, match="Permission denied"):
            bootstrap.open(f"{locked}/store")


def test_what_was_kept_is_there_after_reopening_even_to_read_only(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    with bootstrap.open(url) as service:
        service.create_checkpoint("W", {"a": 1})
    with bootstrap.open(url, read_only=True) as service:
        assert service.restore_checkpoint("W@latest").context == {"a": 1}


def test_settings_and_types_reach_the_service() -> None:
    registry = TypeRegistry()
    registry.register(Point)
    with bootstrap.open("memory:", registry=registry, mode="performance", compression="none") as service:
        service.create_checkpoint("W", {"p": Point(1)})
        assert service.restore_checkpoint("W@1").context == {"p": Point(1)}
        [keyframe] = service._engine.kit.store.keyframes("W")
        assert keyframe.suffix == "msgpack"


def test_a_whole_configuration_may_be_given_and_amended() -> None:
    config = Config(store="memory:", limit_bytes=7, retain=False)
    kit = bootstrap.open(config=config, limit_bytes=8)._engine.kit
    assert (kit.limit_bytes, kit.retention) == (8, None)
    with pytest.raises(ConfigError, match="colour"):
        bootstrap.open(config=config, colour="red")
    with pytest.raises(ConfigError, match="colour"):
        bootstrap.open("memory:", colour="red")


def test_the_environment_says_where_if_nobody_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_STORE", "memory:")
    assert bootstrap.open()._engine.kit.store.url == "memory:"


def test_coroutines_open_with_async_with_or_by_awaiting() -> None:
    async def main() -> None:
        async with bootstrap.open_async("memory:") as service:
            assert (await service.create_checkpoint("W", {"a": 1})).sequence == 1
        service = await bootstrap.open_async("memory:")
        assert await service.load_latest("W") is None
        await service.close()

    asyncio.run(main())


def test_a_path_is_a_place_as_well(tmp_path: Path) -> None:
    with bootstrap.open(tmp_path / "store") as service:
        service.create_checkpoint("W", {})
    assert (tmp_path / "store" / "checkpoints").is_dir()
    with pytest.raises(ConfigError, match="should be a text"):
        bootstrap.open(cast(Any, 5))


def test_an_argument_that_is_written_otherwise_is_guessed() -> None:
    with pytest.raises(ConfigError, match="there is no setting readonly") as refused:
        bootstrap.open("memory:", readonly=True)
    assert refused.value.hint == "Did you mean read_only?"


def test_nothing_is_opened_before_it_is_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        opening = bootstrap.open_async(str(tmp_path / "none"), create=False)
        with pytest.raises(StoreNotFoundError):
            async with opening:
                pass

    asyncio.run(main())


def test_patterns_of_the_user_are_read_and_checked_when_a_store_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text("[patterns]\nemployee = 'EMP-[0-9]{6}'\n", encoding="utf-8")
    with bootstrap.open("memory:", redact_patterns=str(path), redact_engine="re") as service:
        event = service.append_event("w", "X", {"who": "EMP-123456"})
    assert event.data["who"].startswith("[REDACTED:employee:")
    path.write_text("[patterns]\nemployee = '(?=x)'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="employee"):
        bootstrap.open("memory:", redact_patterns=str(path))


def test_an_engine_that_is_not_installed_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.redaction.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="google-re2"):
        bootstrap.open("memory:", redact_engine="re2")


def test_a_resolver_is_asked_by_both_faces(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    with bootstrap.open(url) as service:
        service.create_checkpoint("w", {"password": "hunter2"})

    def resolver(pointer: str, placeholder: str) -> str:
        return f"{pointer} {placeholder[:10]}"

    with bootstrap.open(url, resolver=resolver) as service:
        state = service.load_latest("w")

    async def read() -> object:
        async with bootstrap.open_async(url, resolver=resolver) as opened:
            return await opened.load_latest("w")

    assert state is not None
    assert state.context == {"password": "/context/password [REDACTED:"}
    assert asyncio.run(read()) == state


def test_an_app_reaches_the_kit_and_brings_its_types() -> None:
    registry = TypeRegistry()
    registry.register(Point)
    app = App(types=registry)
    with bootstrap.open("memory:", app=app) as service:
        assert service._engine.kit.app is app
        service.create_checkpoint("W", {"p": Point(1)})
        assert service.restore_checkpoint("W@1").context == {"p": Point(1)}
    with (
        bootstrap.open("memory:", app=app, registry=TypeRegistry()) as service,
        pytest.raises(UnsupportedTypeError),
    ):
        service.create_checkpoint("W", {"p": Point(1)})

    async def main() -> None:
        async with bootstrap.open_async("memory:", app=app) as opened:
            assert opened._engine.kit.app is app

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [{"app": b"x"}, {"resolver": b"x"}, {"registry": b"x"}], ids=str)
@pytest.mark.parametrize("enabled", [True, False])
def test_what_a_program_cannot_bring_along_is_refused_before_a_store_is_made(
    tmp_path: Path, wrong: dict[str, Any], enabled: bool
) -> None:
    url = str(tmp_path / "store")
    with pytest.raises(ConfigError, match="is of type bytes"):
        bootstrap.open(url, enabled=enabled, **wrong)

    async def main() -> None:
        await bootstrap.open_async(url, enabled=enabled, **wrong)

    with pytest.raises(ConfigError, match="is of type bytes"):
        asyncio.run(main())
    assert not (tmp_path / "store").exists()


def test_how_to_recover_and_what_to_do_about_faults_reach_the_kit() -> None:
    settings = {"auto_recovery": True, "on_fault": "degrade", "memory_budget_bytes": 7}
    config = Config(store="memory:", **settings)
    kit = bootstrap.build_kit(MemoryStore(), config)
    assert (kit.recovery, kit.faults) == (config.recovery, config.faults)


def test_second_stores_that_cannot_be_made_leave_nothing_behind(tmp_path: Path) -> None:
    rescue = tmp_path / "rescue"
    with bootstrap.open(f"{tmp_path}/store", emergency_path=str(rescue)) as service:
        spare = service._engine.kit.spare
        assert spare is not None
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            with pytest.raises(CheckpointWriteError):
                spare()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(rescue.iterdir()) == []
