"""A browser for all tests of this room, and stores that are filled once and copied for each module."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import holdfast
from tests.browser import stores
from tests.browser.browsing import Visit, a_browser, aside, visit
from tests.server.served import Running, running

CHECKPOINTS = 10_000
FILLERS: dict[str, Callable[[Path], None]] = {
    "empty": lambda folder: holdfast.open(f"file:{folder}/store").close(),
    "small": lambda folder: stores.small(f"file:{folder}/store", folder / "keys"),
    "hostile": lambda folder: stores.hostile(f"file:{folder}/store"),
    "large": lambda folder: stores.large(f"file:{folder}/store", CHECKPOINTS),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser; each test has a context of its own in it."""
    with a_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Answer a folder with a store of a kind, which all processes of the run share: copy it to change it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def fill(kind: str) -> Path:
        folder, done = shared / f"browser-{kind}", shared / f"browser-{kind}.done"
        with (shared / f"browser-{kind}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir()
                aside(FILLERS[kind], folder)
                done.touch()
        return folder

    return fill


@pytest.fixture(scope="session")
def copied(filled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Answer a folder with a copy of a store of a kind, `store`, and its keys beside it."""

    def copy(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        return Path(shutil.copytree(filled(kind), folder, dirs_exist_ok=True))

    return copy


@pytest.fixture(scope="module")
def empty(copied: Callable[[str], Path]) -> Iterator[Running]:
    """A server of a store with nothing in it."""
    yield from _served(copied("empty"))


@pytest.fixture(scope="module")
def small(copied: Callable[[str], Path]) -> Iterator[Running]:
    """A server of a store with something of everything."""
    yield from _served(copied("small"))


@pytest.fixture(scope="module")
def hostile(copied: Callable[[str], Path]) -> Iterator[Running]:
    """A server of a store full of text that a careless page would obey."""
    yield from _served(copied("hostile"))


@pytest.fixture(scope="module")
def large(filled: Callable[[str], Path]) -> Iterator[Running]:
    """A server of a store with one run of ten thousand checkpoints."""
    yield from _served(filled("large"), audit=False)


def _served(folder: Path, **more: Any) -> Iterator[Running]:
    with running(f"file:{folder}/store", signing_key=str(folder / "keys"), actor="ann", **more) as served:
        yield served


@pytest.fixture
def looking(browser: Browser, small: Running) -> Iterator[Visit]:
    """Somebody who looks at the small store, and sees nothing go wrong."""
    with visit(browser, small) as visited:
        yield visited
        visited.check()
