"""Cut the power under every store on every file system: `python -m tests.power --cuts 50` (needs root)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.machine.outcome import Order, Outcome
from tests.power.power_cut import STORES, harness, run

EVIDENCE = Path(__file__).parent.parent.parent / "build" / "evidence" / "power_cut.json"
CONTROL_CUTS = 20


def cut_all(stores: list[str], cuts: int, seed: int) -> list[dict[str, Any]]:
    """Cut each store's power so many times, and a few times with the syncs left out."""
    told = []
    for store in stores:
        missing = harness(store).missing()
        if missing:
            told.append(Outcome("power cuts", Order(store, cuts, seed)).told(missing))
            continue
        control = run(Order(store, CONTROL_CUTS, seed, lies=True))
        outcome = run(Order(store, cuts, seed))
        told.append({**outcome.told(), "control": "red" if control.violations else "not red"})
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=50, help="how many per store and file system")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", action="append", choices=STORES, help="only this one; may be repeated")
    parser.add_argument("--evidence", type=Path, default=EVIDENCE, help="where the result is written")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("Only root may mount a file system: sudo make power-cut\n")
        return 2
    told = cut_all(options.store or list(STORES), options.cuts, options.seed)
    text = json.dumps(told, indent=2) + "\n"
    options.evidence.parent.mkdir(parents=True, exist_ok=True)
    options.evidence.write_text(text)
    sys.stdout.write(text)
    return int(any(one["violations"] or one.get("control") == "not red" for one in told))


if __name__ == "__main__":
    sys.exit(main())
