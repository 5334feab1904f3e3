"""What a real store exports is verified by programs that are not ours, with the network off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import test_go_verifier
from tests.compliance.openings import open_service

PROGRAM = Path(__file__).parents[1] / "independent_verifier.py"
#: Run it where Holdfast cannot be imported, and where whoever asks for a socket is stopped.
ALONE = """
import runpy, sys
sys.modules["holdfast"] = None
def stop(event, arguments):
    if event.startswith("socket."):
        raise SystemExit(f"the network was asked for: {event}")
sys.addaudithook(stop)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

go_verifier = test_go_verifier.verifier


def verify_alone(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "PYTHON"))}
    command = [sys.executable, "-c", ALONE, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


@pytest.fixture
def export(url: str, tmp_path: Path) -> tuple[Path, str]:
    """Export a store of three hundred entries; answer the folder and the public key."""
    with open_service(url) as service:
        for n in range(300):
            service.append_event(f"WF-{n % 3}", "SAID", {"n": n})
        service.audit.keeper.anchor(create_key=True)
        service.audit.export(tmp_path / "export")
        [key] = service.audit.keeper.keys()
    return tmp_path / "export", str(key)


def test_an_export_verifies_without_holdfast_and_without_a_network(export):
    folder, key = export
    result = verify_alone(folder, key)
    assert result.returncode == 0, result.stderr
    assert " entries of " in result.stdout


def test_an_export_with_one_changed_entry_does_not(export):
    folder, key = export
    bundle = folder / "tile" / "entries" / "000"
    bundle.write_bytes(bundle.read_bytes().replace(b'"WF-1"', b'"WF-9"', 1))
    assert verify_alone(folder, key).returncode == 1


@pytest.mark.campaign
def test_an_export_verifies_with_a_program_that_is_not_python(export, go_verifier, tmp_path):
    folder, key = export
    result = test_go_verifier.run([str(go_verifier), str(folder), key], tmp_path)
    assert result.returncode == 0, result.stderr
