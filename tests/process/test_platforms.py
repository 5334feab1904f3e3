"""Hazard 16: what other platforms get: a sync that reaches the medium, or a clear refusal."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk

WITHOUT_LOCKS = """
import sys
sys.modules["fcntl"] = None
import holdfast.bootstrap
from holdfast.domain.errors import ConfigError
with holdfast.bootstrap.open("memory:") as service:
    service.create_checkpoint("WF", {"a": 1})
try:
    holdfast.bootstrap.open(sys.argv[1])
except ConfigError as error:
    print(error)
"""


def test_hazard_16_macos_syncs_to_the_medium_and_not_to_the_drives_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda handle, command: calls.append((handle, command)))
    door = Disk(str(tmp_path))
    handle = door.open("file", write=True, create=True)
    door.sync(handle)
    door.sync_folder("")
    assert [command for _, command in calls] == [51, 51] and calls[0][0] == handle
    assert door.sync_all() is False
    os.close(handle)


def test_hazard_16_a_platform_without_file_locks_is_refused_in_words(tmp_path: Path) -> None:
    """As on Windows: other stores work, this one says why it does not."""
    command = [sys.executable, "-c", WITHOUT_LOCKS, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "file locks" in done.stdout and not (tmp_path / "store").exists()
