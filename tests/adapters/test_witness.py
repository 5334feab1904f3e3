from __future__ import annotations

import http.client
import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters import witness as adapter
from holdfast.adapters.witness import (
    BODY_BYTES_MAX,
    PATH,
    WitnessFolder,
    WitnessServer,
    is_loopback,
    parse_address,
    post_to_witness,
)
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointReadError,
    CheckpointWriteError,
    ConfigError,
)
from holdfast.domain.treehead import TreeHead

OTHERS = TreeHead("other", 3, bytes(32)).text().encode()
HEAD = TreeHead("example.com/../a log", 3, bytes(range(32)))


def test_a_head_is_there_again_for_another_process(tmp_path: Path):
    memory = WitnessFolder(str(tmp_path / "deep" / "state"))
    assert memory.last(HEAD.origin) is None
    memory.keep(HEAD)
    again = WitnessFolder(str(tmp_path / "deep" / "state"))
    assert again.last(HEAD.origin) == HEAD and again.last("example.com/other") is None
    (file,) = (tmp_path / "deep" / "state").glob("*.head")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == HEAD.text()


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\xff", OTHERS])
def test_a_damaged_memory_is_not_an_empty_one(tmp_path: Path, damage: bytes):
    memory = WitnessFolder(str(tmp_path))
    memory.keep(HEAD)
    next(tmp_path.glob("*.head")).write_bytes(damage)
    with pytest.raises(CheckpointCorruptError, match="damaged"):
        memory.last(HEAD.origin)


def test_a_memory_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path):
    memory = WitnessFolder(str(tmp_path))
    memory.keep(HEAD)
    file = next(tmp_path.glob("*.head"))
    file.unlink()
    file.mkdir()
    with pytest.raises(CheckpointCorruptError, match="cannot be read"):
        memory.last(HEAD.origin)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_head_that_is_not_known_to_be_durable_is_an_error(tmp_path: Path, monkeypatch, step: str):
    memory = WitnessFolder(str(tmp_path))

    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(CheckpointWriteError, match="cannot remember"):
        memory.keep(HEAD)
    assert memory.last(HEAD.origin) is None


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointWriteError):
        WitnessFolder(str(tmp_path / "file" / "state"))


def test_the_lock_of_a_folder_that_is_gone_is_told(tmp_path: Path):
    memory = WitnessFolder(str(tmp_path / "state"))
    (tmp_path / "state").rmdir()
    with pytest.raises(CheckpointWriteError), memory.alone():
        pass


def test_only_one_is_alone(tmp_path: Path):
    memory, inside, entered = WitnessFolder(str(tmp_path)), threading.Event(), []

    def second() -> None:
        inside.set()
        with WitnessFolder(str(tmp_path)).alone():
            entered.append("second")

    with memory.alone():
        thread = threading.Thread(target=second)
        thread.start()
        inside.wait()
        entered.append("first")
    thread.join()
    assert entered == ["first", "second"]


