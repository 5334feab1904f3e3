"""Figures that tests measure: written down and printed, and never a reason to fail."""

from __future__ import annotations

import json
from typing import Any

from tests.named_tests import ROOT

FOLDER = ROOT / "build" / "browser"


def tell(name: str, figures: dict[str, Any]) -> None:
    """Keep figures in build/browser/NAME.json, and print them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    print(f"{name}: {json.dumps(figures)}")
