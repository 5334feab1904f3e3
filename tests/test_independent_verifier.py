"""What Holdfast exports is verified by a program that shares no code with it, and what is forged is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.adapters.crypto.signing import verify
from holdfast.config import Config
from holdfast.domain.merkle import inclusion_proof
from holdfast.domain.tiles import TileHashes
from holdfast.domain.tlogproof import TlogProof
from tests.independent_verifier import is_signed
from tests.trails import LOG_KEY, Log, make_log, write_export

PROGRAM = Path(__file__).with_name("independent_verifier.py")
SMALL = make_log(12, (12,), closes=[11])
LARGE = make_log(700, (700,), sessions=5)


def offline() -> list[str]:
    """Answer what takes the network away from a command, where that is allowed."""
    command = ["unshare", "--net"]
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return command if tried.returncode == 0 else []


OFFLINE = offline()


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the program with the standard library alone: no packages, no settings, and no network."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "PYTHON"))}
    command = [*OFFLINE, sys.executable, "-I", "-S", str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


def proof_of(log: Log, index: int) -> bytes:
    size = len(log.lines)
    hashes = TileHashes(size, lambda tile: log.tiles.get(tile.path))
    return TlogProof(index, inclusion_proof(index, size, hashes), log.heads[-1]).encode()


@pytest.mark.parametrize("log", [SMALL, LARGE], ids=["small", "large"])
def test_an_export_is_verified_without_holdfast(log: Log, tmp_path: Path) -> None:
    write_export(log, tmp_path)
    (tmp_path / "entry.tlog-proof").write_bytes(proof_of(log, 7))
    (tmp_path / "entry.json").write_bytes(log.lines[7])
    result = run(tmp_path, str(LOG_KEY.key), "entry.tlog-proof", "entry.json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    size = len(log.lines)
    assert result.stdout.startswith(f"{size} entries of ") and f"entry 7 of {size} verified" in result.stdout


def test_without_a_key_the_program_tells_how_to_call_it(tmp_path: Path) -> None:
    result = run(tmp_path, cwd=tmp_path)
    assert result.returncode == 2 and result.stderr.startswith("usage: ")


def test_the_program_knows_nothing_of_holdfast() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "holdfast" in line or "tests" in line]


#: The first two of RFC 8032, 7.1: public key, message, signature.
PUBLISHED = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da0"
        "85ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), PUBLISHED)
def test_the_program_checks_published_signatures(key: str, message: str, signature: str) -> None:
    assert is_signed(bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature))


@given(st.binary(max_size=99), st.integers(0, 8 * 96 - 1))
def test_the_program_checks_signatures_as_another_does(message: bytes, bit: int) -> None:
    key, signature = LOG_KEY.key.public_key, LOG_KEY.sign(message)
    assert is_signed(key, message, signature)
    assert not is_signed(key, message + b"!", signature) and not is_signed(key, message, signature[:63])
    both = int.from_bytes(key + signature, "little") ^ 1 << bit
    changed = both.to_bytes(96, "little")
    assert is_signed(changed[:32], message, changed[32:]) == verify(changed[:32], message, changed[32:])


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Let the service work, and export its trail: all of it, and one session."""
    folder = tmp_path_factory.mktemp("exported")
    config = Config(
        store=str(folder / "store"), session="s-1", signing_key=str(folder / "key"), background=False
    )
    with holdfast.open(config=config) as service:
        for number in range(300):
            service.create_checkpoint("W", {"number": number})
        service.audit.log_event(
            "LOAN_DECIDED", session_id="a \u00e9", facts={"n": 1}, payload={"why": "because"}
        )
        service.audit.keeper.anchor(create_key=True)
        service.audit.log_event("LOAN_DECIDED", session_id="a \u00e9", payload={"why": "anyway"})
        service.audit.export(folder / "whole")
        service.audit.export(folder / "one", "a \u00e9")
        [key] = service.audit.keeper.keys()
    return folder, str(key)


