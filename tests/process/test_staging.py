"""Writers that are killed in the middle of a large value, while a server has the store open: an erasure
leaves nothing of theirs, and takes nothing from one that lives."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.application.service import CheckpointService
from tests.process import staging

ROOT = Path(__file__).parents[2]
ERASED, OTHER = "WF-erased", "WF-other"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CheckpointService]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with holdfast.open(str(tmp_path / "store"), session="server") as service:
            # Their first state is a file by itself: what is too large for the journal is staged as a whole.
            for workflow_id in (ERASED, OTHER):
                service.append_event(workflow_id, "BEGUN", {})
            yield service


def writer(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.process.staging", str(tmp_path / "store"), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def marked(tmp_path: Path) -> list[str]:
    """Name the files that hold something of what the writer said."""
    files = (path for path in (tmp_path / "store").rglob("*") if path.is_file())
    mark = staging.MARK.encode()
    return [str(path.relative_to(tmp_path)) for path in files if mark in path.read_bytes()]


@pytest.mark.parametrize("moment", ["staging", "placed"])
@pytest.mark.parametrize("kind", ["value", "values"])
def test_nothing_of_what_a_killed_writer_wrote_survives_an_erasure(
    server: CheckpointService, tmp_path: Path, kind: str, moment: str
) -> None:
    with writer(tmp_path, ERASED, kind, moment) as killed:
        assert killed.wait() == -signal.SIGKILL
    assert len(marked(tmp_path)) == 1
    server.erasure.workflow(ERASED, reason="request 4")
    assert marked(tmp_path) == []
    assert server._engine.kit.store.head(OTHER).event_seq == 1


@pytest.mark.parametrize("kind", ["value", "values"])
def test_a_living_writer_loses_nothing_to_an_erasure(
    server: CheckpointService, tmp_path: Path, kind: str
) -> None:
    with writer(tmp_path, ERASED, kind, "staging") as killed:
        assert killed.wait() == -signal.SIGKILL
    with writer(tmp_path, OTHER, kind, "waiting") as living:
        assert living.stdout is not None and living.stdout.readline() == "staging\n"
        assert len(marked(tmp_path)) == 2
        server.erasure.workflow(ERASED, reason="request 4")
        assert len(marked(tmp_path)) == 1
        living.communicate("go on\n")
        assert living.returncode == 0
    restored = server.load_latest(OTHER)
    assert restored is not None and restored.context == staging.state(kind)
    assert [one for one in server._engine.kit.store.check() if one.place.startswith("leftovers")] == []
