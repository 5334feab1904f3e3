"""A real browser on a real server: what it asks of the network, and what it says on its console."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
#: A new browser may have to be read from the disk first, and a busy machine takes its time.
PATIENCE_MS = 30_000
#: Settled is a page that has drawn what it was told last: two frames after whatever it has to do at once.
_DRAWN = (
    "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
)
expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str:
    """Find the browser; a test without one is a failure, not a skip."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("there is no Chromium here: run `make setup-browser`")
    return found


@contextmanager
def a_browser() -> Iterator[Browser]:
    """Run a headless browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def aside(work: Callable[..., Any], *given: Any) -> Any:
    """Do something in a thread of its own: the browser's event loop runs in that of the tests."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *given).result()


def step(name: str) -> str:
    """Encode a name as one step of an address, as the page does."""
    return quote(name, safe="!~*'()").replace(".", "%2E")


@dataclass
class Visit:
    """One page and everything it did."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def go(self, route: str) -> None:
        """Go to a route of the dashboard."""
        self.page.goto(f"{self.base}/ui/#{route}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has its heading, and nothing is on its way to it."""
        self.page.evaluate(_DRAWN)
        self.page.wait_for_selector("main h1")
        self.page.wait_for_selector(".skeleton, .table-foot[role=status]", state="detached")
        self.page.evaluate(_DRAWN)
        self.page.wait_for_selector(".skeleton, .table-foot[role=status]", state="detached")

    def press(self, *keys: str) -> None:
        """Press keys one after the other; each is heard before the next."""
        for key in keys:
            self.page.keyboard.press(key)
            self.page.evaluate(_DRAWN)

    def at(self, name: str) -> Locator:
        """Find what the page marks for tests."""
        return self.page.get_by_test_id(name)

    @property
    def heading(self) -> Locator:
        """The heading of the page."""
        return self.page.locator("main h1")

    @property
    def dialog(self) -> Locator:
        """The dialog that is open."""
        return self.page.get_by_role("dialog")

    @property
    def route(self) -> str:
        """What the address says after the #."""
        return str(self.page.evaluate("() => location.hash")).removeprefix("#")

    def check(self) -> None:
        """Fail if anything went wrong that nobody sees."""
        assert self.errors == []
        assert self.foreign == []
        assert self.page.evaluate("() => window.__pwned") is None


@contextmanager
def visit(browser: Browser, served: Any, *, token: str | None = None, **context: Any) -> Iterator[Visit]:
    """Open a page that is signed in; everything but this server is out of reach, and noted."""
    with browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context}) as opened:
        page = opened.new_page()
        page.set_default_timeout(PATIENCE_MS)
        visited = Visit(page, served.url)
        page.on("pageerror", lambda error: visited.errors.append(str(error)))
        page.on("console", lambda said: visited.errors.append(said.text) if said.type == "error" else None)

        def gate(route: Any) -> None:
            if f"{urlsplit(route.request.url).scheme}://{urlsplit(route.request.url).netloc}" == served.url:
                route.fallback()
            else:
                visited.foreign.append(route.request.url)
                route.abort()

        opened.route("**/*", gate)
        try:
            page.goto(served.page if token is None else f"{served.url}/ui/#key={token}")
            visited.settle()
            yield visited
        finally:
            # What is still on its way is of no interest any more.
            opened.unroute_all(behavior="ignoreErrors")
