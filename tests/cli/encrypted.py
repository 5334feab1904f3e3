"""An encrypted store for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, fill
from tests.encrypted import OLD_KEY

VARIABLE = "TEST_ENCRYPTION_KEY"
KEY = f"env:{VARIABLE}"


def use_key(monkeypatch: pytest.MonkeyPatch, key: bytes = OLD_KEY) -> None:
    """Configure a key."""
    monkeypatch.setenv(VARIABLE, key.hex())
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEY", KEY)


def encrypted_store(run: Run, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Make an encrypted store with two workflows; its key stays configured."""
    use_key(monkeypatch)
    place = folder / "encrypted"
    assert run("init", "--encrypt", "--store", place).exit_code == 0
    fill(place, encryption_key=KEY)
    return place
