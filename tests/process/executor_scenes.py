"""Lives of workflows: begun by one process, gone on with by others, each as it is told to.

`python -m tests.process.executor_scenes NAME JSON` plays one scene in a process without threads, so that it
may fork, and prints what came of it as JSON; the tests judge.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast import Context, RunOptions, Workflow
from holdfast.domain.errors import CheckpointError
from tests.faults.rooms import LimitedRoom
from tests.process.child import Child, Report, must_stop, start
from tests.process.outside import Outside, tell
from tests.recovery.places import Place

ID = "W-1"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def say(report: Report, word: str, told: Mapping[str, Any]) -> None:
    report.say(word, ID, 0, json.dumps(told))


def told_of(child: Child) -> dict[str, Any]:
    """Answer what a process said last, or how it died."""
    status = child.end()
    word, _, _, told = (child.lines[-1] if child.lines else "none - 0 {}").split(" ", 3)
    return {"status": status, "word": word, **json.loads(told)}


# -- a program that changes ------------------------------------------------------------------------


def declare(outside: str, agents: Sequence[str], dies: str | None, reads: Sequence[str]) -> Workflow:
    """Declare agents one after another; `side:b` stands in a parallel stage of its own, `d` reads."""
    team, last = Workflow("changing"), None

    def work(ctx: Context) -> Any:
        tell(outside, ctx.workflow_id, "body", what=ctx.step_id)
        if ctx.agent == dies:
            die()
        return {name: ctx.result(name) for name in reads} if ctx.agent == "d" else f"{ctx.agent} did"

    for one in agents:
        stage, _, name = one.rpartition(":")
        if stage:
            team.parallel(stage, after=last).agent(name=name)(lambda ctx: work(ctx))
        else:
            team.agent(name=name, after=last)(lambda ctx: work(ctx))
        last = name
    return team


def version(report: Report, stop: int, url: str, outside: str, life: Mapping[str, Any]) -> None:
    """Run one version of the program."""
    team = declare(outside, life["agents"], life.get("dies"), life.get("reads", ()))
    options = RunOptions(strict=life.get("strict", False), renamed=life.get("renamed", {}))
    try:
        result = team.run_sync(url, ID, options=options)
    except CheckpointError as problem:
        say(report, "refused", {"error": type(problem).__name__, "message": str(problem)})
        return
    told = {"results": result.results, "warnings": result.warnings, "ran": result.ran, "kept": result.kept}
    say(report, str(result.status), told)


def changed(kind: str, folder: str, *, lives: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Run one workflow with version after version of its program."""
    place = Place(kind, Path(folder))
    with Outside(Path(folder)) as outside:
        told = [told_of(start(version, place.url, outside.path, life)) for life in lives]
        return {"lives": told, "bodies": outside.story(ID)["bodies"]}


# -- approvals -------------------------------------------------------------------------------------


def asking(report: Report, stop: int, url: str, outside: str) -> None:
    """Run a workflow that asks, and say so once the question is durable."""
    team = Workflow("asking")

    @team.agent
    def prepare(ctx: Context) -> str:
        tell(outside, ID, "body", what=ctx.step_id)
        return "prepared"

    @team.agent(after=prepare)
    def release(ctx: Context) -> dict[str, Any]:
        tell(outside, ID, "body", what=ctx.step_id)
        answer = ctx.approve("May it be published?", "publish", words=3)
        return {"granted": answer.granted, "by": answer.by, "note": answer.note, "value": answer.value}

    def heard(kind: str, told: Mapping[str, Any]) -> None:
        if kind == "approval_requested":
            say(report, "asked", {"name": told["name"]})

    options = RunOptions(subscribers=(heard,), poll_seconds=0.01)
    result = team.run_sync(url, ID, options=options)
    say(report, str(result.status), {"results": result.results})


