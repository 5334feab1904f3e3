"""From the numbers of all rounds to one figure: the median, and how far the rounds lay apart."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Answer = dict[str, Any]
#: Stands where nothing was to be measured.
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Figure:
    """A median over rounds with the least and the most; or the reason why there is none."""

    median: float = 0.0
    least: float = 0.0
    most: float = 0.0
    reason: str = ""

    @property
    def is_measured(self) -> bool:
        return not self.reason

    def told(self, unit: Callable[[float], str]) -> str:
        if not self.is_measured:
            return self.reason
        if unit(self.least) == unit(self.most):
            return unit(self.median)
        return f"{unit(self.median)} ({unit(self.least)} to {unit(self.most)})"


class Figures:
    """Looks figures up in the results of a run."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.lanes: dict[str, dict[str, Any]] = results["lanes"]
        self.sizes: dict[str, Any] = results["sizes"]
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        for one in results["answers"]:
            self._answers.setdefault((one["lane"], one["workload"]), []).append(one["answer"])

    def of(self, lane: str, workload: str, value: Callable[[Answer], float | str | None]) -> Figure:
        """Take one value from each round; a text says why there is no number."""
        if not_run := self.lanes.get(lane, {"not_run": "not asked for"}).get("not_run"):
            return Figure(reason=f"not run: {not_run}")
        answers = self._answers.get((lane, workload), [])
        broken = [one for one in answers if "failed" in one or "not_equal" in one]
        if broken:
            return Figure(reason=f"failed: {broken[0].get('failed') or broken[0].get('not_equal')}")
        found = [value(one) for one in answers]
        texts = [one for one in found if isinstance(one, str)]
        numbers = [one for one in found if isinstance(one, int | float)]
        if texts or not numbers:
            return Figure(reason=texts[0] if texts else NOTHING)
        return Figure(statistics.median(numbers), min(numbers), max(numbers))

    def commit(self, lane: str, workload: str) -> Figure:
        return self.of(lane, workload, lambda answer: statistics.median(answer["commits"]))

    def restore(self, lane: str, workload: str) -> Figure:
        return self.of(lane, workload, lambda answer: statistics.median(answer["restores"]))

    def number(self, lane: str, workload: str, name: str) -> Figure:
        return self.of(lane, workload, lambda answer: answer[name])

    def call(self, lane: str, workload: str, name: str) -> Figure:
        """Look up a call that not everybody has."""
        return self.of(lane, workload, lambda answer: answer[name].get("seconds", answer[name].get("none")))

    def kept(self, lane: str, workload: str) -> str:
        """Tell what was kept when everything old was removed, or that nothing can be removed."""
        told = [a["prune"] for a in self._answers.get((lane, workload), []) if "prune" in a]
        return (told[0].get("told") or told[0]["none"]) if told else NOTHING

    def mark(self, lane: str, turns: int, name: str) -> Figure:
        """Look up a chat after so many turns."""
        return self.of(lane, "chat", lambda answer: _marked(answer, turns, name))

    def marks(self, lane: str) -> list[int]:
        """List the turns after which a chat was looked at in every round."""
        answers = self._answers.get((lane, "chat"), [])
        seen = [{mark["turns"] for mark in answer.get("marks", [])} for answer in answers]
        return sorted(set.intersection(*seen)) if seen else []

    def common_mark(self, *lanes: str) -> int | None:
        """Tell the last mark that all of these reached; whoever was not run does not count."""
        reached = [set(self.marks(lane)) for lane in lanes if self.marks(lane)]
        return max(set.intersection(*reached), default=None) if reached else None


def _marked(answer: Answer, turns: int, name: str) -> float | str:
    found: list[float] = [mark[name] for mark in answer["marks"] if mark["turns"] == turns]
    return found[0] if found else "not reached"


def ms(seconds: float) -> str:
    millis = seconds * 1e3
    return f"{millis:.2f} ms" if millis < 10 else f"{millis:.0f} ms"


def size(count: float) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} KB"


def bytes_name(count: int) -> str:
    return f"{count // 1_000_000} MB" if count >= 1_000_000 else f"{count // 1_000} KB"
