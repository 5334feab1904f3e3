from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "store", retain=False)
    return tmp_path / "store"


def test_who_is_not_known_gets_nothing(run: Run, place: Path, tmp_path: Path):
    result = run("subject", "export", "nobody", "--out", tmp_path / "out", "--store", place)
    assert result.exit_code == Exit.NOT_FOUND
    assert not (tmp_path / "out").exists()
