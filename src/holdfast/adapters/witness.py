"""A witness in the world: its memory in a folder, its ear on a port, and the way to another one's."""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import logging
import os
import socket
import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointReadError,
    CheckpointWriteError,
    ConfigError,
)
from holdfast.domain.treehead import TreeHead, parse_head

PATH = "/add-checkpoint"
BODY_BYTES_MAX = 256 * 1024
TIMEOUT_SECONDS = 10.0
CONNECTIONS_MAX = 32

_HEAD_BYTES_MAX = 4096
_LOG = logging.getLogger("holdfast")

#: Answers the body of a request with a status, a body and its media type.
Answering = Callable[[bytes], tuple[int, bytes, str]]


class WitnessFolder:
    """Keeps the last head of each log in a small file of its own.

    The folder is all that keeps a witness honest: one that is lost or put back has forgotten.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _sync_folder(os.path.dirname(os.path.abspath(folder)))
        except OSError as fault:
            raise _unwritten(fault, folder) from None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder's lock, against other threads and other processes."""
        place = os.path.join(self._folder, "lock")
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as fault:
            raise _unwritten(fault, place) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def last(self, origin: str) -> TreeHead | None:
        """Read the last head of a log; one that cannot be read is an error, never the same as none."""
        place = self._place(origin)
        try:
            with open(place, "rb") as file:
                data = file.read(_HEAD_BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise CheckpointCorruptError(f"a head cannot be read ({fault.strerror})", place=place) from None
        try:
            head = parse_head(data.decode())
        except (UnicodeDecodeError, CheckpointCorruptError):
            head = None
        if head is None or head.origin != origin:
            hint = "Nothing is signed for this log until the file is put right."
            raise CheckpointCorruptError("the witness's memory is damaged", place=place, hint=hint)
        return head

    def keep(self, head: TreeHead) -> None:
        """Replace the head of a log: whole or not at all, and on the disk before this returns."""
        place = self._place(head.origin)
        fresh = f"{place}.new"
        try:
            with open(fresh, "wb", opener=_private) as file:
                file.write(head.text().encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, place)
            _sync_folder(self._folder)
        except OSError as fault:
            raise _unwritten(fault, place) from None

    def _place(self, origin: str) -> str:
        # The name of a log may be anything that can be printed, a path too.
        return os.path.join(self._folder, f"{hashlib.sha256(origin.encode()).hexdigest()[:32]}.head")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritten(fault: OSError, place: str) -> CheckpointWriteError:
    return CheckpointWriteError(f"the witness cannot remember ({fault.strerror})", place=place)


class WitnessServer(ThreadingHTTPServer):
    """Answers requests at one address, a bounded number at once."""

    def __init__(self, address: str, answer: Answering, *, public: bool = False) -> None:
        """Listen at `host:port`; port 0 takes any that is free.

        Raises:
            ConfigError: if the address is none, is not this machine's alone and `public` is not asked for, or
                cannot be had.
        """
        self.answer = answer
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        host, port = parse_address(address)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        if not public and not is_loopback(host):
            raise ConfigError(
                "a witness listens on this machine only, unless it is told otherwise",
                place=address,
                hint="Give --public, and let a proxy with TLS stand before it.",
            )
        try:
            super().__init__((host, port), _Handler)
        except OSError as fault:
            raise ConfigError(f"cannot listen ({fault.strerror or fault})", place=address) from None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def server_bind(self) -> None:
        """Bind without asking a name server for our own name, as the library's server does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Turn callers away when too many are here."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Free the place when a caller has gone."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write down that a caller went away half-way; nobody else has to hear of it."""
        _LOG.info("a caller of the witness went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """Reads one request and answers it."""

    server: WitnessServer
    server_version = "holdfast"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = TIMEOUT_SECONDS

    def do_GET(self) -> None:
        self._reply(404, b"POST /add-checkpoint is all there is\n")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path != PATH:
            self._reply(404, b"POST /add-checkpoint is all there is\n")
        elif not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            self._reply(411, b"the request does not tell its length\n")
        elif len(length) > 9 or int(length) > BODY_BYTES_MAX:
            self._reply(413, b"the request is too long\n")
        else:
            self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        try:
            status, said, kind = self.server.answer(body)
        except CheckpointError as fault:
            _LOG.error("the witness signed nothing: %s", fault)
            self._reply(500, b"the witness cannot remember at the moment, and signs nothing\n")
            return
        self._reply(status, said, kind)

    def _reply(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        # What was not read of the request must not be taken for the next one.
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        _LOG.info("witness: " + format, *args)


def parse_address(address: str) -> tuple[str, int]:
    """Read `host:port`; an IPv6 address stands in brackets.

    Raises:
        ConfigError: if it is none.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ConfigError("this is no address", place=address, hint="Write 127.0.0.1:8788.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Answers what was answered: a refusal is read as anything else, and nobody is followed elsewhere."""

    def http_response(self, request: urllib.request.Request, response: HTTPResponse) -> HTTPResponse:
        return response

    https_response = http_response


def post_to_witness(url: str, body: bytes) -> tuple[int, bytes, str]:
    """Bring a request to a witness; answer status, body and media type.

    Args:
        url: where the witness is, without `/add-checkpoint`.
        body: the request.

    Raises:
        ConfigError: if the URL is none for HTTP.
        CheckpointReadError: if nobody answers, or not to the end.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("this is no address of a witness", place=url, hint="Write http://HOST:PORT.")
    handlers: list[urllib.request.BaseHandler] = [_AsItIs()]
    if is_loopback(parts.hostname):
        # A proxy has a loopback of its own.
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url.rstrip("/") + PATH, body, {"Content-Type": "text/plain"})
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_SECONDS) as reply:
            return reply.status, _whole(reply), reply.headers.get("Content-Type", "")
    except (OSError, HTTPException) as fault:
        why = getattr(fault, "reason", None) or fault
        raise CheckpointReadError(f"the witness does not answer ({why})", place=url) from None


def _whole(reply: HTTPResponse) -> bytes:
    """Read an answer; one that was cut off is none, whatever can be read of it."""
    is_measured = reply.length is not None or reply.chunked
    body = reply.read(BODY_BYTES_MAX + 1)
    # What ends with its connection alone consists of lines: of one that was cut behind a line the rest is
    # missing, and what is there is checked as ever. One that was cut in its headers has none.
    if not is_measured and not body.endswith(b"\n"):
        raise HTTPException("its answer does not tell its length, and does not end with a line")
    if len(body) > BODY_BYTES_MAX:
        raise HTTPException(f"its answer is longer than {BODY_BYTES_MAX} bytes")
    if reply.length:
        raise HTTPException(f"its answer is cut off {reply.length} bytes before its end")
    return body
