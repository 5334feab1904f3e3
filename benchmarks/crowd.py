"""A thousand workflows at once in one process, each of five agents."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import holdfast
from benchmarks.measure import Row, resident_megabytes
from holdfast import Workflow

WORKFLOWS = 1_000
AGENTS = ("plan", "search", "read", "judge", "write")


def measure(new_urls: Callable[[], Mapping[str, str]], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Run the crowd on each store in turns, in processes of their own."""
    told: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for store, url in new_urls().items():
            command = [sys.executable, "-m", "benchmarks.crowd", url]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise AssertionError(f"a crowd on {store} did not get to its end:\n{done.stderr[-2000:]}")
            told.setdefault(store, []).append(json.loads(done.stdout.splitlines()[-1]))
    return told


def rows(told: Mapping[str, list[dict[str, Any]]]) -> list[Row]:
    return [_row(store, several) for store, several in told.items()]


def _row(store: str, several: list[dict[str, Any]]) -> Row:
    seconds = statistics.median(one["seconds"] for one in several)
    completed = min(one["completed"] for one in several)
    agents = WORKFLOWS * len(AGENTS) / seconds
    told = f"{completed} completed, {agents:.0f} agents/s, {WORKFLOWS / seconds:.0f} workflows/s"
    megabytes = max(one["peak_bytes"] for one in several) / 1e6
    what = f"{store}: {WORKFLOWS:,} workflows at once"
    return Row("execution", what, f"{told}, {megabytes:.0f} MB", "all completed", completed == WORKFLOWS)


def declared() -> Workflow:
    workflow = Workflow("crowd")
    stage = workflow.sequential("steps")
    for name in AGENTS:
        stage.agent(name=name)(_agent(name))
    return workflow


def _agent(name: str) -> Callable[[Any], dict[str, Any]]:
    def step(ctx: Any) -> dict[str, Any]:
        return {"agent": name, "number": ctx.inputs["number"]}

    return step


async def _all(url: str) -> tuple[int, float]:
    workflow = declared()
    async with holdfast.open_async(url) as service:
        began = time.perf_counter()
        results = await asyncio.gather(
            *(workflow.run(service, f"w-{number}", {"number": number}) for number in range(WORKFLOWS))
        )
        seconds = time.perf_counter() - began
    right = (
        result.is_completed and result.value == {"agent": AGENTS[-1], "number": number}
        for number, result in enumerate(results)
    )
    return sum(right), seconds


def main(url: str) -> None:
    completed, seconds = asyncio.run(_all(url))
    peak_bytes = round(resident_megabytes("VmHWM") * 1024 * 1024)
    print(json.dumps({"completed": completed, "seconds": seconds, "peak_bytes": peak_bytes}))


if __name__ == "__main__":
    main(sys.argv[1])
