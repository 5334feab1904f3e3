"""What a harness counted, kept for people and machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent.parent / "build" / "evidence"


def keep(name: str, part: str, counts: dict[str, Any], violations: list[str]) -> None:
    """Write one part of a harness's result; the other parts stay."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"name": name, "parts": {}}
    known["parts"][part] = {"counts": counts, "violations": violations}
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(known, indent=2) + "\n")
    temporary.replace(path)
