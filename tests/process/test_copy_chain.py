"""One store copied file -> PostgreSQL -> SQLite -> file: what arrives is what was sent, to the byte."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import holdfast
from holdfast.application.history import bare
from holdfast.bootstrap import open_store
from holdfast.config import Config
from tests.adapters.postgres import server
from tests.process.evidence import keep

WORKFLOWS = 10
#: Of those before, some are tombstones.
RETAINED = 20
STATES_COMPARED_EVERY = 13


def fill(url: str, checkpoints_each: int) -> None:
    """Conversations with a window, a large value now and then, and every other one pruned."""
    source = random.Random(5)
    with holdfast.open(url, retain=False) as service:
        for number in range(WORKFLOWS):
            state: dict[str, Any] = {"messages": []}
            futures = []
            for turn in range(checkpoints_each):
                state["messages"] = [*state["messages"][-30:], source.randbytes(90).hex()]
                if turn % 50 == 10:
                    state["picture"] = source.randbytes(20_000)
                futures.append(service.create_checkpoint(f"wf-{number}", state, wait=False))
            for future in futures:
                future.result()
            if number % 2:
                service.prune_checkpoints(f"wf-{number}", retain_count=RETAINED, retain_days=0)


def facts(url: str) -> dict[str, Any]:
    """Everything but the states: entries with their checksums, events, sums of keyframes."""
    store = open_store(Config(store=url), read_only=True, create=False)
    found = {
        workflow_id: (
            # Where the record of a tombstone lay says nothing any more.
            [bare(entry) if entry.pruned else entry for entry in store.entries(workflow_id)],
            list(store.events(workflow_id)),
            [(entry.sequence, entry.sha256) for entry in store.keyframes(workflow_id)],
        )
        for workflow_id in store.workflows()
    }
    store.close()
    return found


def states(url: str) -> dict[str, Any]:
    with holdfast.open(url, read_only=True, create=False) as service:
        return {
            str(meta.id): service.restore_checkpoint(meta.id).context
            for number in range(WORKFLOWS)
            for meta in service.list_checkpoints(f"wf-{number}", limit=100_000)[::STATES_COMPARED_EVERY]
            if not meta.pruned
        }


def copy(source: str, target: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "holdfast", "copy", source, target, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_store_that_went_through_all_the_others_comes_back_the_same(
    fast_folder: Path, campaign: bool
) -> None:
    urls = [f"file:{fast_folder / 'first'}", server.url(), f"sqlite:{fast_folder / 'store.db'}"]
    urls.append(f"file:{fast_folder / 'last'}")
    fill(urls[0], checkpoints_each=1_000 if campaign else 30)
    known, restored = facts(urls[0]), states(urls[0])
    counts = {"checkpoints": sum(len(entries) for entries, _, _ in known.values()), "states": len(restored)}
    assert any(entry.pruned for entries, _, _ in known.values() for entry in entries)
    for source, target in pairwise(urls):
        told = copy(source, target)
        counts[f"seconds to {target.partition(':')[0]}"] = told["seconds"]
        assert facts(target) == known
        assert states(target) == restored
    keep("copy", "file, PostgreSQL, SQLite, file", counts, [])
