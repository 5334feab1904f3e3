"""What Holdfast exports is verified by a program that shares no code with it, and what is forged is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.domain.merkle import inclusion_proof
from holdfast.domain.tiles import TileHashes
from holdfast.domain.tlogproof import TlogProof
from tests.trails import LOG_KEY, Log, make_log, write_export

PROGRAM = Path(__file__).with_name("independent_verifier.py")
SMALL = make_log(12, (12,), closes=[11])
LARGE = make_log(700, (700,), sessions=5)


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the program where Holdfast cannot be imported."""
    script = f"import sys; sys.modules['holdfast'] = None; sys.argv = sys.argv[1:]; {RUN}"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "PYTHON"))}
    command = [sys.executable, "-c", script, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


RUN = "import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"


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


def test_the_program_knows_nothing_of_holdfast() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in imports if "holdfast" in line or "tests" in line]


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
