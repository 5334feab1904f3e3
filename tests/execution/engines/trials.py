"""What every engine has to stand: workers and runs that are killed, and workers that hang."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from holdfast import RunOptions
from holdfast.execution.outcome import RunResult
from tests.execution.engines.team import TOPICS, happened, leave, mark, repeated, team, wait_for
from tests.process.stopping import stop

ROOT = Path(__file__).parents[3]
#: Of workers: nobody at work is so late because a machine is busy.
LEASE_SECONDS = 60.0
ENDED = "all about report: ['all about kelp', 'all about tide', 'all about sand']"


def outcome(result: RunResult) -> tuple[Any, ...]:
    """What of a run must not depend on where it ran, nor on what happened meanwhile."""
    metrics = {name: value for name, value in result.metrics.items() if name != "elapsed_seconds"}
    return result.status, result.results, metrics, sorted(result.outputs, key=str), result.confidence


def expected(folder: Path) -> tuple[Any, ...]:
    """What comes of a run in this process that nobody disturbs."""
    folder.mkdir()
    return outcome(team().run_sync("memory:", "WF-1", {"folder": str(folder)}))


def run(engine: Any, url: str, folder: Path, **inputs: Any) -> RunResult:
    return asyncio.run(begin(engine, url, folder, **inputs))


async def begin(engine: Any, url: str, folder: Path, **inputs: Any) -> RunResult:
    options = RunOptions(lease_seconds=5, handles_signals=False)
    return await team(engine).run(url, "WF-1", {"folder": str(folder), **inputs}, options=options)


def disturbed(engine: Any, url: str, folder: Path, disturb: Callable[[int], None]) -> RunResult:
    """Run, and do something to the worker that has the second topic, once it is past its milestone."""

    async def both() -> RunResult:
        running = asyncio.ensure_future(begin(engine, url, folder, stops_at=TOPICS[1]))
        pid = int(await asyncio.to_thread(wait_for, folder, "at"))
        await asyncio.to_thread(disturb, pid)
        return await running

    return asyncio.run(both())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def hang(pid: int, url: str) -> None:
    """Stop the worker that has the second topic, and let its lease run out: it alone is late."""
    stop(pid)
    with holdfast.open(url, create=False) as service:
        lease = service.lease_of(f"WF-1~research[{TOPICS[1]}]")
        assert lease is not None
        service.renew_lease(lease, ttl_seconds=0)


def violations(result: RunResult, folder: Path, wanted: tuple[Any, ...]) -> list[str]:
    """Say what is wrong after a worker was lost past its milestone."""
    found = repeated(folder)
    if len(happened(folder, "researched")) != len(TOPICS):
        found.append(f"done were {happened(folder, 'researched')}")
    if outcome(result) != wanted:
        found.append(f"the outcome is {outcome(result)}")
    if len(happened(folder, "plan")) != 1:
        found.append("the plan was made again")
    if happened(folder, "resumed") != [["resumed", TOPICS[1], "fetched"]]:
        found.append(f"it went on from {happened(folder, 'resumed')}")
    begun = [line[1] for line in happened(folder, "research")]
    if sorted(begun) != sorted([*TOPICS, TOPICS[1]]):
        found.append(f"begun were {begun}")
    return found


def killed_often(
    engine_for: Callable[[str], Any], new_url: Callable[[], str], folder: Path, kills: int
) -> tuple[dict[str, int], list[str]]:
    """Kill workers anywhere, round after round; answer how many were, and what was wrong.

    The victim is one that has begun an agent, at a random moment after that: it may be at work or done.
    """
    dice, killed, lost, wrong = random.Random(7), 0, 0, list[str]()
    wanted = expected(folder / "undisturbed")
    for number in range(10 * kills):
        if killed >= kills:
            break
        place = folder / str(number)
        place.mkdir()
        url = new_url()
        hit, result = _hit_once(engine_for(url), url, place, dice)
        killed += hit
        lost += sum("its worker was lost" in text for text in result.warnings)
        found = [*repeated(place), *begun_again(url)]
        if outcome(result) != wanted:
            found.append(f"the outcome is {outcome(result)}")
        wrong.extend(f"round {number}: {text}" for text in found)
    return {"kills": killed, "went on elsewhere": lost}, wrong


def begun_again(url: str) -> list[str]:
    """Name agents that were begun, or done, after their result was committed."""
    wrong = []
    with holdfast.open(url, create=False) as service:
        for step in (*(f"research[{topic}]" for topic in TOPICS), "write"):
            here, there = (
                [event.type for event in service.events(name) if event.step_id == step]
                for name in ("WF-1", f"WF-1~{step}")
            )
            for types in (here, there):
                if (
                    types.count("AGENT_COMPLETED") != 1
                    or "AGENT_STARTED" in types[types.index("AGENT_COMPLETED") :]
                ):
                    wrong.append(f"{step}: {types}")
    return wrong


def _hit_once(engine: Any, url: str, folder: Path, dice: random.Random) -> tuple[bool, RunResult]:
    which, pause_seconds = dice.randrange(len(TOPICS)), dice.random() * 0.06
    over, hits = threading.Event(), list[int]()

    def hunt() -> None:
        while not over.is_set():
            begun = happened(folder, "research")
            if len(begun) > which:
                over.wait(pause_seconds)
                pid = int(begun[which][3])
                if not over.is_set() and is_at_work(pid):
                    kill(pid)
                    hits.append(pid)
                return
            over.wait(0.002)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        result = run(engine, url, folder)
    finally:
        over.set()
        hunter.join()
    return bool(hits), result


def is_at_work(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended."""
    while is_at_work(pid):
        threading.Event().wait(0.01)


def at_and_wait(folder: str) -> None:
    """Tell who is at work, and wait."""
    leave(folder, "at", str(os.getpid()))
    wait_for(folder, "go")


def mark_and_die(folder: str) -> None:
    """Tell of it, and end without a word to whoever waits."""
    mark(folder, "died")
    kill(os.getpid())


def wait_for_start(url: str) -> None:
    """Wait until the step that stops was begun by a second run."""
    step = f"research[{TOPICS[1]}]"
    with holdfast.open(url, create=False) as service:
        while not any(
            event.step_id == step and event.data["attempt"] == 2
            for event in service.events("WF-1", type="AGENT_STARTED")
        ):
            threading.Event().wait(0.02)


class Runner:
    """A run in a process of its own, which can be stopped and killed."""

    def __init__(self, engine: str, url: str, folder: Path, **settings: Any) -> None:
        given = json.dumps({"engine": engine, "url": url, "folder": str(folder), **settings})
        program = [sys.executable, "-m", "tests.execution.engines.runner", given]
        self.process = subprocess.Popen(program, cwd=ROOT)

    def stop(self) -> None:
        stop(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_until_ended(url: str, workflow_id: str) -> None:
    """Wait until a workflow has ended."""
    with holdfast.open(url, create=False) as service:
        while service.recording.ended(workflow_id) is None:
            threading.Event().wait(0.02)


def abandoned(engine: str, url: str, folder: Path, **settings: Any) -> None:
    """Let a run be killed after its worker has finished, and before it heard of it."""
    runner = Runner(engine, url, folder, **settings)
    wait_for(folder, "at")
    runner.stop()
    leave(folder, "go")
    wait_until_ended(url, f"WF-1~research[{TOPICS[1]}]")
    runner.kill()
