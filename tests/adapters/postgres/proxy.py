"""A wire between client and server that can be cut at any byte, in either direction."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.postgres import server

SOCKET = ".s.PGSQL.5432"


@dataclass(slots=True)
class Cut:
    """Where the next message that holds `marker` is cut: after so many bytes of it, or of its answer."""

    marker: bytes
    asked_bytes: int | None = None
    answered_bytes: int | None = None


class Proxy:
    """Listens where a client looks for a server, and passes everything on until it is told to cut."""

    def __init__(self, host: str | None = None) -> None:
        self._upstream = str(Path(host or server.parameters()["host"]) / SOCKET)
        self.folder = server.new_folder()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen(64)
        self._lock = threading.Lock()
        self._cut: Cut | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        #: Set when a cut was made.
        self.was_cut = threading.Event()
        #: Set when a message with the marker has gone to the server, whole.
        self.has_passed = threading.Event()
        self.asked_bytes = 0
        self.answered_bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return str(self.folder)

    def arm(self, cut: Cut) -> None:
        """Cut the next message that fits."""
        with self._lock:
            self._cut = cut
            self.was_cut.clear()
            self.has_passed.clear()
            self.asked_bytes = self.answered_bytes = 0

    def cut_all(self) -> None:
        """Cut every wire at once; the server may not notice before it answers."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for client, _ in pairs:
            _end(client)
        self.was_cut.set()

    def close(self) -> None:
        _end(self._listener)
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._upstream)
            with self._lock:
                self._pairs.append((client, upstream))
            wire = _Wire(self, client, upstream)
            threading.Thread(target=wire.ask, daemon=True).start()
            threading.Thread(target=wire.answer, daemon=True).start()

    def take_cut(self, data: bytes) -> Cut | None:
        """Give the cut to the first message that fits it."""
        with self._lock:
            if self._cut is None or self._cut.marker not in data:
                return None
            cut, self._cut = self._cut, None
            return cut


class _Wire:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, upstream: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._upstream = upstream
        self._cut: Cut | None = None

    def ask(self) -> None:
        """Pass on what the client says; a message comes in one piece, or is put together."""
        while data := _received(self._client):
            if cut := self._proxy.take_cut(data):
                self._cut = cut
                while len(more := _waiting(self._client)):
                    data += more
                self._proxy.asked_bytes = len(data)
                if cut.asked_bytes is not None:
                    _sent(self._upstream, data[: cut.asked_bytes])
                    self._end()
                    return
                self._proxy.has_passed.set()
            if not _sent(self._upstream, data):
                break
        _end(self._upstream)

    def answer(self) -> None:
        """Pass on what the server says."""
        while data := _received(self._upstream):
            if self._cut is not None:
                before = self._proxy.answered_bytes
                self._proxy.answered_bytes += len(data)
                limit = self._cut.answered_bytes
                if limit is not None and self._proxy.answered_bytes > limit:
                    _sent(self._client, data[: limit - before])
                    self._end()
                    return
            if not _sent(self._client, data):
                break
        _end(self._client)

    def _end(self) -> None:
        _end(self._client)
        _end(self._upstream)
        self._proxy.was_cut.set()


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 20)
    except OSError:
        return b""


def _waiting(end: socket.socket) -> bytes:
    """What is there already."""
    try:
        return end.recv(1 << 20, socket.MSG_DONTWAIT)
    except OSError:
        return b""


def _sent(end: socket.socket, data: bytes) -> bool:
    try:
        end.sendall(data)
    except OSError:
        return False
    return True


def _end(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
