from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "held", retain=False)
    return tmp_path / "held"


def test_a_hold_that_is_not_there_cannot_be_released(run: Run, place: Path):
    assert run("hold", "release", "12345678", "--reason", "r", "--store", place).exit_code == Exit.NOT_FOUND
