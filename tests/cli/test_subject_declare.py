from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "store", retain=False)
    return tmp_path / "store"


def test_a_workflow_that_is_not_there_is_about_nobody(run: Run, place: Path):
    assert run("subject", "declare", "WF-9", "ann", "--store", place).exit_code == Exit.NOT_FOUND
