"""Puts what was measured into pages, between markers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from benchmarks.compare.figures import Figures
from benchmarks.compare.plots import pictures
from benchmarks.compare.tables import page, ratios

MARKED = re.compile(r"(<!-- compare:start -->\n).*?(<!-- compare:end -->)", re.DOTALL)


def readme(results: dict[str, Any]) -> str:
    """Write the short form: each peer as a ratio."""
    return (
        "How many times as much as Holdfast each peer takes, on the same store and disk, in one run "
        "(`make compare`). Below 1, in bold, Holdfast loses. "
        "[Everything that was measured, and how](docs/comparison.md).\n\n" + ratios(Figures(results))
    )


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
