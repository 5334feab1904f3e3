"""Servers for tests: the whole application in this process, and a real one on a port of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from holdfast.config import Config
from holdfast.server import routing, serving
from holdfast.server.app import build
from holdfast.server.desk import Desk, open_desk
from holdfast.server.rates import Rates
from holdfast.server.settings import Settings

BASE = "http://127.0.0.1:8787"


def let_no_time_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody ask more often because a busy machine takes its time; for servers that are made then."""
    monkeypatch.setattr(routing, "Rates", partial(Rates, clock=lambda: 0.0))


class Limits:
    """Gives up the newest request when a test says so: its work has begun then, however busy a machine is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._newest: tuple[asyncio.AbstractEventLoop, anyio.CancelScope] | None = None
        monkeypatch.setattr(routing, "anyio", SimpleNamespace(move_on_after=self._begin))

    def reach(self) -> None:
        """Have the time of the newest request be over; for other threads than that of the server."""
        assert self._newest is not None
        loop, scope = self._newest
        loop.call_soon_threadsafe(scope.cancel)

    def _begin(self, seconds: float) -> anyio.CancelScope:
        scope = anyio.move_on_after(seconds)
        self._newest = asyncio.get_running_loop(), scope
        return scope


@contextmanager
def desk_of(url: str, settings: Settings | None = None, **more: Any) -> Iterator[Desk]:
    """Open a store as a server does."""
    desk = open_desk(Config.load({"store": url, **more}), settings or Settings(rate=100_000))
    try:
        yield desk
    finally:
        desk.close()


class Caller:
    """Asks an application on behalf of one token, with a new key for everything that acts."""

    def __init__(self, client: TestClient, token: str) -> None:
        self.client = client
        self._token = token
        self._keys = 0

    def __call__(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Any:
        self._keys += 1
        sent = {"Authorization": f"Bearer {self._token}"}
        if method not in ("GET", "HEAD"):
            sent["Idempotency-Key"] = f"key-{id(self)}-{self._keys}"
        return self.client.request(method, path, headers={**sent, **(headers or {})}, **more)

    def get(self, path: str, **more: Any) -> Any:
        """Ask for something that is there; answer its JSON."""
        response = self("GET", path, **more)
        assert response.status_code == 200, response.text
        return response.json()


def caller_for(client: TestClient, desk: Desk, *scopes: str, name: str = "tester") -> Caller:
    """Make a token, and answer what asks with it."""
    return Caller(client, desk.service.tokens.create(name, scopes or ("admin",))[1])


@contextmanager
def application(url: str, settings: Settings | None = None, **more: Any) -> Iterator[tuple[TestClient, Desk]]:
    """Answer a client of the whole application over a store."""
    with desk_of(url, settings, **more) as desk:
        yield TestClient(build(desk), base_url=BASE), desk


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    url: str
    desk: Desk

    @property
    def page(self) -> str:
        """The address that signs a browser in."""
        return f"{self.url}/ui/#key={self.desk.doorkeeper.key}"


@contextmanager
def running(url: str, settings: Settings | None = None, *, port: int = 0, **more: Any) -> Iterator[Running]:
    """Run a real server in a thread until the block ends, on a port that is free if none is named."""
    chosen = replace(settings or Settings(rate=100_000), port=port)
    with desk_of(url, chosen, **more) as desk:
        listener = serving.listen(chosen)
        desk.settings = replace(chosen, port=listener.getsockname()[1])
        ready = threading.Event()
        server = serving.server(desk, ready.set)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert ready.wait(30)
        try:
            yield Running(desk.settings.url, desk)
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()
