"""Pictures of the main pages for the documentation: made anew in every run, kept when WRITE_PICTURES=1."""

from __future__ import annotations

import os
import re
import struct

import pytest
from playwright.sync_api import expect

import holdfast
from tests.browser.browsing import step, visit
from tests.named_tests import ROOT

KEPT = ROOT / "docs" / "pictures"
MADE = ROOT / "build" / "browser" / "pictures"
BYTES_MAX = 150_000
WIDTH = 1280
#: Name of the picture: its page, its theme, its height, and what is ready when it can be taken.
PICTURES = {
    "home": ("/", "light", 760, "[data-testid=need]"),
    "run": ("/runs/kelp", "light", 860, "[data-testid=timeline][data-ready=true]"),
    "run-dark": ("/runs/kelp", "dark", 860, "[data-testid=timeline][data-ready=true]"),
    "graph": ("/runs/kelp?tab=graph", "light", 900, "[data-testid=graph-steps][data-ready=true]"),
    "checkpoint": (f"/checkpoints/{step('kelp@12')}", "light", 820, ".chosen pre"),
    "diff": (f"/diff/{step('kelp@8')}..{step('kelp@12')}", "light", 760, "[data-testid=changes]"),
    "audit": ("/audit", "light", 820, "[data-testid=verdict]"),
    "storage": ("/storage", "light", 860, "[data-testid=storage-figures]"),
}


@pytest.fixture(scope="module", autouse=True)
def at_work(small):
    """Let somebody be at work, so that there is something to be seen of that."""
    with holdfast.open(small.desk.kit.store.url, actor="bob", retain=False) as service:
        for number in range(3):
            service.create_checkpoint("harvest", {"baskets": number}, agent_id="reaper")
        service.acquire_lease("harvest", "worker-2", ttl_seconds=3600)
        yield


def size_of(picture):
    """Answer width and height of a PNG."""
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def taken(browser, served, name):
    """Take one picture."""
    route, scheme, height, ready = PICTURES[name]
    look = {
        "viewport": {"width": WIDTH, "height": height},
        "color_scheme": scheme,
        "reduced_motion": "reduce",
    }
    MADE.mkdir(parents=True, exist_ok=True)
    with visit(browser, served, timezone_id="UTC", locale="en-GB", **look) as visited:
        visited.go(route)
        if name == "audit":
            visited.at("verify-browser").click()
        expect(visited.page.locator(ready).first).to_be_visible()
        # Where the store lies on this machine is nobody's business.
        visited.page.evaluate(
            "() => { document.querySelector('.nav-foot').textContent = 'file:holdfast-store'; }"
        )
        visited.page.screenshot(path=MADE / f"{name}.png", animations="disabled", caret="hide", scale="css")
        visited.check()
    return MADE / f"{name}.png"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_taken_and_the_kept_one_is_of_the_same_size(browser, small, name):
    picture = taken(browser, small, name)
    assert size_of(picture) == (WIDTH, PICTURES[name][2])
    # A page that is blank packs into next to nothing.
    assert 15_000 < picture.stat().st_size < BYTES_MAX
    if os.environ.get("WRITE_PICTURES") == "1":
        KEPT.mkdir(exist_ok=True)
        (KEPT / picture.name).write_bytes(picture.read_bytes())
    assert size_of(KEPT / picture.name) == size_of(picture), "WRITE_PICTURES=1 makes it anew"
    assert (KEPT / picture.name).stat().st_size < BYTES_MAX


def test_every_kept_picture_is_one_that_a_test_takes():
    assert {path.stem for path in KEPT.glob("*.png")} == set(PICTURES)


def test_pages_that_show_pictures_show_such_as_are_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for name in re.findall(r"pictures/([\w.-]+\.png)", page.read_text("utf-8")):
            assert (KEPT / name).is_file(), f"{page.name}: {name}"
