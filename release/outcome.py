"""What came of a trial."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial went; `versions` are those of what is needed directly."""

    name: str
    python: str
    seconds: float
    versions: dict[str, str]
    said: str
    problem: str = ""


class Evidence:
    """What was found of one wheel, in a file, so that trials can be done a few at a time."""

    def __init__(self, path: Path, wheel: str) -> None:
        self._path = path
        self._wheel = wheel

    def add(self, outcome: Outcome) -> None:
        """Put an outcome beside those of the same wheel; those of another are forgotten."""
        kept = {"wheel": self._wheel, "trials": self._trials() | {outcome.name: asdict(outcome)}}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")

    def passed(self) -> set[str]:
        """Name the trials that went well."""
        return {name for name, kept in self._trials().items() if not kept["problem"]}

    def _trials(self) -> dict[str, Any]:
        kept = json.loads(self._path.read_text("utf-8")) if self._path.exists() else {}
        return kept["trials"] if kept.get("wheel") == self._wheel else {}
