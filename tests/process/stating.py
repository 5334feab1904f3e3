"""Processes that keep states through the service: run as `python -m tests.process.stating NAME JSON`."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import sys
import threading
from collections.abc import Callable
from typing import Any

import holdfast.bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointConflictError
from tests.process.child import Report, start

LARGE = "shared value " * 500
SMALL_JOURNAL_BYTES = 128 * 1024


def append_one(options: dict[str, Any]) -> list[str]:
    """Add one item to the newest state of a workflow."""
    with holdfast.bootstrap.open(options["root"]) as service:
        state: dict[str, Any] = service.restore_checkpoint(options["workflow_id"]).context
        state["by"].append(options["item"])
        service.create_checkpoint(options["workflow_id"], state)
    return []


def dedup_against_prune(options: dict[str, Any]) -> list[str]:
    """One process prunes the last user of a blob while another finds it stored and refers to it."""
    root, rounds = options["root"], options["rounds"]
    holdfast.bootstrap.open(root).close()

    def prune(report: Report, _: int) -> None:
        with holdfast.bootstrap.open(root, blob_threshold_bytes=1000) as service:
            for number in range(rounds):
                service.create_checkpoint("WF-a", {"n": number, "large": LARGE})
                for step in range(3):
                    service.create_checkpoint("WF-a", {"n": number, "step": step})
                service.prune_checkpoints("WF-a", retain_count=2, retain_days=0)

    def refer(report: Report, _: int) -> None:
        with holdfast.bootstrap.open(root, blob_threshold_bytes=1000) as service:
            for number in range(rounds):
                service.create_checkpoint(f"WF-b{number}", {"n": number, "large": LARGE})
                report.say("ack", f"WF-b{number}", 1)

    children = [start(prune), start(refer)]
    violations = [f"child {number} failed" for number, child in enumerate(children) if child.end() != 0]
    acknowledged = [line.split()[1] for line in children[1].lines]
    with holdfast.bootstrap.open(root, read_only=True) as service:
        for workflow_id in acknowledged:
            violations += _compare(service, workflow_id, {"n": int(workflow_id[4:]), "large": LARGE})
    return violations


def _compare(service: CheckpointService, name: str, expected: dict[str, Any]) -> list[str]:
    try:
        found = service.restore_checkpoint(name).context
    except Exception as error:
        return [f"{name}: {error!r}"]
    return [] if found == expected else [f"{name}: another state came back"]


def few_descriptors(options: dict[str, Any]) -> list[str]:
    """More workflows than this process may have files open, all written and read again."""
    limit = options["descriptors"]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    names = [f"WF-{number}" for number in range(options["workflows"])]
    with holdfast.bootstrap.open(options["root"]) as service:
        for step in range(2):
            for name in names:
                service.create_checkpoint(name, {"step": step, "name": name})
        found = [text for name in names for text in _compare(service, name, {"step": 1, "name": name})]
    held = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return [*found, f"{held} descriptors are still open"] if held > 30 else found


def compete(options: dict[str, Any]) -> list[str]:
    """Processes add to one counter; each addition is there once."""
    root, each = options["root"], options["each"]

    def work(report: Report, _: int) -> None:
        with holdfast.bootstrap.open(root) as service:
            done = 0
            while done < each:
                newest = service.list_checkpoints("WF", limit=1)
                value = service.restore_checkpoint(newest[0].id).context["value"] if newest else 0
                seen = newest[0].id.sequence if newest else 0
                try:
                    service.create_checkpoint("WF", {"value": value + 1}, expected_sequence=seen)
                    done += 1
                except CheckpointConflictError:
                    continue

    children = [start(work) for _ in range(options["processes"])]
    violations = ["a process failed" for child in children if child.end() != 0]
    with holdfast.bootstrap.open(root, read_only=True) as service:
        return violations + _compare(service, "WF", {"value": each * options["processes"]})


def killed(options: dict[str, Any]) -> dict[str, Any]:
    """Kill a process that keeps growing states; every acknowledged one comes back equal."""
    rng, violations, acknowledged = random.Random(options["seed"]), [], 0
    for number in range(options["rounds"]):
        root = f"{options['folder']}/{number // 5}"
        child = start(_keep_states, root)
        for _ in range(rng.randrange(2, 40)):
            child.read_line()
        child.kill()
        child.end()
        acknowledged += len(child.lines)
        with holdfast.bootstrap.open(root, journal_bytes=SMALL_JOURNAL_BYTES) as service:
            for line in child.lines[-12:]:
                _, workflow_id, sequence, step = line.split()
                violations += _compare(service, f"{workflow_id}@{sequence}", state_of(workflow_id, int(step)))
            newest = service.list_checkpoints("WF-0", limit=1)
            if newest and not service.validate_checkpoint(newest[0].id).valid:
                violations.append(f"round {number}: the newest checkpoint does not validate")
        if violations:
            break
    return {"kills": options["rounds"], "acknowledged": acknowledged, "violations": violations[:10]}


def state_of(workflow_id: str, step: int) -> dict[str, Any]:
    """A state that grows, is rewritten in part, and now and then carries a large value."""
    state: dict[str, Any] = {"name": workflow_id, "step": step, "log": [f"step {n}" for n in range(step)]}
    state["table"] = {f"k{n}": step // (n + 1) for n in range(20)}
    if step % 7 == 0:
        state["large"] = f"{step} " * 2000
    return state


def _keep_states(report: Report, _: int, root: str) -> None:
    settings = {"journal_bytes": SMALL_JOURNAL_BYTES, "blob_threshold_bytes": 2000}
    service = holdfast.bootstrap.open(root, **settings)

    def write(workflow_id: str) -> None:
        latest = service.load_latest(workflow_id)
        first = latest.context["step"] + 1 if latest else 1
        for step in range(first, first + 10_000):
            made = service.create_checkpoint(workflow_id, state_of(workflow_id, step))
            report.say("ack", workflow_id, made.sequence, str(step))

    threads = [threading.Thread(target=write, args=(f"WF-{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forked(options: dict[str, Any]) -> list[str]:
    """Fork while threads of the parent commit through the service; each child commits through it too."""
    root, violations = options["root"], []
    stop = threading.Event()
    with holdfast.bootstrap.open(root) as service:

        def write(workflow_id: str) -> None:
            for number in itertools.count(1):
                if stop.is_set():
                    return
                service.create_checkpoint(workflow_id, {"number": number, "list": list(range(number))})

        def child_work(report: Report, _: int, number: int) -> None:
            for step in range(3):
                service.create_checkpoint(f"WF-c{number}", {"step": step})
            report.say("ack", f"WF-c{number}", 3)

        threads = [threading.Thread(target=write, args=(f"WF-p{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        for number in range(options["forks"]):
            child = start(child_work, number)
            if child.end() != 0 or len(child.lines) != 1:
                violations.append(f"child {number} failed")
        stop.set()
        for thread in threads:
            thread.join()
    with holdfast.bootstrap.open(root, read_only=True) as service:
        for number in range(options["forks"]):
            violations += _compare(service, f"WF-c{number}", {"step": 2})
        for n in range(3):
            found = service.restore_checkpoint(f"WF-p{n}").context
            violations += _compare(service, f"WF-p{n}", {**found, "list": list(range(found["number"]))})
    return violations


LOOPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "append_one": append_one,
    "dedup_against_prune": dedup_against_prune,
    "few_descriptors": few_descriptors,
    "compete": compete,
    "killed": killed,
    "forked": forked,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
