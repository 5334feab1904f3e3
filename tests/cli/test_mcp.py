from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.cli.conftest import Run
from tests.cli.running import environment, heeded


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that says nothing and leaves."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("options", [(), ("--write",), ("--scope", "read"), ("--scope", "append", "--write")])
def test_the_server_ends_with_its_input(run: Run, store: Path, options: tuple[str, ...]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    result = run("mcp", "--store", store, *options)
    assert (result.exit_code, result.out, result.err) == (0, "", "")
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_scope_that_writes_needs_to_be_asked_for_twice(run: Run, store: Path) -> None:
    result = run("mcp", "--store", store, "--scope", "append")
    assert result.exit_code == 2 and "--scope append needs --write as well" in result.err


def test_no_store_is_made(run: Run, tmp_path: Path) -> None:
    result = run("mcp", "--store", tmp_path / "nothing", "--write")
    assert result.exit_code == 10 and not (tmp_path / "nothing").exists()


@pytest.mark.usefixtures("silent")
def test_an_ignored_interrupt_stays_ignored(run: Run, store: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run("mcp", "--store", store).exit_code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_at_once_with_its_trail_closed(
    store: Path, number: signal.Signals, exit_code: int
) -> None:
    words = [sys.executable, "-m", "holdfast", "mcp", "--store", str(store)]
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
        '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"show_checkpoint",'
        '"arguments":{"checkpoint":"WF-1"}}}\n'
    )
    with heeded(signal.SIGINT):
        server = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(store.parent), text=True
        )
    with server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(hello)
        server.stdin.flush()
        assert "protocolVersion" in server.stdout.readline()
        assert "WF-1@3" in server.stdout.readline()
        server.send_signal(number)
        assert server.wait(60) == exit_code
    with holdfast.open(str(store)) as service:
        told = [entry for entry in service.audit.query_events() if entry.session_id.startswith("mcp-")]
    assert [str(entry.type) for entry in told] == ["SESSION_STARTED", "STATE_READ", "SESSION_CLOSED"]
    assert told[1].agent == "t"
