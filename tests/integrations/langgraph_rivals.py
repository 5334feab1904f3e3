"""Many at once on one thread of conversation, or on many: in threads, or as processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.domain.errors import CheckpointConflictError
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_graphs import counter

#: Whoever loses as often as this does not lose by chance.
TRIES_MAX = 400


def crowd(
    saver: HoldfastSaver, count: int, each: int, thread_of: Callable[[int], str]
) -> list[dict[str, Any]]:
    """Let threads run at once; answer what each of them did."""
    outcomes: list[dict[str, Any]] = []
    start = threading.Barrier(count)

    def work(number: int) -> None:
        start.wait()
        outcomes.append(worked(saver, number, each, thread_of(number)))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return outcomes


def worked(saver: HoldfastSaver, number: int, each: int, thread_id: str) -> dict[str, Any]:
    """Run a graph so many times, and again whenever another was faster; answer what was acknowledged."""
    graph = counter(1).compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": thread_id}}
    acknowledged: list[str] = []
    conflicts = tries = 0
    while len(acknowledged) < each and tries < TRIES_MAX:
        label = f"{number}.{len(acknowledged)}.{tries}"
        tries += 1
        try:
            answered = graph.invoke({"items": [label]}, config, durability="sync")
        except CheckpointConflictError:
            conflicts += 1
            continue
        if label not in answered["items"]:
            raise AssertionError(f"{label} is not in its own answer")
        acknowledged.append(label)
    return {"acknowledged": acknowledged, "conflicts": conflicts, "tries": tries}


def processes(
    url: str, folder: Path, count: int, each: int, thread_of: Callable[[int], str]
) -> list[dict[str, Any]]:
    """Let processes run at once; answer what each of them did."""
    # Importing takes longer than they run.
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.integrations.langgraph_rivals"])
    start = made.Barrier(count)
    children = [
        made.Process(
            target=_work, args=(url, start, number, each, thread_of(number), str(folder / f"{number}.json"))
        )
        for number in range(count)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * count
    return [json.loads((folder / f"{number}.json").read_text()) for number in range(count)]


def _work(url: str, start: Any, number: int, each: int, thread_id: str, answer: str) -> None:
    with HoldfastSaver.open(url) as saver:
        start.wait()
        Path(answer).write_text(json.dumps(worked(saver, number, each, thread_id)))
