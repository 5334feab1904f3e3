"""Pictures of the figures, as SVG that reads well on light and on dark."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any

from benchmarks.compare.figures import Figures, ms, size
from benchmarks.compare.lanes import CHAT, LANES, Lane, label

INK, FAINT, OURS, THEIRS = "#7d838c", "#7d838c55", "#2a9d8f", "#b08968"
WIDTH, LEFT, RIGHT, ROW = 860, 360, 80, 22
TOP, HEIGHT = 46, 380
_DASHES = {"files": "none", "SQLite": "6 3", "PostgreSQL": "2 3", "nothing": "1 5"}


def pictures(results: dict[str, Any]) -> dict[str, str]:
    """Draw every picture; the name of a file and its text."""
    figures = Figures(results)
    sizes = [int(one) for one in figures.sizes["constant"]]
    middle = f"constant-{sizes[len(sizes) // 2]}"
    drawn = {
        "compare-commit.svg": _bars(
            f"A durable step, state of {sizes[len(sizes) // 2] // 1000} KB: median",
            _measured(figures, lambda lane: figures.commit(lane, middle).median),
            ms,
        ),
        "compare-resume.svg": _bars(
            "Killed with -9: from the start of a new process to its next step",
            _measured(figures, lambda lane: figures.number(lane, "resume", "seconds").median),
            ms,
        ),
        "compare-chat.svg": _lines("A chat on disk, by turns", _chats(figures)),
    }
    return {name: text for name, text in drawn.items() if text}


def _measured(figures: Figures, value: Callable[[str], float]) -> list[tuple[Lane, float]]:
    found = [(lane, value(lane.name)) for lane in LANES if lane.name in figures.lanes and lane.only != CHAT]
    return [(lane, one) for lane, one in found if one > 0]


def _chats(figures: Figures) -> list[tuple[Lane, list[tuple[int, float]]]]:
    chats = [
        (
            lane,
            [(turns, figures.mark(lane.name, turns, "bytes").median) for turns in figures.marks(lane.name)],
        )
        for lane in LANES
        if lane.name in figures.lanes and lane.name != "langgraph-unsaved"
    ]
    return [(lane, points) for lane, points in chats if points]


def _bars(title: str, bars: list[tuple[Lane, float]], unit: Callable[[float], str]) -> str:
    if not bars:
        return ""
    most = max(value for _, value in bars)
    scale = (WIDTH - LEFT - RIGHT) / most
    drawn = [_text(LEFT, 24, title, size=15)]
    for row, (lane, value) in enumerate(bars):
        y = TOP + row * ROW
        note = " (not synced)" if "not" in lane.durability else ""
        drawn += [
            _text(LEFT - 8, y + 12, label(lane) + note, anchor="end"),
            _bar(y, max(value * scale, 1), _colour(lane)),
            _text(LEFT + value * scale + 6, y + 12, unit(value)),
        ]
    return _svg(TOP + len(bars) * ROW + 8, drawn)


def _lines(title: str, chats: list[tuple[Lane, list[tuple[int, float]]]]) -> str:
    """Draw both axes by powers: what grows with the square of the turns is steeper, not only higher."""
    if not chats:
        return ""
    points = [point for _, line in chats for point in line]
    across = _Axis(min(p[0] for p in points), max(p[0] for p in points), 70, WIDTH - 310)
    up = _Axis(min(p[1] for p in points), max(p[1] for p in points), TOP + HEIGHT - 30, TOP)
    drawn = [_text(70, 24, title, size=15)]
    drawn += [
        _text(across.at(turns), TOP + HEIGHT - 8, f"{turns:,}", anchor="middle")
        for turns in sorted({p[0] for p in points})
    ]
    for power in range(3, 12):
        if up.low <= 10**power <= up.high:
            y = up.at(10**power)
            drawn += [
                f'<path d="M70 {y:.1f}H{WIDTH - 310}" stroke="{FAINT}"/>',
                _text(62, y + 4, size(10**power), anchor="end"),
            ]
    labels = _apart(sorted((up.at(line[-1][1]), lane, line) for lane, line in chats if line), 14)
    for y, lane, line in labels:
        path = " L".join(f"{across.at(turns):.1f} {up.at(value):.1f}" for turns, value in line)
        end, last = across.at(line[-1][0]), up.at(line[-1][1])
        drawn += [
            f'<path d="M{path}" fill="none" stroke-width="2" {_stroke(lane)}/>',
            *(_dot(across.at(turns), up.at(value), lane) for turns, value in line),
            f'<path d="M{end:.1f} {last:.1f}L{WIDTH - 300} {y:.1f}" stroke="{FAINT}"/>',
            _text(WIDTH - 296, y + 4, label(lane), colour=_colour(lane)),
        ]
    return _svg(TOP + HEIGHT, drawn)


class _Axis:
    """Places a value between two pixels by its logarithm."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self.low, self.high = low, max(high, low * 1.01)
        self._first, self._last = first, last

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self._first + share * (self._last - self._first)


def _apart(labels: list[tuple[float, Lane, Any]], least: float) -> list[tuple[float, Lane, Any]]:
    """Push labels down until none lies on another."""
    placed: list[tuple[float, Lane, Any]] = []
    for y, lane, line in labels:
        placed.append((max(y, placed[-1][0] + least) if placed else y, lane, line))
    return placed


def _colour(lane: Lane) -> str:
    return OURS if lane.is_ours else THEIRS


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = INK) -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _bar(y: float, length: float, colour: str) -> str:
    return f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{ROW - 7}" rx="2" fill="{colour}"/>'


def _dot(x: float, y: float, lane: Lane) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_colour(lane)}"/>'


def _stroke(lane: Lane) -> str:
    return f'stroke="{_colour(lane)}" stroke-dasharray="{_DASHES[lane.store]}"'


def _svg(height: float, drawn: list[str]) -> str:
    box = f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="system-ui, sans-serif"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
    return "\n".join([head, *drawn, "</svg>", ""])
