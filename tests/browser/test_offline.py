"""Nothing comes from elsewhere, and there is little of it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.browsing import visit
from tests.browser.test_pages import PAGES
from tests.browser.told import tell
from tests.named_tests import ROOT

BYTES_MAX = 150_000
UI = ROOT / "src" / "holdfast" / "server" / "ui"


def test_everything_works_with_the_network_blocked(browser, small):
    """`visit` lets nothing through but this server, and notes whatever asks for more."""
    with visit(browser, small) as visited:
        hosts = set[str]()
        visited.page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        for route in PAGES:
            visited.go(route)
            expect(visited.page.locator("main .problem[role=alert]")).to_have_count(0)
        assert hosts == {urlsplit(small.url).netloc}
        visited.check()


def test_nothing_in_the_files_names_another_server():
    named = {
        (path.name, found)
        for path in UI.rglob("*")
        if path.suffix in {".js", ".css", ".html", ".svg"} and "vendor" not in path.parts
        for found in re.findall(r"https?://[^\s\"'`<>)]+", path.read_text("utf-8"))
    }
    assert {found for found in named if "www.w3.org" not in found[1] and "127.0.0.1" not in found[1]} == set()


def test_a_first_visit_of_every_page_takes_little(browser, small):
    """What comes over the line, compressed as it was sent: every file of the page."""
    with visit(browser, small) as visited:
        sent: dict[str, int] = {}

        def take(response):
            path = urlsplit(response.url).path
            if path.startswith("/ui/"):
                assert response.headers["content-encoding"] == "gzip", path
                sent[path] = int(response.headers["content-length"])

        visited.page.on("response", take)
        # As if nobody had been here: what the browser kept is not used.
        session = visited.page.context.new_cdp_session(visited.page)
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        visited.page.reload()
        visited.settle()
        home = sum(sent.values())
        for route in PAGES:
            visited.go(route)
        visited.go("/storage")
        visited.page.get_by_role("button", name="Preview a prune").first.click()
        expect(visited.dialog).to_be_visible()
        visited.check()
    figures = {"home_bytes": home, "all_pages_bytes": sum(sent.values()), "files": len(sent)}
    tell("weight", figures)
    assert len(sent) > 20
    assert home < sum(sent.values()) < BYTES_MAX
