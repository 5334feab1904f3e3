from __future__ import annotations

import io
import shutil
import stat
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.crypto.signing import SigningKey
from holdfast.cli.exits import Exit
from holdfast.domain.note import COSIGNATURE, parse_note
from holdfast.domain.witness import parse_add_checkpoint
from tests.cli.conftest import Run

WITNESS = "witness.example/w1"


def grow(store: Path) -> None:
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-9", {"more": True}, force=True)


@pytest.fixture
def witness(run: Run, signed: tuple[Path, str]) -> tuple[str, ...]:
    """Arguments that run a witness once, which knows the log; its key is made."""
    SigningKey.generate(WITNESS, COSIGNATURE).save(Path("w.key"))
    Path("log.vkey").write_text(f"{signed[1]}\n")
    return ("audit", "witness", "--key", "w.key", "--log", "log.vkey", "--state", "seen")


def test_a_key_is_made_at_first_use_and_told(run: Run, store: Path):
    told = run("audit", "anchor", "--store", store, "--json").data
    place = Path(told["private_key"])
    assert stat.S_IMODE(place.stat().st_mode) == 0o600 and not place.is_relative_to(store)
    assert str(SigningKey.load(place).key) == told["keys"][0]
    assert told["size"] and told["checkpoint"].startswith(f"{told['origin']}\n{told['size']}\n")
    again = run("audit", "anchor", "--store", store)
    assert told["keys"][0] in again.out and str(place) in again.err


def test_a_head_that_nothing_followed_is_not_signed_again(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    sizes = [run("audit", "anchor", "--store", store, "--json").data["size"] for _ in range(2)]
    assert sizes[0] == sizes[1]
    grow(store)
    assert run("audit", "anchor", "--store", store, "--json").data["size"] > sizes[1]


def test_a_second_key_is_told(run: Run, signed: tuple[Path, str], monkeypatch, tmp_path: Path):
    assert "needs all of them" not in run("audit", "anchor", "--store", signed[0]).err
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    assert run("audit", "verify", "--store", signed[0]).exit_code == Exit.DONE
    assert "needs all of them" in run("audit", "anchor", "--store", signed[0]).err


def forget_heads(tmp_path: Path) -> None:
    """Take away what the keys remember of heads that they signed."""
    heads = list((tmp_path / "config").rglob("*.head"))
    assert heads
    for path in heads:
        path.unlink()


def test_a_store_that_was_put_back_is_not_signed(run: Run, signed: tuple[Path, str], tmp_path: Path):
    store, _ = signed
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    grow(store)
    assert run("audit", "anchor", "--store", store).exit_code == 0
    result = run("audit", "anchor", "--store", copy)
    assert result.exit_code == Exit.NOT_VERIFIED and "no head is signed" in result.err


def test_a_pin_follows_the_log_and_never_goes_back(run: Run, signed: tuple[Path, str], tmp_path: Path):
    store, _ = signed
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    assert "pinned       in pin" in run("audit", "anchor", "--pin", "pin", "--store", store).out
    first = Path("pin").read_bytes()
    grow(store)
    assert run("audit", "anchor", "--pin", "pin", "--store", store).exit_code == 0
    second = Path("pin").read_bytes()
    assert second != first and parse_note(second)
    # Another history from the same beginning, where the key was made to forget.
    for _ in range(4):
        grow(copy)
    forget_heads(tmp_path)
    result = run("audit", "anchor", "--pin", "pin", "--store", copy)
    assert result.exit_code == Exit.NOT_VERIFIED and "not one of this log" in result.err
    assert Path("pin").read_bytes() == second


def test_a_head_that_is_not_ours_is_not_gone_on_from(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    for path in (store / "audit" / "log" / "heads").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\n1", 1))
    grow(store)
    assert run("audit", "anchor", "--store", store).exit_code == Exit.NOT_VERIFIED


@pytest.mark.sweep
def test_a_witness_is_asked_by_files(run: Run, signed: tuple[Path, str], witness, monkeypatch):
    store, key = signed
    for _ in range(2):
        grow(store)
        assert run("audit", "anchor", "--request", "request", "--store", store).exit_code == 0
        answer = run_with_input(run, monkeypatch, Path("request").read_bytes(), *witness)
        assert answer.exit_code == 0, answer.err
        Path("answer").write_text(answer.out)
        told = run("audit", "anchor", "--cosignature", "answer", "--store", store, "--json")
        assert (told.exit_code, told.data["witnesses"]) == (0, [WITNESS])
    vkey = str(SigningKey.load(Path("w.key")).key)
    given = ("--key", key, "--witness", vkey)
    verified = run("audit", "verify", *given, "--store", store, "--json")
    assert (verified.exit_code, verified.data["level"]) == (0, "witness")
    # The second request goes on from what the witness had signed.
    assert parse_add_checkpoint(Path("request").read_bytes()).old_size > 0
    assert run("audit", "verify", *given, "--quorum", 2, "--store", store).exit_code == Exit.INCONCLUSIVE


def run_with_input(run: Run, monkeypatch, data: bytes, *args: object):
    """Call the command line with something on its standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    return run(*args)


def test_a_cosignature_by_another_key_is_not_taken(run: Run, signed: tuple[Path, str], witness, monkeypatch):
    store, _ = signed
    run("audit", "anchor", "--request", "request", "--store", store)
    answer = run_with_input(run, monkeypatch, Path("request").read_bytes(), *witness)
    Path("answer").write_text(answer.out)
    other = SigningKey.generate(WITNESS, COSIGNATURE).key
    taken = ("audit", "anchor", "--cosignature", "answer", "--store", store)
    assert run(*taken, "--witness-key", other).exit_code == Exit.NOT_VERIFIED
    vkey = str(SigningKey.load(Path("w.key")).key)
    assert run(*taken, "--witness-key", vkey).exit_code == 0


def test_a_request_is_printed_for_a_pipe(run: Run, signed: tuple[Path, str]):
    out = run("audit", "anchor", "--request", "-", "--old-size", 1, "--store", signed[0]).out
    assert parse_add_checkpoint(out.encode()).old_size == 1


def test_a_witness_that_does_not_answer_is_unreachable(run: Run, signed: tuple[Path, str]):
    result = run("audit", "anchor", "--witness", "http://127.0.0.1:1", "--store", signed[0])
    assert result.exit_code == Exit.UNREACHABLE and "does not answer" in result.err
    assert run("audit", "anchor", "--witness", "nowhere", "--store", signed[0]).exit_code == Exit.USAGE


def test_a_pin_that_is_up_to_date_is_left_alone(run: Run, signed: tuple[Path, str]):
    anchor = ("audit", "anchor", "--pin", "pin", "--store", signed[0])
    run(*anchor)
    before = Path("pin").stat()
    assert run(*anchor).exit_code == 0
    assert Path("pin").stat().st_ino == before.st_ino


def test_a_cosignature_needs_a_head_to_be_for(run: Run, store: Path):
    Path("answer").write_text("\u2014 witness.example/w1 AAAAAAAA\n")
    result = run("audit", "anchor", "--cosignature", "answer", "--store", store)
    assert result.exit_code != 0 and "Traceback" not in result.err
