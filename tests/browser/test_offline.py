"""Nothing comes from elsewhere, and there is little of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Response, expect

from tests.browser.browsing import visit
from tests.browser.test_pages import PAGES
from tests.browser.told import tell
from tests.named_tests import ROOT

BYTES_MAX = 150_000
UI = ROOT / "src" / "holdfast" / "server" / "ui"


@dataclass
class Walk:
    """What came when somebody who had never been here looked at every page: bytes by file, and from where."""

    hosts: set[str] = field(default_factory=set)
    sent: dict[str, int] = field(default_factory=dict)
    home_bytes: int = 0

    def take(self, response: Response) -> None:
        """Note an answer; every file of the page comes compressed."""
        where = urlsplit(response.url)
        self.hosts.add(where.netloc)
        if where.path.startswith("/ui/"):
            assert response.headers["content-encoding"] == "gzip", where.path
            self.sent[where.path] = int(response.headers["content-length"])


@pytest.fixture(scope="module")
def walk(browser, small):
    """Look at every page once; `visit` lets nothing through but this server, and notes what asks for more."""
    walk = Walk()
    with visit(browser, small) as visited:
        visited.page.on("response", walk.take)
        session = visited.page.context.new_cdp_session(visited.page)
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        visited.page.reload()
        visited.settle()
        walk.home_bytes = sum(walk.sent.values())
        for route in PAGES:
            visited.go(route)
            expect(visited.page.locator("main .problem[role=alert]")).to_have_count(0)
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune").first.click()
        expect(visited.dialog).to_be_visible()
        visited.check()
    return walk


def test_everything_works_with_the_network_blocked(walk, small):
    assert walk.hosts == {urlsplit(small.url).netloc}


def test_nothing_in_the_files_names_another_server():
    named = {
        (path.name, found)
        for path in UI.rglob("*")
        if path.suffix in {".js", ".css", ".html", ".svg"} and "vendor" not in path.parts
        for found in re.findall(r"https?://[^\s\"'`<>)]+", path.read_text("utf-8"))
    }
    assert {found for found in named if "www.w3.org" not in found[1] and "127.0.0.1" not in found[1]} == set()


def test_a_first_visit_of_every_page_takes_little(walk):
    """What comes over the line, compressed as it was sent: every file of the page."""
    whole = sum(walk.sent.values())
    tell("weight", {"home_bytes": walk.home_bytes, "all_pages_bytes": whole, "files": len(walk.sent)})
    assert len(walk.sent) > 20
    assert walk.home_bytes < whole < BYTES_MAX