@contextmanager
def listening(answer=lambda body: (200, body.upper(), "text/plain")) -> Iterator[WitnessServer]:
    with WitnessServer("127.0.0.1:0", answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_request_is_brought_and_answered():
    with listening() as server:
        assert post_to_witness(server.url, b"old 0\n") == (200, b"OLD 0\n", "text/plain")
        assert post_to_witness(f"{server.url}/", b"x")[:2] == (200, b"X")


def test_a_refusal_is_an_answer():
    with listening(lambda body: (409, b"7\n", "text/x.tlog.size")) as server:
        assert post_to_witness(server.url, b"x") == (409, b"7\n", "text/x.tlog.size")


def test_nothing_is_said_about_what_failed_inside():
    def fail(body: bytes) -> tuple[int, bytes, str]:
        raise CheckpointWriteError("the witness cannot remember", place="/secret/place")

    with listening(fail) as server:
        status, said, _ = post_to_witness(server.url, b"x")
        assert status == 500 and b"signs nothing" in said and b"secret" not in said


def raw(server: WitnessServer, method: str, path: str, headers: dict[str, str]) -> int:
    """Send what the client of this house never would."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, text in headers.items():
        connection.putheader(name, text)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_is_no_request_is_refused():
    with listening() as server:
        assert raw(server, "GET", "/", {}) == 404
        assert raw(server, "POST", "/elsewhere", {"Content-Length": "0"}) == 404
        assert raw(server, "POST", PATH, {}) == 411
        assert raw(server, "POST", PATH, {"Content-Length": "many"}) == 411
        assert raw(server, "POST", PATH, {"Transfer-Encoding": "chunked", "Content-Length": "1"}) == 411
        assert raw(server, "POST", PATH, {"Content-Length": str(BODY_BYTES_MAX + 1)}) == 413
        assert raw(server, "POST", PATH, {"Content-Length": "9" * 400}) == 413
        assert raw(server, "POST", PATH, {"Content-Length": "0"}) == 200


def test_a_caller_that_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(adapter._Handler, "timeout", 0.05)
    with listening() as server, socket.create_connection(server.socket.getsockname()[:2]) as silent:
        silent.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
        assert silent.recv(1000) == b""
        # Whoever speaks may take its time.
        monkeypatch.setattr(adapter._Handler, "timeout", 60)
        assert post_to_witness(server.url, b"x")[0] == 200


def test_too_many_at_once_are_turned_away(monkeypatch):
    monkeypatch.setattr(adapter, "CONNECTIONS_MAX", 1)
    inside, go_on = threading.Event(), threading.Event()

    def answer(body: bytes) -> tuple[int, bytes, str]:
        inside.set()
        go_on.wait()
        return 200, b"", "text/plain"

    with listening(answer) as server:
        first = threading.Thread(target=post_to_witness, args=(server.url, b"x"))
        first.start()
        inside.wait()
        with pytest.raises(CheckpointReadError, match="does not answer"):
            post_to_witness(server.url, b"x")
        go_on.set()
        first.join()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "example.com:80"])
def test_others_reach_it_only_if_that_is_asked_for(address: str):
    with pytest.raises(ConfigError, match="this machine only"):
        WitnessServer(address, lambda body: (200, b"", ""))
    WitnessServer("0.0.0.0:0", lambda body: (200, b"", ""), public=True).server_close()


def test_an_address_that_is_taken_is_told():
    with listening() as server, pytest.raises(ConfigError, match="cannot listen"):
        WitnessServer(server.url.removeprefix("http://"), lambda body: (200, b"", ""))


def test_an_address_of_the_longer_kind_is_written_in_brackets():
    with WitnessServer("[::1]:0", lambda body: (200, b"", "")) as server:
        assert server.url.startswith("http://[::1]:")


@pytest.mark.parametrize("address", ["", "8080", "host:", ":80", "host:70000", "host:-1", "host:x"])
def test_what_is_no_address_is_refused(address: str):
    with pytest.raises(ConfigError, match="no address"):
        parse_address(address)


def test_loopback_is_this_machine():
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("192.168.0.1") and not is_loopback("localhost.example.com")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x", "example.com", "http://", ""])
def test_only_http_leads_to_a_witness(url: str):
    with pytest.raises(ConfigError, match="no address of a witness"):
        post_to_witness(url, b"")


def test_nobody_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CheckpointReadError, match="does not answer"):
        post_to_witness(f"http://127.0.0.1:{port}", b"")


def test_nobody_is_followed_elsewhere(tmp_path: Path):
    with listening() as elsewhere:

        class Redirect(adapter._Handler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(307)
                self.send_header("Location", elsewhere.url + PATH)
                self.send_header("Content-Length", "0")
                self.end_headers()

        with listening() as server:
            server.RequestHandlerClass = Redirect
            assert post_to_witness(server.url, b"x")[0] == 307


HEADERS = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n"
TOO_LONG = BODY_BYTES_MAX + 1


def answered(answer: bytes) -> tuple[int, bytes, str]:
    """Ask somebody who answers with these bytes and is gone then."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            caller, _ = server.accept()
            with caller:
                while (said := caller.recv(1000)) and not said.endswith(b"body"):
                    pass
                caller.sendall(answer)

        thread = threading.Thread(target=speak)
        thread.start()
        try:
            return post_to_witness(f"http://127.0.0.1:{server.getsockname()[1]}", b"body")
        finally:
            thread.join()


def test_an_answer_is_read_to_its_end():
    assert answered(HEADERS.format(5).encode() + b"whole") == (200, b"whole", "text/plain")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
    assert answered(chunked) == (200, b"whole", "")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_answer_of_lines_may_end_with_its_connection(version: str):
    headers = f"HTTP/{version} {{}}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    assert answered(headers.format("200 OK").encode() + b"line\n") == (200, b"line\n", "text/plain")
    assert answered(headers.format("409 Conflict").encode() + b"7\n") == (409, b"7\n", "text/plain")
    for cut in (b"", b"half", b"line\nhalf"):
        with pytest.raises(CheckpointReadError, match="does not end with a line"):
            answered(headers.format("200 OK").encode() + cut)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (HEADERS.format(9).encode(), "cut off 9 bytes before its end"),
        (HEADERS.format(9).encode() + b"half", "cut off 5 bytes before its end"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/pl", "does not tell its length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", "does not answer"),
        (HEADERS.format(TOO_LONG).encode() + bytes(TOO_LONG), f"longer than {BODY_BYTES_MAX} bytes"),
    ],
    ids=["nothing", "half", "headers", "chunk", "long"],
)
def test_a_cut_answer_is_none(answer: bytes, why: str):
    with pytest.raises(CheckpointReadError, match=why):
        answered(answer)


def test_a_proxy_is_not_asked_for_what_is_here(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with listening() as server:
        assert post_to_witness(server.url, b"x")[0] == 200


def test_a_link_in_the_place_of_the_new_head_is_not_followed(tmp_path: Path):
    memory = WitnessFolder(str(tmp_path / "state"))
    memory.keep(HEAD)
    target = tmp_path / "target"
    target.write_text("mine")
    os.symlink(target, f"{next((tmp_path / 'state').glob('*.head'))}.new")
    with pytest.raises(CheckpointWriteError):
        memory.keep(HEAD)
    assert target.read_text() == "mine"
