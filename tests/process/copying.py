"""Copies that are killed and go on: run as `python -m tests.process.copying NAME JSON`."""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.application.history import History, first_event, look, read_events, read_records
from holdfast.application.transport import copying, shipping
from holdfast.application.transport.arrival import Arrival, Prior
from holdfast.application.transport.copying import Outcome
from holdfast.application.transport.divergence import find_standing
from holdfast.bootstrap import open_store
from holdfast.config import Config
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import EventRecord, Head
from holdfast.ports import Store
from tests.application.copies import copy, eventful, holdings, past, states
from tests.process.child import Report, start

JOURNAL_BYTES = 65536
#: So few commits at once that a copy has many moments to die in.
GROUP_COUNT = 3
EVENTS_BYTES = 400


def opened(url: str, *, read_only: bool = False) -> Store:
    return open_store(Config(store=url, journal_bytes=JOURNAL_BYTES), read_only=read_only)


def make_source(url: str) -> None:
    """A store in which everything happened once."""
    store = opened(url)
    eventful(store)
    store.close()


def make_impostor(url: str) -> None:
    """A store with workflows of the same names and lengths that went another way."""
    store = opened(url)
    told = past(store)
    for workflow_id in ("A", "B", "fork"):
        told.checkpoint(workflow_id, "another way", times=140)
    told.event("C", "another way")
    told.event("C", "and on")
    store.close()


# -- what is killed --------------------------------------------------------------------------------


def copy_until_killed(
    report: Report, _: int, source_url: str, target_url: str, trusts: bool, workflow_ids: tuple[str, ...] = ()
) -> None:
    """Copy some workflows, or all, telling about each step; what fails is told too."""
    shipping.GROUP_COUNT_MAX, shipping.EVENTS_BYTES_MAX = GROUP_COUNT, EVENTS_BYTES
    if trusts:
        trust_the_target()
    source, target = opened(source_url, read_only=True), opened(target_url)

    def tell(workflow_id: str, done: int, total: int) -> None:
        report.say("did", workflow_id, done)

    result = copy(source, target, *workflow_ids, on_progress=tell)
    for one in result.of(Outcome.FAILED):
        report.say("failed", one.workflow_id, 0, str(one.error).replace("\n", " "))
    target.close()


def trust_the_target() -> None:
    """Lie, for a negative control: go on after the target's last numbers without comparing any checksum."""

    def stand(source: Store, target: Store, history: History) -> Head:
        return target.head(history.workflow_id)

    def read(store: Store, history: History, after: int = 0, hash_before: str = "") -> Iterator[EventRecord]:
        return (event for event in read_events(store, history) if event.seq > after)

    vars(copying)["find_standing"] = stand
    vars(shipping)["read_events"] = read
    vars(copying)["Arrival"] = Unverified


class Unverified(Arrival):
    """Believes that everything arrived."""

    def verify(
        self, history: History, prior: Prior, waiting: frozenset[int], on_progress: Callable[[int], None]
    ) -> None:
        """Do nothing."""


# -- the loop that kills ---------------------------------------------------------------------------


def kill_loop(options: dict[str, Any]) -> dict[str, Any]:
    """Kill copies into one target after the other; each target is taken up again until it is complete."""
    rng = random.Random(options["seed"])
    folder, scheme, trusts = options["folder"], options["scheme"], options["trusts"]
    source, impostor = f"{folder}/source", f"{folder}/impostor"
    make_source(source)
    make_impostor(impostor)
    result: dict[str, Any] = {"kills": 0, "copies": 0, "refused": 0, "violations": []}
    # Where the copies are faster than who kills them, it takes more of them until all has been seen.
    while not (result["violations"] or (result["kills"] >= options["rounds"] and result["refused"])):
        target = f"{scheme}:{folder}/target-{result['copies']}"
        kills_before = result["kills"]
        while _is_killed(rng, source, target, result, trusts):
            label = f"seed {options['seed']}, kill {result['kills']}"
            result["violations"] += [f"{label}: {text}" for text in check_part(source, target)]
            if result["kills"] == kills_before + 2:
                result["refused"] += _try_impostor(impostor, target, result["violations"], trusts)
        result["copies"] += 1
        result["violations"] += check_whole(source, target)
    return result


def _is_killed(rng: random.Random, source: str, target: str, result: dict[str, Any], trusts: bool) -> bool:
    """Run one copy and kill it at some moment; False if it came to its end before."""
    child = start(copy_until_killed, source, target, trusts)
    for _ in range(rng.randrange(1, 60)):
        if child.read_line() is None:
            break
    for _ in range(rng.randrange(20_000)):
        pass  # Not to wait for anything: only so that death comes at any instant.
    child.kill()
    status = child.end()
    result["violations"] += [line for line in child.lines if line.startswith("failed")]
    if status not in (0, -signal.SIGKILL):
        result["violations"].append(f"the copy ended by itself: {status}")
    result["kills"] += status == -signal.SIGKILL
    return status == -signal.SIGKILL and not result["violations"]


def _try_impostor(impostor: str, target: str, violations: list[str], trusts: bool) -> int:
    """Copy another history over a part: all of it that is there must be refused, and nothing change."""
    before = held(target)
    if not before:
        return 0
    child = start(copy_until_killed, impostor, target, trusts, tuple(before))
    if child.end() != 0:
        violations.append("the impostor's copy ended by itself")
    refused = {line.split()[1] for line in child.lines if line.startswith("failed")}
    after = held(target)
    for workflow_id in before:
        if after[workflow_id] != before[workflow_id] or workflow_id not in refused:
            violations.append(f"another history was mixed into {workflow_id}")
    return len(refused)


def held(url: str) -> dict[str, Any]:
    """Everything that a store holds, or why it cannot be told."""
    store = opened(url)
    try:
        return holdings(store)
    except CheckpointError as error:
        return dict.fromkeys(store.workflows(), str(error))
    finally:
        store.close()


def check_part(source_url: str, target_url: str) -> list[str]:
    """What has arrived is whole: it verifies, and stands in the source's history."""
    source, target = opened(source_url, read_only=True), opened(target_url)
    try:
        return [text for name in sorted(target.workflows()) for text in _check_workflow(source, target, name)]
    finally:
        source.close()
        target.close()


def _check_workflow(source: Store, target: Store, workflow_id: str) -> list[str]:
    try:
        find_standing(source, target, look(source, workflow_id))
        arrived = look(target, workflow_id)
        list(read_records(target, arrived))
        list(read_events(target, arrived))
        for sha256 in arrived.blobs():
            target.blob(sha256)
    except CheckpointError as error:
        return [f"{workflow_id}: {error}"]
    same = first_event(target, workflow_id) in (0, first_event(source, workflow_id))
    return [] if same else [f"{workflow_id}: the first events did not arrive"]


def check_whole(source_url: str, target_url: str) -> list[str]:
    """Everything is equal: bytes, listings, states."""
    source, target = opened(source_url, read_only=True), opened(target_url)
    try:
        found = {
            name: read(source) == read(target) for name, read in (("holdings", holdings), ("states", states))
        }
        found["store"] = not [finding for finding in target.check() if finding.harm]
    except CheckpointError as error:
        return [f"{target_url}: {error}"]
    finally:
        source.close()
        target.close()
    return [f"{target_url}: the {name} differ" for name, is_equal in found.items() if not is_equal]


LOOPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"kill": kill_loop}


def main() -> None:
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
