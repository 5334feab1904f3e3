"""Where the stores of these tests are, and their keys."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/store" if request.param == "file" else f"sqlite:{tmp_path}/store.db"


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the keys of a test outside of its store, and away from everybody else's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "holdfast" / "keys"