def test_what_the_service_exports_is_verified_without_holdfast(exported: tuple[Path, str]) -> None:
    folder, key = exported
    result = run(folder / "whole", key, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("2 heads, 2 payloads\n") and ", 0 more are not covered" in result.stdout
    result = run(folder / "one", key, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("3 entries of one session verified") and "2 payloads" in result.stdout


REAL_FORGERIES = {
    "an entry": ("whole", "tile/entries/000", b"CHECKPOINT_CREATED", b"CHECKPOINT_CREATEX"),
    "a session": ("whole", "sessions/s-1/audit_trail.jsonl", b"CHECKPOINT_CREATED", b"CHECKPOINT_CREATEX"),
    "a payload": ("whole", "payloads/001.jsonl", b"because", b"becouse"),
    "a head": ("whole", "heads/*", b"\n\n", b"\nA\n"),
    "a tile": ("whole", "tile/0/000", b"", b"x"),
    "a line": ("one", "sessions/*/audit_trail.jsonl", b"LOAN", b"LOAM"),
    "its payload": ("one", "sessions/*/payloads.jsonl", b"because", b"becouse"),
    "a proof": ("one", "sessions/*/proofs/00000002.tlog-proof", b"index 3", b"index 2"),
}


@pytest.mark.parametrize("with_sums", [True, False], ids=["sums", "no sums"])
@pytest.mark.parametrize("what", REAL_FORGERIES)
def test_what_is_forged_in_a_real_export_is_found(
    what: str, with_sums: bool, exported: tuple[Path, str], tmp_path: Path
) -> None:
    folder, key = exported
    kind, pattern, old, new = REAL_FORGERIES[what]
    shutil.copytree(folder / kind, tmp_path / "export")
    path = sorted((tmp_path / "export").glob(pattern))[0]
    changed = path.read_bytes().replace(old, new, 1)
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    if not with_sums:
        (tmp_path / "export" / "SHA256SUMS").unlink()
    result = run(tmp_path / "export", key, cwd=tmp_path)
    assert result.returncode == 1 and result.stderr.startswith("WRONG"), result.stdout


def test_a_payload_that_is_there_twice_hides_none_that_is_missing(
    exported: tuple[Path, str], tmp_path: Path
) -> None:
    folder, key = exported
    shutil.copytree(folder / "one", tmp_path / "export")
    (tmp_path / "export" / "SHA256SUMS").unlink()
    [path] = (tmp_path / "export").glob("sessions/*/payloads.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[1] * len(lines))
    result = run(tmp_path / "export", key, cwd=tmp_path)
    assert result.returncode == 1 and "is there twice" in result.stderr


def test_the_key_of_somebody_else_verifies_nothing(tmp_path: Path) -> None:
    write_export(SMALL, tmp_path)
    other = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
    result = run(tmp_path, other, cwd=tmp_path)
    assert result.returncode == 1 and "did not sign" in result.stderr


def forge(folder: Path, path: str, old: bytes, new: bytes) -> None:
    data = (folder / path).read_bytes()
    assert old in data and len(old) == len(new)
    (folder / path).write_bytes(data.replace(old, new, 1))


FORGERIES = {
    "an entry": ("tile/entries/000.p/12", b"svc-7", b"svc-8", "not those that were signed"),
    "a tile": ("tile/0/000.p/12", SMALL.tiles["tile/0/000.p/12"][:4], b"abcd", "tiles of level 0"),
    "the size": ("checkpoint", b"\n12\n", b"\n11\n", "not by the log's key"),
    "the root": ("checkpoint", SMALL.heads[-1].split(b"\n")[2][:4], b"abcd", "not by the log's key"),
    "the log": ("checkpoint", b"example.com", b"example.org", "not by the log's key"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_is_forged_is_found(what: str, tmp_path: Path) -> None:
    write_export(SMALL, tmp_path)
    path, old, new, problem = FORGERIES[what]
    forge(tmp_path, path, old, new)
    result = run(tmp_path, str(LOG_KEY.key), cwd=tmp_path)
    assert result.returncode == 1 and problem in result.stderr


def test_a_part_that_is_missing_is_found(tmp_path: Path) -> None:
    for path in ("tile/0", "tile/1", "tile/entries"):
        folder = tmp_path / path.replace("/", "-")
        write_export(LARGE, folder)
        shutil.rmtree(folder / path)
        result = run(folder, str(LOG_KEY.key), cwd=tmp_path)
        assert result.returncode == 1 and "is not there" in result.stderr


def test_the_proof_of_another_entry_proves_nothing(tmp_path: Path) -> None:
    write_export(SMALL, tmp_path)
    (tmp_path / "entry.tlog-proof").write_bytes(proof_of(SMALL, 7))
    (tmp_path / "entry.json").write_bytes(SMALL.lines[8])
    result = run(tmp_path, str(LOG_KEY.key), "entry.tlog-proof", "entry.json", cwd=tmp_path)
    assert result.returncode == 1 and "is not in the signed tree" in result.stderr
