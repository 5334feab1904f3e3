"""Executors that want the same workflow: in turns, killed, stopped past their lease, and woken up.

`python -m tests.process.executor_rivals NAME JSON` runs one loop in a process without threads, so that it
may fork, and prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import Context, RunOptions, Workflow
from holdfast.domain.errors import CheckpointError, LeaseHeldError, StoreLockedError
from holdfast.domain.record import Lease
from tests.process.child import Child, Report, start
from tests.process.executor_broken import BREAKS
from tests.process.outside import Outside, tell
from tests.process.stopping import stop
from tests.recovery.places import Place

AGENTS = ("first", "second", "third", "fourth")
LONG_SECONDS = 600.0
SHORT_SECONDS = 0.5


def make_team(report: Report, outside: str, gate: int | None) -> Workflow:
    """Declare agents one after another; the second one waits at a gate, if there is one."""
    team = Workflow("rivals")
    stage = team.sequential("all")

    def mark(key: str, workflow_id: str, step_id: str) -> Any:
        return tell(outside, workflow_id, "effect", what=step_id, key=key)

    def work(ctx: Context) -> str:
        tell(outside, ctx.workflow_id, "enter", who=str(os.getpid()))
        tell(outside, ctx.workflow_id, "body", what=ctx.step_id)
        if gate is not None and ctx.agent == AGENTS[1]:
            report.say("inside", ctx.workflow_id, os.getpid())
            select.select([gate], [], [])
        ctx.effect("mark", mark, ctx.workflow_id, ctx.step_id, unknown="retry")
        tell(outside, ctx.workflow_id, "leave", who=str(os.getpid()))
        return f"{ctx.agent} of {ctx.workflow_id}"

    for name in AGENTS:
        stage.agent(name=name)(work)
    return team


def rival(
    report: Report,
    stop: int,
    url: str,
    outside: str,
    workflow_id: str,
    lease_seconds: float = LONG_SECONDS,
    is_gated: bool = False,
    is_stubborn: bool = False,
    broken: str | None = None,
) -> None:
    """Run the workflow and report what came of it; who is stubborn tries until nobody has it."""
    if broken is not None:
        BREAKS[broken]()
    team = make_team(report, outside, stop if is_gated else None)
    options = RunOptions(lease_seconds=lease_seconds)
    refused = 0
    while True:
        try:
            result = team.run_sync(url, workflow_id, options=options)
        except (LeaseHeldError, StoreLockedError) as problem:
            # A holder that was stopped in the middle of a renewal has its row until the server ends that.
            refused += isinstance(problem, LeaseHeldError)
            if is_stubborn:
                if refused == 1:
                    report.say("refused", workflow_id, refused)
                continue
            report.say(type(problem).__name__, workflow_id, refused)
            return
        except CheckpointError as problem:
            report.say(type(problem).__name__, workflow_id, refused)
            return
        is_right = result.results == {name: f"{name} of {workflow_id}" for name in AGENTS}
        report.say(str(result.status) if is_right else "wrong", workflow_id, refused)
        return


class Arena:
    """A store, and those who fight over it."""

    def __init__(self, kind: str, folder: str, outside: Outside) -> None:
        self.place = Place(kind, Path(folder))
        self.outside = outside
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        # Opened once before, so that making the store is no part of any fight.
        with self.place.open():
            pass

    def enter(self, workflow_id: str, **options: Any) -> Child:
        """Start an executor."""
        given = {"lease_seconds": LONG_SECONDS, "is_gated": False, "is_stubborn": False, "broken": None}
        return start(rival, self.place.url, self.outside.path, workflow_id, *(given | options).values())

    def expect(self, process: Child, word: str) -> None:
        """Have a process end with a word."""
        status = process.end()
        found = process.lines[-1].partition(" ")[0] if process.lines else ""
        if (status, found) != (0, word):
            self.violations.append(f"ended with {status} and {found!r} instead of {word}: {process.lines}")

    def taken(self, workflow_id: str) -> Lease:
        """Have a workflow, so that nobody gets in."""
        with self.place.open() as service:
            return service._engine.kit.store.acquire(workflow_id, "the arena", LONG_SECONDS)

    def give_up(self, lease: Lease) -> None:
        """Let somebody in."""
        with self.place.open() as service:
            service._engine.kit.store.release(lease)

    def everything(self, workflow_id: str) -> list[Any]:
        """Answer all that the store holds of a workflow."""
        with self.place.open() as service:
            store = service._engine.kit.store
            entries, events = list(store.entries(workflow_id)), list(store.events(workflow_id))
            return [entries, events, store.head(workflow_id), store.lease(workflow_id)]

    def check(self, workflow_id: str, *, repeated: str | None = None) -> None:
        """Compare what is recorded with what was done: once each, by one at a time."""
        story = self.outside.story(workflow_id)
        if story["together"] != 1:
            self.violations.append(f"{workflow_id}: {story['together']} worked at once")
        more = {name: count for name, count in story["bodies"].items() if count != 1 and name != repeated}
        if more or len(story["bodies"]) != len(AGENTS):
            self.violations.append(f"{workflow_id}: bodies ran {story['bodies']}")
        if story["done"] != dict.fromkeys(AGENTS, 1):
            self.violations.append(f"{workflow_id}: effects happened {story['done']}")
        with self.place.open() as service:
            completed = Counter(one.step_id for one in service.events(workflow_id, type="AGENT_COMPLETED"))
            if completed != Counter(AGENTS):
                self.violations.append(f"{workflow_id}: {completed}")

    def told(self) -> dict[str, Any]:
        with self.place.open() as service:
            if service.audit.verify().fault_count:
                self.violations.append("the trail is broken")
        return {"counts": self.counts, "violations": self.violations}


def killed_holder(kind: str, folder: str, *, rounds: int, broken: str | None = None) -> dict[str, Any]:
    """Refuse a second executor while the first one works, and let it in at once when that one was killed."""
    with Outside(Path(folder)) as outside:
        arena = Arena(kind, folder, outside)
        for number in range(rounds):
            workflow_id = f"K-{number}"
            holder = arena.enter(workflow_id, is_gated=True, broken=broken)
            holder.read_line()
            arena.expect(arena.enter(workflow_id, broken=broken), "LeaseHeldError")
            holder.kill()
            holder.end()
            arena.expect(arena.enter(workflow_id), "completed")
            arena.check(workflow_id, repeated=AGENTS[1])
            arena.counts += Counter(rounds=1, kills=1, refused=1)
        return arena.told()


def stopped_holder(kind: str, folder: str, *, rounds: int) -> dict[str, Any]:
    """Stop an executor past its lease, let another one finish, and wake the first one up."""
    with Outside(Path(folder)) as outside:
        arena = Arena(kind, folder, outside)
        for number in range(rounds):
            workflow_id = f"S-{number}"
            holder = arena.enter(workflow_id, lease_seconds=SHORT_SECONDS, is_gated=True)
            holder.read_line()
            stop(holder.pid)
            os.waitpid(holder.pid, os.WUNTRACED)
            # It is inside still, as far as the outside knows, and does nothing there.
            tell(outside.path, workflow_id, "leave", who=str(holder.pid))
            arena.expect(arena.enter(workflow_id, is_stubborn=True), "completed")
            before = arena.everything(workflow_id)
            if number % 2:
                # Its agent is done when it wakes up; else it learns of the lost lease first, perhaps.
                holder.stop()
            os.kill(holder.pid, signal.SIGCONT)
            if not number % 2:
                holder.stop()
            arena.expect(holder, "LeaseLostError")
            if arena.everything(workflow_id) != before:
                arena.violations.append(f"{workflow_id}: who had lost its lease wrote something")
            if set(outside.story(workflow_id)["calls"].values()) != {1}:
                arena.violations.append(f"{workflow_id}: who had lost its lease changed something outside")
            arena.check(workflow_id, repeated=AGENTS[1])
            arena.counts += Counter(rounds=1, stops=1)
        return arena.told()


def crowd(kind: str, folder: str, *, rounds: int, seed: int, rivals: int = 3) -> dict[str, Any]:
    """Let several want one workflow at once; in every other round one of them is killed at random."""
    dice = random.Random(seed)
    with Outside(Path(folder)) as outside:
        arena = Arena(kind, folder, outside)
        for number in range(rounds):
            workflow_id = f"C-{number}"
            # In the others all of them are there, and were refused, before the first gets in.
            lease = None if number % 2 else arena.taken(workflow_id)
            fighters = [arena.enter(workflow_id, is_stubborn=True) for _ in range(rivals)]
            if lease is not None:
                for one in fighters:
                    one.read_line()
                arena.give_up(lease)
            if number % 2:
                victim = fighters.pop(dice.randrange(rivals))
                select.select([victim.handle], [], [], dice.uniform(0.01, 0.4))
                victim.kill()
                arena.counts["kills"] += victim.end() == -signal.SIGKILL
            for one in fighters:
                arena.expect(one, "completed")
                arena.counts["refused"] += int(one.lines[-1].split()[2])
            story = outside.story(workflow_id)
            again = [name for name, count in story["bodies"].items() if count == 2]
            # One agent at most was at work when its process was killed.
            arena.check(workflow_id, repeated=again[0] if number % 2 and len(again) == 1 else None)
            arena.counts["rounds"] += 1
        return arena.told()


def main() -> None:
    name, options = sys.argv[1], json.loads(sys.argv[2])
    loops: dict[str, Callable[..., dict[str, Any]]] = {
        "killed_holder": killed_holder,
        "stopped_holder": stopped_holder,
        "crowd": crowd,
    }
    print(json.dumps(loops[name](**options)))


if __name__ == "__main__":
    main()
