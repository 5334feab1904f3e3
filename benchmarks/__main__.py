"""Run every measurement and print one table: `make bench`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    chat,
    checkpoint_interval,
    commits,
    encryption,
    execution,
    http_clients,
    langgraph_savers,
    recovery,
    redaction,
    restores,
    scale,
    stores,
    trail,
    writers,
)
from benchmarks.measure import Row, machine

RESULTS = Path("build/bench/results.json")
PARTS = {
    "commits": commits,
    "writers": writers,
    "chat": chat,
    "restores": restores,
    "scale": scale,
    "stores": stores,
    "trail": trail,
    "redaction": redaction,
    "encryption": encryption,
    "recovery": recovery,
    "checkpoint_interval": checkpoint_interval,
    "execution": execution,
    "langgraph": langgraph_savers,
    "http": http_clients,
}


def main(names: list[str]) -> int:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=".") as folder:
        for name, part in PARTS.items():
            if not names or name in names:
                rows += part.run(Path(folder) / name)
    about = machine()
    print(" · ".join(f"{key}: {value}" for key, value in about.items()))
    print(_table(rows))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"machine": about, "rows": [row.as_json() for row in rows]}, indent=2))
    missed = [row.what for row in rows if row.held is False]
    print(f"\n{sum(row.held is True for row in rows)} bars held, {len(missed)} missed", *missed, sep="\n  ")
    return 0


def _table(rows: list[Row]) -> str:
    lines = []
    for group in dict.fromkeys(row.group for row in rows):
        lines.append(f"\n{group}")
        for row in (row for row in rows if row.group == group):
            verdict = {True: "held", False: "MISSED", None: ""}[row.held]
            lines.append(f"  {row.what:<44} {row.value:<66} {row.bar:<26} {verdict}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
