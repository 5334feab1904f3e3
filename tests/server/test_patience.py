"""Connections on which nobody asks for anything."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

import holdfast
from holdfast.server import patience
from tests.server.served import Running, running


@pytest.fixture
def served(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with running(url) as served:
        yield served


class OfAnotherLoop:
    """A transport by what it does, and of no class that asyncio knows: those of uvloop are so."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def close(self) -> None:
        """Nobody is at the other end."""


def connected(served: Running) -> socket.socket:
    where = urlsplit(served.url)
    return socket.create_connection((where.hostname, where.port), timeout=60)


def read_until(client: socket.socket, end: bytes) -> None:
    told = b""
    while end not in told:
        more = client.recv(4096)
        assert more, told
        told += more


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: 127"])
def test_who_never_ends_a_request_is_let_go(served, begun, monkeypatch):
    monkeypatch.setattr(patience, "HEADERS_SECONDS", 0.2)
    with connected(served) as client:
        client.sendall(begun)
        assert client.recv(1) == b""


def test_who_begins_a_second_request_and_never_ends_it_is_let_go(served, monkeypatch):
    with connected(served) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        read_until(client, b'{"live":true}')
        # Not before: the first one may take its time.
        monkeypatch.setattr(patience, "HEADERS_SECONDS", 0.2)
        client.sendall(b"GET /")
        assert client.recv(1) == b""


def test_who_listens_stays(served, monkeypatch):
    counting = list[patience.PatientProtocol]()
    watch = patience.PatientProtocol._watch

    def watched(protocol):
        watch(protocol)
        counting[:] = [protocol] if protocol._deadline is not None else []

    monkeypatch.setattr(patience.PatientProtocol, "_watch", watched)
    with connected(served) as client:
        key = served.desk.doorkeeper.key
        ask = ["GET /v1/events HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}", "", ""]
        client.sendall("\r\n".join(ask).encode())
        read_until(client, b"listening")
        assert counting == []
        client.settimeout(0.6)
        with pytest.raises(TimeoutError):
            client.recv(1)


async def nobody(scope: Any, receive: Any, send: Any) -> None:
    """Answer nothing."""


def test_a_connection_of_any_event_loop_is_taken():
    async def connect() -> None:
        config = Config(cast(Any, nobody), interface="asgi3", lifespan="off")
        config.load()
        protocol = patience.PatientProtocol(config, ServerState(), {})
        protocol.connection_made(cast(Any, OfAnotherLoop()))
        assert protocol in protocol.connections
        protocol.connection_lost(None)

    asyncio.run(connect())
