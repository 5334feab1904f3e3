"""Whoever can write to a store can neither run anything here nor pass off what was not put."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import holdfast
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointSchemaError,
    ConfigError,
    KeyUnavailableError,
)
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_values import Values
from tests.adapters.postgres import server
from tests.damage import Spoiler, flip
from tests.integrations.langgraph_graphs import asked, whole_agent
from tests.integrations.langgraph_stores import LASTING, channels, config_of, got, put, url_of

KEY = "ab" * 32
CANARY = "canary-3b9d"


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Settings of an encrypted store."""
    monkeypatch.setenv("STORE_KEY", KEY)
    return {"encrypt": True, "encryption_key": "env:STORE_KEY", "compression": "none", "redact": False}


# -- what is planted is never run --------------------------------------------------------------------------


class Payload:
    """Something that leaves a file behind when it is revived."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def _ext(code: int, *parts: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


def _constructor(version: int, path: str) -> bytes:
    revived = {"lc": version, "type": "constructor", "id": ["pathlib", "Path"], "args": [path], "kwargs": {}}
    return json.dumps({**revived, "method": ["touch", None]}).encode()


PLANTED: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "pickle": lambda path: ("pickle", pickle.dumps(Payload(path))),
    "json, new constructor": lambda path: ("json", _constructor(2, path)),
    "json, old constructor": lambda path: ("json", _constructor(1, path)),
    "msgpack, one argument": lambda path: ("msgpack", _ext(0, "os", "mkdir", path)),
    "msgpack, arguments": lambda path: ("msgpack", _ext(1, "os", "makedirs", [path])),
    "msgpack, named arguments": lambda path: ("msgpack", _ext(2, "os", "makedirs", {"name": path})),
    "msgpack, method": lambda path: ("msgpack", _ext(3, "subprocess", "Popen", ["touch", path], "wait")),
    "msgpack, model": lambda path: (
        "msgpack",
        _ext(5, "os", "system", {"command": path}, "model_validate_json"),
    ),
    "unknown": lambda path: ("yaml", b"!!python/object/apply:os.system"),
    "no msgpack at all": lambda path: ("msgpack", b"\xc1"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["channel", "write"])
@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("careless", [False, True], ids=["strict", "their serializer at its most careless"])
def test_what_is_planted_is_told_and_not_run(name: str, where: str, careless: bool, tmp_path, monkeypatch):
    mark = str(tmp_path / "ran")
    kind, data = PLANTED[name](mark)
    with holdfast.open("memory:") as service:
        with monkeypatch.context() as attacker:
            planted = {"type": kind, "data": data, "class": "pathlib.PosixPath"}
            attacker.setattr(Values, "_dumped", lambda *_: planted)
            evil = HoldfastSaver(service)
            at = put(evil, config_of("t"), {"odd": object() if where == "channel" else 1})
            evil.put_writes(at, [("odd", object() if where == "write" else 1)], "task")
        serde = JsonPlusSerializer(pickle_fallback=True, allowed_msgpack_modules=None) if careless else None
        with pytest.raises(CheckpointSchemaError):
            HoldfastSaver(service, serde=serde).get_tuple(config_of("t"))
    assert not Path(mark).exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "constructor", "lc": 1, "id": ["os", "system"], "content": "x"},
        {"type": "os.system", "content": "x"},
        {"type": "human"},
        {"type": "human", "content": {"not": "text"}},
        {"type": ["human"]},
        {"content": "x"},
        "text",
        None,
        7,
    ],
)
@pytest.mark.parametrize("is_list", [True, False])
def test_what_is_stored_as_a_message_and_is_none_is_told(fields: Any, is_list: bool, monkeypatch):
    with HoldfastSaver.open("memory:") as saver:
        with monkeypatch.context() as attacker:
            stored = ([fields], "messages") if is_list else (fields, "message")
            attacker.setattr(Values, "encode", lambda *_: stored)
            put(saver, config_of("t"), {"messages": 1})
        with pytest.raises(CheckpointSchemaError):
            saver.get_tuple(config_of("t"))


# -- bytes that were changed -------------------------------------------------------------------------------


def fill(url: str, **settings: Any) -> None:
    with HoldfastSaver.open(url, **settings) as saver:
        for name in ("a", "b"):
            config = config_of(name)
            for number in (1, 2, 3):
                config = put(saver, config, {"said": f"{CANARY} {name} {number}"}, number)


@pytest.mark.parametrize("kind", LASTING)
def test_an_edited_state_is_refused(kind: str, tmp_path: Path):
    spoiler = Spoiler(kind, tmp_path)
    fill(spoiler.url)
    spoiler.spoil_record(2, flip, "langgraph/a")
    with HoldfastSaver.open(spoiler.url) as saver:
        with pytest.raises(CheckpointCorruptError):
            [item.checkpoint for item in saver.list(config_of("a"))]
        assert channels(saver, config_of("b")) == {"said": f"{CANARY} b 3"}


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_an_edited_write_is_refused(kind: str, tmp_path: Path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url, compression="none") as saver:
        at = put(saver, config_of("t"), {"n": 1})
        saver.put_writes(at, [("said", CANARY)], "task")
    changed = 0
    for path in tmp_path.rglob("*"):
        if path.is_file() and CANARY.encode() in (data := path.read_bytes()):
            path.write_bytes(data.replace(CANARY.encode(), CANARY.replace("canary", "parrot").encode()))
            changed += 1
    assert changed
    with pytest.raises(CheckpointCorruptError), HoldfastSaver.open(url) as saver:
        saver.get_tuple(config_of("t"))


# -- encrypted stores --------------------------------------------------------------------------------------


def say_everything(url: str, settings: dict[str, Any]) -> None:
    with HoldfastSaver.open(url, **settings) as saver:
        config: Any = {
            "configurable": {"thread_id": "t", "checkpoint_ns": "", "user": f"{CANARY}-user"},
            "metadata": {"tag": f"{CANARY}-tag"},
        }
        channels = {
            "text": f"{CANARY}-text",
            "messages": [HumanMessage(f"{CANARY}-message")],
            f"{CANARY}-name": 1,
        }
        at = put(
            saver,
            config,
            {**channels, "image": f"{CANARY}-image" * 5_000},
            metadata={"run_id": f"{CANARY}-run"},
        )
        saver.put_writes(
            at, [("text", f"{CANARY}-write"), (f"{CANARY}-channel", 1)], f"{CANARY}-task", CANARY
        )
        graph = whole_agent().compile(checkpointer=saver)
        graph.invoke(asked(f"{CANARY}-asked"), {"configurable": {"thread_id": "u", "who": f"{CANARY}-who"}})
        saver.copy_thread("t", "v")
        saver.prune(["t"])


@pytest.mark.parametrize("kind", LASTING)
def test_an_encrypted_store_shows_nothing_of_channels_writes_and_metadata(kind: str, tmp_path: Path, sealed):
    url = url_of(kind, tmp_path)
    say_everything(url, sealed)
    assert list(stored(kind, url, tmp_path))
    assert [piece for piece in stored(kind, url, tmp_path) if CANARY.encode() in piece] == []
    with HoldfastSaver.open(url, **sealed) as saver:
        found = got(saver, config_of("t"))
        metadata: Any = found.metadata
        assert found.checkpoint["channel_values"]["text"] == f"{CANARY}-text"
        assert metadata["user"] == f"{CANARY}-user" and metadata["tag"] == f"{CANARY}-tag"


def test_a_store_that_is_not_encrypted_shows_it(tmp_path: Path, sealed):
    """The negative control."""
    url = url_of("file", tmp_path)
    say_everything(url, {"compression": "none", "redact": False})
    assert any(CANARY.encode() in piece for piece in stored("file", url, tmp_path))


def stored(kind: str, url: str, folder: Path) -> Any:
    """Give every byte that a store has kept."""
    if kind != "postgres":
        yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file())
        return
    with server.connected(url) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = current_schema()")
        for (table,) in tables.fetchall():
            for row in connection.execute(f'select * from "{table}"'):
                yield b" ".join(
                    bytes(cell) if isinstance(cell, bytes) else str(cell).encode() for cell in row
                )


def test_without_its_key_or_with_another_nothing_is_read(tmp_path: Path, sealed, monkeypatch):
    url = url_of("file", tmp_path)
    fill(url, **sealed)
    monkeypatch.setenv("STORE_KEY", "cd" * 32)
    with pytest.raises(KeyUnavailableError), HoldfastSaver.open(url, **sealed) as saver:
        saver.get_tuple(config_of("a"))
    with pytest.raises((KeyUnavailableError, ConfigError)), HoldfastSaver.open(url) as saver:
        saver.get_tuple(config_of("a"))


@pytest.mark.parametrize("kind", LASTING)
def test_a_sealed_state_of_another_thread_or_another_time_is_refused(kind: str, tmp_path: Path, sealed):
    for place, other in (("langgraph/b", 2), ("langgraph/a", 1)):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        spoiler = Spoiler(kind, folder)
        fill(spoiler.url, **sealed)
        with spoiler.opened(read_only=True, audit=False) as service:
            [swapped] = service._engine.kit.store.records(place, other, other)
        spoiler.spoil_record(2, _instead(swapped), "langgraph/a")
        check_refused(spoiler.url, sealed)


@pytest.mark.parametrize("kind", LASTING)
def test_a_plain_state_in_a_sealed_store_is_refused(kind: str, tmp_path: Path, sealed):
    (tmp_path / "plain").mkdir()
    plain, spoiler = Spoiler(kind, tmp_path / "plain"), Spoiler(kind, tmp_path)
    fill(plain.url, compression="none")
    fill(spoiler.url, **sealed)
    with plain.opened(read_only=True, audit=False) as service:
        [unsealed] = service._engine.kit.store.records("langgraph/a", 2, 2)
    assert CANARY.encode() in unsealed
    spoiler.spoil_record(2, _instead(unsealed), "langgraph/a")
    check_refused(spoiler.url, sealed)


def _instead(other: bytes) -> Callable[[bytes], bytes]:
    return lambda _: other


def check_refused(url: str, settings: dict[str, Any]) -> None:
    with HoldfastSaver.open(url, **settings) as saver:
        with pytest.raises(CheckpointCorruptError):
            [item.checkpoint for item in saver.list(config_of("a"))]
        assert channels(saver, config_of("b")) == {"said": f"{CANARY} b 3"}


def test_a_nul_in_a_string_is_stored_by_every_store(tmp_path: Path):
    for kind in LASTING:
        url = url_of(kind, tmp_path)
        with HoldfastSaver.open(url) as saver:
            at = put(saver, config_of("t\x00"), {"a\x00": "b\x00c"})
            saver.put_writes(at, [("a\x00", "\x00")], "task\x00", "\x00")
        with HoldfastSaver.open(url) as saver:
            found = got(saver, config_of("t\x00"))
            assert found.checkpoint["channel_values"] == {"a\x00": "b\x00c"}
            assert found.pending_writes == [("task\x00", "a\x00", "\x00")]
