"""Looks at the built documentation site: nothing from elsewhere, no dead link, every public name, a search.

`python -m tests.built_site build/site` is the end of `make docs`. It says what is wrong, and ends with 1.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from playwright.sync_api import Browser, Route, TimeoutError

import holdfast
from tests.browser.browsing import PATIENCE_MS, a_browser

#: What a browser fetches by itself. Other links (`canonical`, `next`) are only told.
_FETCHED = {
    *{("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src")},
    *{("source", "srcset"), ("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src")},
}
_TOLD = {"canonical", "next", "prev", "alternate", "author", "license"}
_STYLED = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
#: Pages on which the browser looks at what is asked for: each kind there is.
LOOKED_AT = ("index", "tutorial", "architecture", "reference/api/service", "reference/cli", "404")
_PRINTED = re.compile(rb"/Type\s*/Page[^s]")


class Page(HTMLParser):
    """What a page fetches, where it links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self._is_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._is_style = tag == "style"
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        self.fetched += [value for name, value in given.items() if (tag, name) in _FETCHED]
        self.fetched += list(_in_style(given.get("style", "")))
        if tag == "link" and given.get("rel") not in _TOLD:
            self.fetched.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self._is_style:
            self.fetched += _in_style(data)


def _in_style(text: str) -> Iterator[str]:
    return (first or second for first, second in _STYLED.findall(text))


def fetched_elsewhere(folder: Path) -> list[str]:
    """Name what pages and style sheets fetch from another host."""
    found = []
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.css")]):
        text = path.read_text(encoding="utf-8")
        asked = Page(text).fetched if path.suffix == ".html" else _in_style(text)
        found += [f"{path.relative_to(folder)} fetches {url}" for url in asked if _ELSEWHERE.match(url)]
    return found


def dead_links(folder: Path) -> list[str]:
    """Name links, and what is fetched, between pages that lead nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for url in {*page.links, *page.fetched}:
            if (
                _ELSEWHERE.match(url)
                or url.startswith(("mailto:", "data:", "javascript:"))
                or path.name == "404.html"
            ):
                continue
            place, anchor = urldefrag(unquote(url.partition("?")[0]))
            target = (path.parent / place).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                found.append(f"{path.relative_to(folder)} leads to {url}")
    return sorted(found)


def missing_names(folder: Path) -> list[str]:
    """Name what is public and not in the reference."""
    ids = {one for path in folder.glob("reference/api/*.html") for one in Page(path.read_text("utf-8")).ids}
    return [name for name in holdfast.__all__ if name != "__version__" and f"holdfast.{name}" not in ids]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Let a browser leave a page before all of it has come."""
        with suppress(ConnectionError):
            super().copyfile(source, outputfile)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def seen_in(browser: Browser, folder: Path, patience_ms: int = PATIENCE_MS) -> list[str]:
    """Open pages where no other host can be reached; answer what went wrong."""
    with served(folder) as address:
        found = [*_looked_at(browser, address), *_printed(browser, address)]
        return [*found, *_searched(browser, address, patience_ms)]


def _looked_at(browser: Browser, address: str) -> list[str]:
    wrong: list[str] = []

    def ask(route: Route) -> None:
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            wrong.append(f"a page asks for {route.request.url}")
            route.abort()

    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
        context.route("**/*", ask)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(f"a script fails: {error}"))
        for name in LOOKED_AT:
            page.goto(f"{address}/{name}.html", wait_until="load")
            shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
            is_dark = sum(map(int, re.findall(r"\d+", shown)[:3])) < 3 * 128
            if is_dark != (scheme == "dark"):
                wrong.append(f"{name} is not {scheme}: {shown}")
        context.close()
    return wrong


def _searched(browser: Browser, address: str, patience_ms: int) -> list[str]:
    page = browser.new_page()
    page.set_default_timeout(patience_ms)
    page.goto(f"{address}/index.html", wait_until="load")
    try:
        page.get_by_role("button", name="Search").first.click()
        page.get_by_role("combobox", name="Search").fill("witness")
        page.locator("a[href*='audit.html?h=witness']").first.wait_for(state="attached")
    except TimeoutError:
        return ["search does not find the page on witnesses"]
    finally:
        page.close()
    return []


def _printed(browser: Browser, address: str) -> list[str]:
    page = browser.new_page()
    page.goto(f"{address}/runbook.html", wait_until="load")
    sheets = len(_PRINTED.findall(page.pdf(prefer_css_page_size=True)))
    page.close()
    return [] if sheets == 1 else [f"the runbook prints on {sheets} sheets"]


def main(folder: Path) -> int:
    """Look at a site."""
    wrong = [f"{name} is not in the reference" for name in missing_names(folder)]
    wrong += [*fetched_elsewhere(folder), *dead_links(folder)]
    with a_browser() as browser:
        wrong += seen_in(browser, folder)
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    pages = sum(1 for _ in folder.rglob("*.html"))
    sys.stdout.write(f"{pages} pages at {folder}/index.html, {len(wrong)} things wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
