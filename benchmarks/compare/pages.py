"""Puts what was measured into pages, between markers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

from benchmarks.compare.figures import Figures
from benchmarks.compare.plots import pictures
from benchmarks.compare.tables import page, ratios

#: What the short form shows; the page of the comparison has the others, too.
SHOWN = ("compare-commit.svg", "compare-resume.svg")
WORDS = re.compile(r">([^<]+)</text>")
MARKED = re.compile(r"(<!-- compare:start -->\n).*?(<!-- compare:end -->)", re.DOTALL)


def readme(results: dict[str, Any]) -> str:
    """Write the short form: each peer as a ratio, and pictures of what it takes."""
    return (
        "How many times as much as Holdfast each peer takes, on the same store and disk, in one run "
        "(`make compare`). Below 1, in bold, Holdfast loses. "
        "[Everything that was measured, and how](docs/comparison.md).\n\n"
        + "\n\n".join([ratios(Figures(results)), *shown(pictures(results))])
    )


def shown(drawn: Mapping[str, str]) -> list[str]:
    """Show pictures of bars; who does not see them reads what they say."""
    return [f"![{_words(drawn[name])}](docs/pictures/{name})" for name in SHOWN if name in drawn]


def _words(bars: str) -> str:
    title, *rest = map(unescape, WORDS.findall(bars))
    told = [f"{name} {value}" for name, value in zip(rest[::2], rest[1::2], strict=True)]
    return f"{title}. {'; '.join(told)}"


def write(results: dict[str, Any], build: Path, root: Path, *, into_pages: bool) -> list[Path]:
    """Write tables and pictures below `build`, and into the pages of the project if asked to."""
    texts = {"comparison.md": page(results), "readme.md": readme(results)}
    written = [_written(build / name, text + "\n") for name, text in texts.items()]
    written += [_written(build / name, text) for name, text in pictures(results).items()]
    if into_pages:
        for target, text in (
            (root / "docs/comparison.md", texts["comparison.md"]),
            (root / "README.md", texts["readme.md"]),
        ):
            if replaced := between_markers(target.read_text(encoding="utf-8"), text):
                written.append(_written(target, replaced))
        for name, text in pictures(results).items():
            written.append(_written(root / "docs" / "pictures" / name, text))
    return written


def between_markers(old: str, text: str) -> str | None:
    """Answer a page with the text between its markers; None if it has none."""
    if not MARKED.search(old):
        return None
    return MARKED.sub(lambda match: f"{match[1]}{text}\n{match[2]}", old)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
