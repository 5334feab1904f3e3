"""Hazards of the storage core, each provoked by name: states, bases, bounds, tiny workflows, platforms."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast.bootstrap
from holdfast.application.service import CheckpointService
from holdfast.conformance.history import in_threads
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
)
from tests.process.evidence import keep
from tests.process.running import run

KB = 1024
MB = 1024 * KB


def context_of(service: CheckpointService, name: str) -> Any:
    return service.restore_checkpoint(name).context


# -- 2: two processes, one journal ---------------------------------------------------------------------


def test_hazard_02_two_processes_across_the_rings_end(fast_folder: Path) -> None:
    """A ring of a few frames, so that nearly every commit of one crosses what the other wrote."""
    plan = {"journal_bytes": 24576, "pad_bytes_max": 2500}
    result = run("children", "neighbour", seed=2, rounds=15, folder=str(fast_folder), plan=plan)
    assert result["violations"] == [] and result["kills"] == 15


# -- 8: the caller's state is the caller's -------------------------------------------------------------


def test_hazard_08_state_mutated_by_another_thread_during_the_call(tmp_path: Path) -> None:
    """Each checkpoint is one reading of the state, and the base of the next is what was stored."""
    numbers: list[int] = []
    state = {"numbers": numbers, "pad": ["x" * 50] * 200}
    stop = threading.Event()

    def mutate() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            numbers.append(number)
            if len(numbers) > 500:
                del numbers[:250]

    with holdfast.bootstrap.open(str(tmp_path / "store")) as service:

        def write() -> None:
            for _ in range(100):
                service.create_checkpoint("WF", state)
            stop.set()

        in_threads([mutate, write])
        last = service.create_checkpoint("WF", state, force=True)
        assert context_of(service, f"WF@{last.sequence}") == state
        for meta in service.list_checkpoints("WF", limit=200):
            seen = context_of(service, f"WF@{meta.id.sequence}")["numbers"]
            assert seen == list(range(seen[0], seen[0] + len(seen))) if seen else True


def test_hazard_08_a_mapping_that_grows_during_the_call_is_stored_or_refused(tmp_path: Path) -> None:
    growing: dict[str, int] = {"0": 0}
    stop = threading.Event()

    def mutate() -> None:
        for number in itertools.count(1):
            if stop.is_set():
                return
            growing[str(number % 500)] = number

    with holdfast.bootstrap.open(str(tmp_path / "store")) as service:
        stored: list[int] = []

        def write() -> None:
            for _ in range(15):
                try:
                    stored.append(service.create_checkpoint("WF", {"growing": growing}).sequence)
                except CheckpointError:
                    continue
            stop.set()

        in_threads([mutate, write])
        last = service.create_checkpoint("WF", {"growing": growing}, force=True)
        assert context_of(service, f"WF@{last.sequence}") == {"growing": growing}
        for sequence in set(stored):
            context_of(service, f"WF@{sequence}")


def test_hazard_08_state_changed_in_place_between_calls(tmp_path: Path) -> None:
    state: dict[str, Any] = {"messages": [{"role": "user", "parts": ["a"]}], "open": {}}
    snapshots = []
    with holdfast.bootstrap.open(str(tmp_path / "store")) as service:
        for number in range(40):
            state["messages"][0]["parts"].append(number)
            state["messages"].append({"role": "agent", "parts": [number]})
            state["open"][f"key-{number % 7}"] = number
            if number % 5 == 0:
                state["messages"].pop(0)
            service.create_checkpoint("WF", state)
            snapshots.append(copy.deepcopy(state))
    with holdfast.bootstrap.open(str(tmp_path / "store"), read_only=True) as service:
        for sequence, snapshot in enumerate(snapshots, start=1):
            assert context_of(service, f"WF@{sequence}") == snapshot


def test_hazard_08_state_changed_after_a_call_that_did_not_wait(tmp_path: Path) -> None:
    state: dict[str, Any] = {"items": []}
    expected, futures = [], []
    with holdfast.bootstrap.open(str(tmp_path / "store")) as service:
        for number in range(60):
            state["items"].append(number)
            expected.append(list(state["items"]))
            futures.append(service.create_checkpoint("WF", state, wait=False))
            state["items"][-1] = -number
            state["items"][-1] = number
        for future, items in zip(futures, expected, strict=True):
            assert context_of(service, f"WF@{future.result().sequence}") == {"items": items}


# -- 11: bases and blobs that change under us ----------------------------------------------------------


def test_hazard_11_an_evicted_base_is_read_back(tmp_path: Path) -> None:
    states: dict[str, dict[str, Any]] = {f"WF-{n}": {"items": [n], "text": "t" * 2000} for n in range(12)}
    with holdfast.bootstrap.open(str(tmp_path / "store"), cache_bytes=1) as service:
        for step in range(10):
            for workflow_id, state in states.items():
                state["items"].append(step)
                service.create_checkpoint(workflow_id, state)
        for workflow_id, state in states.items():
            assert context_of(service, workflow_id) == state
            assert context_of(service, f"{workflow_id}@5")["items"] == state["items"][:6]


def test_hazard_11_a_base_changed_by_another_process_is_a_conflict_and_then_right(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    with holdfast.bootstrap.open(root) as service:
        state: dict[str, Any] = {"by": []}
        for round_number in range(5):
            state["by"].append(f"us-{round_number}")
            service.create_checkpoint("WF", state)
            run("stating", "append_one", root=root, workflow_id="WF", item=f"them-{round_number}")
            stale = {"by": [*state["by"], "stale"]}
            with pytest.raises(CheckpointConflictError):
                service.create_checkpoint("WF", stale)
            state = context_of(service, "WF")
        assert state["by"] == [f"{who}-{n}" for n in range(5) for who in ("us", "them")]
        assert all(service.validate_checkpoint(f"WF@{n}").valid for n in range(1, 11))


def test_hazard_11_pruning_to_two_while_forking(tmp_path: Path, campaign: bool) -> None:
    rounds = 300 if campaign else 40
    forked: list[tuple[str, int]] = []
    done = threading.Event()
    with holdfast.bootstrap.open(str(tmp_path / "store"), blob_threshold_bytes=500) as service:
        service.create_checkpoint("WF", state_at(0))

        def write_and_prune() -> None:
            for number in range(1, rounds):
                service.create_checkpoint("WF", state_at(number))
                service.prune_checkpoints("WF", retain_count=2, retain_days=0)
            done.set()

        def fork() -> None:
            for number in itertools.count():
                if done.is_set():
                    return
                sequence = service.list_checkpoints("WF", limit=2)[-1].id.sequence
                try:
                    service.fork_workflow(f"WF@{sequence}", f"FORK-{number}")
                except (CheckpointNotFoundError, CheckpointWriteError):
                    continue
                forked.append((f"FORK-{number}", sequence))

        in_threads([write_and_prune, fork])
        assert forked
        for workflow_id, sequence in forked:
            assert context_of(service, workflow_id) == state_at(sequence - 1)


def state_at(number: int) -> dict[str, Any]:
    return {"number": number, "large": f"{number % 3}-" * 400, "items": list(range(number % 20))}


def test_hazard_11_blob_collection_against_a_dedup_hit_in_another_process(
    fast_folder: Path, campaign: bool
) -> None:
    rounds = 300 if campaign else 30
    violations = run("stating", "dedup_against_prune", root=str(fast_folder / "store"), rounds=rounds)
    keep("hazards", "blob collection against dedup", {"rounds": rounds}, violations)
    assert violations == []


# -- 12: bounds at every step --------------------------------------------------------------------------


def item(number: int, size_bytes: int = 180) -> dict[str, Any]:
    return {"id": number, "text": f"{number:08d}" * (size_bytes // 8)}


def alternating(count: int) -> Iterator[dict[str, Any]]:
    one, other = [item(n) for n in range(count)], [item(n + 10**6) for n in range(count)]
    yield from ({"items": one if step % 2 else other} for step in itertools.count())


def shrinking(count: int) -> Iterator[dict[str, Any]]:
    items = [item(n) for n in range(count)]
    for _ in itertools.count():
        yield {"items": list(items)}
        items = items[: len(items) * 4 // 5] or [item(n) for n in range(count)]


def sliding(count: int) -> Iterator[dict[str, Any]]:
    yield from ({"items": [item(n) for n in range(step, step + count)]} for step in itertools.count())


def resorted(count: int) -> Iterator[dict[str, Any]]:
    for step in itertools.count():
        yield {"items": sorted((item(n) for n in range(count)), key=lambda i: i["id"] * (step + 7) % 1009)}


def rewritten(count: int) -> Iterator[dict[str, Any]]:
    yield from ({"items": [item(step * count + n) for n in range(count)]} for step in itertools.count())


SHAPES = [alternating, shrinking, sliding, resorted, rewritten]
SIZES = [(20 * KB, 40), (1 * MB, 5)]
CAMPAIGN_SIZES = [*SIZES, (10 * MB, 6)]
#: A line of a delta or keyframe is JSON, the sizes that the rule looks at are packed: a little smaller.
JSON_FACTOR = 1.3
SLACK_BYTES = 96 * KB


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_hazard_12_storage_and_restore_are_bounded_at_every_step(
    shape: Callable[[int], Iterator[dict[str, Any]]], fast_folder: Path, campaign: bool
) -> None:
    for size_bytes, steps in CAMPAIGN_SIZES if campaign else SIZES:
        settings = {"blob_threshold_bytes": 64 * MB, "warn_bytes": 64 * MB, "limit_bytes": 64 * MB}
        with holdfast.bootstrap.open(str(fast_folder / f"store-{size_bytes}"), **settings) as service:
            for state in itertools.islice(shape(size_bytes // 220), steps):
                sequence = service.create_checkpoint("WF", state).sequence
                service.flush()
                check_bounds(service, sequence)
            assert context_of(service, "WF") == state


def check_bounds(service: CheckpointService, sequence: int) -> None:
    """Restoring reads about twice the state at most; keyframes never outweigh what was said."""
    store = service._engine.kit.store
    entries = {entry.sequence: entry for entry in store.entries("WF")}
    keyframes = store.keyframes("WF")
    start = max(keyframe.sequence for keyframe in keyframes)
    read = next(k.length for k in keyframes if k.sequence == start)
    read += sum(entry.length for number, entry in entries.items() if start < number <= sequence)
    state_bytes = entries[sequence].state_bytes
    assert read <= JSON_FACTOR * 2 * state_bytes + SLACK_BYTES, (sequence, read, state_bytes)
    said = sum(max(entry.length, 2 * KB) for entry in entries.values())
    largest = max(entry.state_bytes for entry in entries.values())
    stored = sum(keyframe.length for keyframe in keyframes)
    assert stored <= JSON_FACTOR * (2 * keyframes[0].length + said + 2 * largest) + SLACK_BYTES, sequence


# -- 13: tiny workflows --------------------------------------------------------------------------------


def test_hazard_13_tiny_workflows_take_little_space_and_few_inodes(tmp_path: Path, campaign: bool) -> None:
    count = 10_000 if campaign else 300
    root = tmp_path / "store"
    with holdfast.bootstrap.open(str(root)) as service:
        for number in range(count):
            for step in range(3):
                service.create_checkpoint(f"WF-{number}", {"step": step, "note": "n" * 200})
    found = list(root.rglob("*"))
    blocks = sum(path.lstat().st_blocks * 512 for path in found)
    # Shards are shared by all workflows, so the more there are, the less each of them pays.
    shards = sum(
        len(list((root / top).iterdir())) for top in ("checkpoints", "events") if (root / top).is_dir()
    )
    counts = {"workflows": count, "bytes_each": blocks // count, "inodes_each": (len(found) - shards) / count}
    keep("hazards", "tiny workflows", counts, [])
    assert counts["inodes_each"] <= 8
    assert (blocks - 4096 * shards) / count <= 32 * KB


def test_hazard_13_more_workflows_than_descriptors(fast_folder: Path, campaign: bool) -> None:
    count = 1000 if campaign else 300
    root = str(fast_folder / "store")
    assert run("stating", "few_descriptors", root=root, workflows=count, descriptors=256) == []
