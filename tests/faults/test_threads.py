"""Many threads while the store comes and goes: nothing is lost, doubled or out of order, nobody hangs."""

from __future__ import annotations

import random
import threading

import pytest

from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.ladder import Climb
from tests.application.shelters import Gated, gated_kit

WRITERS, COMMITS = 6, 40
WAIT_SECONDS = 120


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_write_while_the_store_comes_and_goes(seed):
    gate = Gated(gated_kit(climb=Climb(1, 0.001, 0.01), memory_bytes=200_000, background=True))
    told: dict[str, list[int]] = {f"WF-{n}": [] for n in range(WRITERS)}
    problems: list[BaseException] = []

    def write(workflow_id):
        try:
            for n in range(COMMITS):
                if n % 3 == 2:
                    gate.service.append_event(workflow_id, "FACT", {"n": n}, wait=n % 2 == 0)
                else:
                    state = {"n": n, "text": "x" * 500}
                    gate.service.create_checkpoint(workflow_id, state, wait=n % 4 != 1)
                told[workflow_id].append(n)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(name,), daemon=True) for name in told]
    for thread in threads:
        thread.start()
    dice = random.Random(seed)
    while any(thread.is_alive() for thread in threads):
        gate.gate.takes = dice.choice(["everything", "events", "nothing"])
        threads[0].join(0.005)
        try:
            gate.service.flush()
        except CheckpointWriteError:
            # Somebody's commits wait, or were shut out this very moment.
            continue
    gate.gate.takes = "everything"
    for thread in threads:
        thread.join(WAIT_SECONDS)
    gate.climb()
    gate.service.flush()
    assert problems == []
    for workflow_id, numbers in told.items():
        metas = sorted(gate.service.list_checkpoints(workflow_id), key=lambda meta: meta.id.sequence)
        found = [gate.service.restore_checkpoint(meta.id).context["n"] for meta in metas]
        assert found == [n for n in numbers if n % 3 != 2]
        facts = [event.data["n"] for event in gate.service.events(workflow_id, type="FACT")]
        assert facts == [n for n in numbers if n % 3 == 2]
    assert gate.service.audit.verify(payloads=True).faults == ()
    gate.service.close()
