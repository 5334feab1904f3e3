"""A store of each kind, filled in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.places import KINDS, Place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, fast_folder: Path) -> Place:
    return Place(request.param, fast_folder)
