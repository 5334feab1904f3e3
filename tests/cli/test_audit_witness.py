from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.crypto.signing import SigningKey
from holdfast.adapters.witness import post_to_witness
from holdfast.cli.exits import Exit
from tests.cli.conftest import Result, Run
from tests.cli.test_audit_anchor import forget_heads
from tests.process.witnesses import request
from tests.trails import LOG_KEY, WITNESS_KEY, make_log

ONE = make_log(12, (4, 8, 12))
OTHER = make_log(12, (4, 8, 12), closes={5})


@pytest.fixture
def ask(run: Run, monkeypatch):
    """Ask a witness once, over its standard input."""
    WITNESS_KEY.save(Path("w.key"))

    def call(data: bytes, *args: object) -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return run("audit", "witness", "--key", "w.key", "--log", LOG_KEY.key, "--state", "seen", *args)

    return call


def test_growth_is_signed_and_nothing_else(ask):
    assert ask(request(ONE, 0, 0)).out.startswith(f"\u2014 {WITNESS_KEY.key.name} ")
    told = ask(request(ONE, 4, 1), "--json").data
    assert told["vkey"] == str(WITNESS_KEY.key) and told["cosignature"].startswith("\u2014 ")
    conflict = ask(request(ONE, 4, 2))
    assert conflict.exit_code == Exit.REFUSED and "proof from size 8" in conflict.err
    assert ask(request(OTHER, 8, 2)).exit_code == Exit.NOT_VERIFIED
    assert ask(request(ONE, 8, 2)).exit_code == Exit.DONE


def test_who_asks_wrongly_is_refused(ask):
    assert ask(b"hello").exit_code == Exit.REFUSED
    assert ask(b"").exit_code == Exit.REFUSED
    assert "404" in ask(request(ONE, 0, 0).replace(b"example.com/audit", b"example.com/adult")).err


def test_a_key_is_made_if_a_name_is_given(run: Run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(request(ONE, 0, 0))))
    args = ("audit", "witness", "--key", "new.key", "--log", LOG_KEY.key, "--state", "seen")
    assert run(*args).exit_code == Exit.NOT_FOUND
    result = run(*args, "--name", "witness.example/new")
    assert result.exit_code == 0
    key = SigningKey.load(Path("new.key")).key
    assert key.name == "witness.example/new" and str(key) in result.err


def test_the_key_of_a_log_is_not_taken(run: Run):
    LOG_KEY.save(Path("log.key"))
    result = run("audit", "witness", "--key", "log.key", "--log", LOG_KEY.key, "--state", "seen")
    assert result.exit_code == Exit.UNEXPECTED and "cosignatures" in result.err


def test_others_are_let_in_only_if_told(ask):
    assert "--public" in ask(b"", "--listen", "0.0.0.0:0").err
    assert ask(b"", "--public").exit_code == Exit.USAGE


@contextmanager
def listening(folder: Path, log: str, *, state: str = "seen") -> Iterator[tuple[str, int]]:
    """Run the command in a process of its own; answer its address and its process."""
    words = ["audit", "witness", "--key", "w.key", "--log", log, "--state", state, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1], process.pid
        finally:
            process.terminate()
            process.wait()


def grow(store: Path) -> None:
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-9", {"more": True}, force=True)


@pytest.mark.sweep
def test_a_store_is_witnessed_over_http_until_it_is_put_back(
    run: Run, signed: tuple[Path, str], tmp_path: Path
):
    store, key = signed
    WITNESS_KEY.save(Path("w.key"))
    old = tmp_path / "old"
    shutil.copytree(store, old)
    with listening(tmp_path, key) as (url, _):
        for _ in range(3):
            grow(store)
            told = run("audit", "anchor", "--witness", url, "--store", store, "--json")
            assert (told.exit_code, told.data["witnesses"]) == (0, [WITNESS_KEY.key.name])
    given = ("--key", key, "--witness", WITNESS_KEY.key)
    verified = run("audit", "verify", *given, "--store", store, "--json").data
    assert (verified["verdict"], verified["level"]) == ("ok", "witness")
    assert verified["witnessed_size"] == told.data["size"]
    # What the witness remembers outlives its process, and the key's own memory.
    forget_heads(tmp_path)
    with listening(tmp_path, key) as (url, _):
        assert "another history" in run("audit", "anchor", "--witness", url, "--store", old).err
        for _ in range(9):
            grow(old)
        result = run("audit", "anchor", "--witness", url, "--store", old)
        assert result.exit_code == Exit.NOT_VERIFIED and "another history" in result.err
        forget_heads(tmp_path)
        assert run("audit", "anchor", "--witness", url, "--store", store).exit_code == 0


@pytest.mark.sweep
def test_a_witness_that_was_killed_goes_on_where_it_was(tmp_path: Path):
    WITNESS_KEY.save(tmp_path / "w.key")
    with listening(tmp_path, str(LOG_KEY.key)) as (url, process):
        assert post_to_witness(url, request(ONE, 0, 1))[0] == 200
        os.kill(process, signal.SIGKILL)
    with listening(tmp_path, str(LOG_KEY.key)) as (url, _):
        assert post_to_witness(url, request(OTHER, 0, 1)) == (409, b"8\n", "text/x.tlog.size")
        assert post_to_witness(url, request(OTHER, 8, 1))[0] == 409
        assert post_to_witness(url, request(OTHER, 8, 2))[0] == 422
        assert post_to_witness(url, request(ONE, 8, 2))[0] == 200


@pytest.mark.sweep
def test_a_witness_without_its_memory_would_be_fooled(tmp_path: Path):
    WITNESS_KEY.save(tmp_path / "w.key")
    for log, state in ((ONE, "seen"), (OTHER, "other")):
        with listening(tmp_path, str(LOG_KEY.key), state=state) as (url, _):
            assert post_to_witness(url, request(log, 0, 1))[0] == 200
