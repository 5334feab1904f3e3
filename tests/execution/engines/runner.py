"""A run in a process of its own: `python -m tests.execution.engines.runner JSON`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from holdfast.execution.engines.dask_engine import DaskEngine
from holdfast.execution.engines.processes import ProcessEngine
from holdfast.execution.engines.ray_engine import RayEngine
from tests.execution.engines.team import TOPICS
from tests.execution.engines.trials import LEASE_SECONDS, run


def engine_of(kind: str, url: str, address: str | None) -> Any:
    settings: dict[str, Any] = {"store": url, "poll_seconds": 0.05, "lease_seconds": LEASE_SECONDS}
    if kind == "ray":
        return RayEngine(address, **settings)
    return DaskEngine(address, **settings) if kind == "dask" else ProcessEngine(2, **settings)


def main() -> None:
    given = json.loads(sys.argv[1])
    engine = engine_of(given["engine"], given["url"], given.get("address"))
    run(engine, given["url"], Path(given["folder"]), stops_at=TOPICS[1])
    engine.close()


if __name__ == "__main__":
    main()
