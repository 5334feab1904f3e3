"""No secret reaches a store, a log, a report or an error, whatever way it was said."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.postgres.embedded import EmbeddedServer
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.errors import RedactedStateWarning
from tests.adapters.postgres import server
from tests.canaries import CANARIES
from tests.planting import NAMED, found, plant
from tests.sizes import daily
from tests.values import registry

SETTINGS: dict[str, Any] = {"compression": "none", "journal_bytes": 1024 * 1024, "session": "s-1"}
#: Secrets that overlap others may be found under the name of those.
ENOUGH = 100


def files_in(folder: Path) -> Iterator[bytes]:
    """Give every byte of a folder: names too."""
    for path in sorted(folder.rglob("*")):
        yield str(path.relative_to(folder)).encode()
        # An open store moves its temporary files meanwhile; once it is closed all of it is looked at again.
        with suppress(FileNotFoundError, IsADirectoryError):
            yield path.read_bytes()


def things_in(root: object) -> Iterator[bytes]:
    """Give every text and every byte that an object holds on to."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | CheckpointService):
            continue
        seen.add(id(thing))
        if isinstance(thing, str):
            yield thing.encode("utf-8", "surrogatepass")
        elif isinstance(thing, bytes | bytearray):
            yield bytes(thing)
        else:
            todo += gc.get_referents(thing)


def open_file(folder: Path, **settings: Any) -> CheckpointService:
    return holdfast.open(f"file:{folder / 'store'}", registry=registry(), **{**SETTINGS, **settings})


def test_a_store_of_files_holds_no_secret_in_its_journal_its_files_or_its_blobs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = open_file(tmp_path)
    said = plant(service)
    assert found(files_in(tmp_path)) == set()
    said += [str(service.audit.export_report("s-1", format)) for format in ("jsonl", "csv", "html")]
    said += [str(event) for event in service.events("events")]
    service.close()
    assert found(files_in(tmp_path)) == set()
    assert found(text.encode() for text in (*said, caplog.text)) == set()
    assert "[REDACTED:" in caplog.text


@pytest.mark.parametrize("mode", daily(["performance", "compliance"], ["performance"]))
def test_nor_does_it_in_other_formats(tmp_path: Path, mode: str) -> None:
    service = open_file(tmp_path, mode=mode, background=False, blob_threshold_bytes=100)
    plant(service)
    service.close()
    assert found(files_in(tmp_path)) == set()


def test_without_redaction_all_of_it_is_found(tmp_path: Path) -> None:
    """The search is worth something: what is planted shows in every store."""
    store = MemoryStore()
    services = [
        open_file(tmp_path, redact=False),
        holdfast.open(f"sqlite:{tmp_path / 'sqlite.db'}", registry=registry(), redact=False, **SETTINGS),
        CheckpointService(build_kit(store, Config(redact=False, background=False, **SETTINGS), registry())),
    ]
    for service in services:
        plant(service)
        service.close()
    for pieces in (files_in(tmp_path / "store"), [(tmp_path / "sqlite.db").read_bytes()], things_in(store)):
        shown = found(pieces)
        assert len(shown) >= ENOUGH
        assert set(NAMED.values()) <= shown


def test_sqlite_holds_no_secret_in_its_file_or_its_journal(tmp_path: Path) -> None:
    service = holdfast.open(f"sqlite:{tmp_path / 'store.db'}", registry=registry(), **SETTINGS)
    plant(service)
    assert found(files_in(tmp_path)) == set()
    service.close()
    assert found(files_in(tmp_path)) == set()


# What is kept in memory was made ready as for the other stores.
@pytest.mark.campaign
def test_memory_holds_no_secret() -> None:
    store = MemoryStore()
    service = CheckpointService(build_kit(store, Config(background=False, **SETTINGS), registry()))
    plant(service)
    service.close()
    assert found(things_in(store)) == set()


def test_postgresql_holds_no_secret_in_its_tables_or_its_folder() -> None:
    folder = server.embedded_folder()
    running = EmbeddedServer(str(folder))
    running.enter(create=False)
    try:
        url = server.at(running.parameters()["host"], schema="secrecy")
        service = holdfast.open(url, registry=registry(), **SETTINGS)
        plant(service)
        service.close()
        assert found(_tables(url)) == set()
    finally:
        running.leave()
    assert found(files_in(folder)) == set()


def _tables(url: str) -> Iterator[bytes]:
    with server.connected(url) as connection:
        named = connection.execute("select tablename from pg_tables where schemaname = 'secrecy'").fetchall()
        assert len(named) > 5
        for (table,) in named:
            for row in connection.execute(f'select * from "{table}"'):
                for cell in row:
                    yield bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()


def test_a_log_that_tells_of_an_error_tells_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = open_file(tmp_path)
    secret = NAMED["password"]
    try:
        raise ValueError(f'password="{secret}"')
    except ValueError:
        logging.getLogger("holdfast").exception("it failed", extra={"password": secret})
    service.close()
    assert secret not in caplog.text
    assert secret not in str([vars(record) for record in caplog.records])


def test_what_an_encrypted_store_seals_holds_no_secret_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TEST_ENCRYPTION_KEY", "0f" * 32)
    service = open_file(tmp_path, encrypt=True, encryption_key="env:TEST_ENCRYPTION_KEY")
    service.create_checkpoint("w", {**NAMED, "log": [canary.text for canary in CANARIES]})
    service.append_event("w", "X", {**NAMED, "log": [canary.text for canary in CANARIES]})
    with pytest.warns(RedactedStateWarning, match="/context/password"):
        said = [str(service.load_latest("w")), str(service.events("w"))]
    service.close()
    assert found(text.encode() for text in said) == set()
    assert found(files_in(tmp_path)) == set()