def approval(kind: str, folder: str) -> dict[str, Any]:
    """Kill a process that waits for an answer, twice, and answer while it is down, twice as well."""
    place = Place(kind, Path(folder))
    with Outside(Path(folder)) as outside:
        for _ in range(2):
            waiting = start(asking, place.url, outside.path)
            waiting.read_line()
            waiting.kill()
            waiting.end()
        with place.open() as service:
            for actor, granted in (("ada", True), ("bob", False)):
                data = {"granted": granted, "name": "publish", "value": actor}
                service.requests.put(ID, "approval", actor=actor, reason="read it", data=data)
        told = told_of(start(asking, place.url, outside.path))
        with place.open() as service:
            told["events"] = [event.type for event in service.events(ID) if "APPROVAL" in event.type]
            told["pending"] = [request.actor for request in service.requests.pending(ID)]
            entries = service.audit.query_events(workflow=ID)
            told["trail"] = [[str(one.type), one.actor] for one in entries if "APPROVAL" in str(one.type)]
            told["faults"] = service.audit.verify(payloads=True).fault_count
        return {**told, "bodies": outside.story(ID)["bodies"]}


# -- a process that is told to end -----------------------------------------------------------------


def ending(report: Report, stop: int, url: str, outside: str, is_async: bool) -> None:
    """Run a workflow whose second agent works until somebody stops it, the first time."""
    team = Workflow("ending")
    gate = asyncio.Event()

    @team.agent
    def first(ctx: Context) -> str:
        tell(outside, ID, "body", what=ctx.step_id)
        return "first"

    def wait_in_a_thread(ctx: Context) -> str:
        tell(outside, ID, "body", what=ctx.step_id)
        if ctx.attempt == 1:
            say(report, "working", {})
            select.select([stop], [], [])
        return "second"

    async def wait_on_the_loop(ctx: Context) -> str:
        tell(outside, ID, "body", what=ctx.step_id)
        if ctx.attempt == 1:
            say(report, "working", {})
            await gate.wait()
        return "second"

    team.agent(name="second", after=first)(wait_on_the_loop if is_async else wait_in_a_thread)
    # The application decides what follows once the run is recorded: here, that it is told.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    result = team.run_sync(url, ID)
    told = {"results": result.results, "ran": result.ran, "kept": result.kept}
    say(report, str(result.status), {**told, "gate": must_stop(stop)})


def terminated(kind: str, folder: str, *, is_async: bool) -> dict[str, Any]:
    """Send SIGTERM to a process at work, and go on in another one."""
    place = Place(kind, Path(folder))
    with Outside(Path(folder)) as outside:
        first = start(ending, place.url, outside.path, is_async)
        first.read_line()
        os.kill(first.pid, signal.SIGTERM)
        stopped = {**told_of(first), **_standing(place)}
        second = {**told_of(start(ending, place.url, outside.path, is_async)), **_standing(place)}
        third = told_of(start(ending, place.url, outside.path, is_async))
        return {"lives": [stopped, second, third], "bodies": outside.story(ID)["bodies"]}


def _standing(place: Place) -> dict[str, Any]:
    """Tell how a workflow stands, going by its last checkpoint alone."""
    with place.open() as service:
        state = service.restore_checkpoint(f"{ID}@latest")
        return {"stands": state.status, "resumable": state.resumable}


# -- a full disk -----------------------------------------------------------------------------------


def crowded(report: Report, stop: int, url: str, folder: str) -> None:
    """Run a workflow while no file may grow."""
    team, room = Workflow("crowded"), LimitedRoom(folder)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def work(ctx: Context) -> str:
        if ctx.agent == "second":
            room.shut()
        if ctx.agent == "fourth":
            room.give_back()
        ctx.checkpoint(f"in {ctx.agent}")
        return ctx.agent

    stage = team.sequential("all")
    for name in ("first", "second", "third", "fourth"):
        stage.agent(name=name)(lambda ctx: work(ctx))
    result = team.run_sync(url, ID)
    say(report, str(result.status), {"results": result.results, "warnings": result.warnings})


def full_disk(kind: str, folder: str) -> dict[str, Any]:
    """Take the room away from a run for a while, and look at what is stored in the end."""
    place = Place(kind, Path(folder))
    told = told_of(start(crowded, place.url, folder))
    with place.open() as service:
        again = Workflow("crowded").run_sync(service, ID)
        faults = service.audit.verify(payloads=True).fault_count
    return {**told, "again": again.results, "ran": again.ran, "faults": faults}


def main() -> None:
    name, options = sys.argv[1], json.loads(sys.argv[2])
    scenes: dict[str, Callable[..., dict[str, Any]]] = {
        "approval": approval,
        "changed": changed,
        "full_disk": full_disk,
        "terminated": terminated,
    }
    print(json.dumps(scenes[name](**options)))


if __name__ == "__main__":
    main()
