"""Numbers of a harness, kept where they can be quoted from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "evidence"


def keep(harness: str, counts: Mapping[str, int], violations: Sequence[str], *, campaign: bool) -> None:
    """Write what a harness counted to build/evidence."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    report = {
        "harness": harness,
        "size": "campaign" if campaign else "small",
        "counts": dict(counts),
        "violations": len(violations),
        "examples": list(violations[:20]),
    }
    (FOLDER / f"{harness}.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
