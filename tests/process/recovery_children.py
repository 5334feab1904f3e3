"""Recoveries that are killed at each of their writes, and the loop that kills them and recovers again.

`python -m tests.process.recovery_children NAME JSON` runs one loop in a process without threads, so that it
may fork, and prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.application.app import App
from holdfast.application.recovery.statuses import Statuses
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointStatus
from tests.process.child import Report, start
from tests.recovery.places import Place

STORES = (FilesystemStore, SqliteStore, PostgresStore)
WRITES = ("commit", "put_keyframe", "remove", "acquire", "release")
GOOD, DAMAGED = 3, 4
DONE = "WORK_DONE"


def prepare(place: Place, workflow_id: str) -> None:
    """Leave a workflow whose last checkpoint is damaged, and an event after it."""
    with place.open() as service:
        for number in range(1, DAMAGED + 1):
            service.create_checkpoint(workflow_id, {"n": number}, resume_handler="go_on")
        service.record_decision(workflow_id, "after the last checkpoint")
    place.damage_record(workflow_id, DAMAGED)


def app_of(opened: list[CheckpointService]) -> App:
    """Make a program whose handler does its work once, however often it is asked."""
    app = App()

    @app.handler("go_on")
    def go_on(context: Any) -> str:
        workflow_id: str = context.checkpoint.id.workflow_id
        if not opened[0].events(workflow_id, type=DONE):
            opened[0].append_event(workflow_id, DONE)
        return workflow_id

    return app


def recover(place: Place, workflow_id: str) -> Any:
    opened: list[CheckpointService] = []
    with place.open(app=app_of(opened)) as service:
        opened.append(service)
        return service.resume_workflow(workflow_id)


def kill_at(number: int, *, after: bool) -> None:
    """See to it that this process is killed right before or after the n-th write of a store."""
    count = 0

    def watched(write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            mine = count
            if mine == number and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = write(*args, **named)
            if mine == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    for kind in STORES:
        for name in WRITES:
            setattr(kind, name, watched(getattr(kind, name)))


def completing_first() -> None:
    """Break the protocol: say that the work is done when it only begins."""
    honest = Statuses.mark_recovering

    def lying(statuses: Statuses, name: Any) -> Any:
        honest(statuses, name)
        return statuses.mark_completed(name)

    setattr(Statuses, "mark_recovering", lying)  # noqa: B010


def child(
    report: Report, stop: int, place: Place, workflow_id: str, number: int, after: bool, lies: bool
) -> None:
    if lies:
        completing_first()
    kill_at(number, after=after)
    recover(place, workflow_id)


def kill_each_write(
    kind: str, folder: str, *, stride: int, lies: bool = False, sought: str | None = None
) -> dict[str, Any]:
    """Kill a recovery at each of its writes, before and after, and look at what is left each time.

    It ends with the first violation of the sort that is sought.
    """
    place = Place(kind, Path(folder))
    kills, violations, number = 0, list[str](), 1
    is_over = False
    while not is_over and not (sought and any(sought in violation for violation in violations)):
        for after in (False, True):
            workflow_id = f"W-{number}-{int(after)}"
            prepare(place, workflow_id)
            status = start(child, place, workflow_id, number, after, lies).end()
            if status == -signal.SIGKILL:
                kills += 1
            else:
                is_over = True
            violations += [f"{workflow_id}: {problem}" for problem in look(place, workflow_id)]
        number += stride
    return {"kills": kills, "violations": violations}


def look(place: Place, workflow_id: str) -> list[str]:
    """Say what is wrong after a kill, then recover again and say what is wrong after that."""
    problems = []
    with place.open() as service:
        status = service._engine.reader.listing(workflow_id, 9, None)[DAMAGED - GOOD].status
        if status is CheckpointStatus.COMPLETED and not service.events(workflow_id, type=DONE):
            problems.append("a checkpoint is completed whose work was not done")
    result = None
    if status is not CheckpointStatus.COMPLETED:
        result = recover(place, workflow_id)
        if not result.success or result.state.context != {"n": GOOD} or len(result.state.decisions) != 1:
            problems.append(f"recovered otherwise: {result}")
    with place.open() as service:
        if len(service.events(workflow_id, type=DONE)) != 1:
            problems.append("the work was not done just once")
        evidence = [one for one in service.quarantine.entries() if one.workflow_id == workflow_id]
        if len(evidence) != 1 or evidence[0].sequence != DAMAGED:
            problems.append(f"{len(evidence)} pieces of evidence")
        if not service.audit.verify_chain_integrity(service._engine.kit.session_id)[0]:
            problems.append("the trail is broken")
    return problems


def main() -> None:
    name, options = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps({"kill_each_write": kill_each_write}[name](**options)))


if __name__ == "__main__":
    main()
