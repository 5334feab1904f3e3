"""A conversation of 1,000 turns with a checkpoint after each: size on disk, and does it get slower?"""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import holdfast
from benchmarks.holdfast_store import counted
from benchmarks.measure import Row, disk_usage, micros, p50, timed
from benchmarks.states import message
from holdfast import WorkflowState
from holdfast.domain.errors import StateSizeWarning

TURNS = 1000
PER_CHECKPOINT_BYTES = 1300


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    rows = []
    for length in (600, 1200):
        rows += _chat(folder / f"plain{length}", length, frozenset())
        rows += _chat(folder / f"promised{length}", length, frozenset({"messages"}))
    return rows


def _chat(folder: Path, length: int, append_only: frozenset[str]) -> list[Row]:
    folder.mkdir()
    service, _ = counted(folder)
    source = random.Random(length)
    state = WorkflowState(workflow_id="chat", session_id="bench")
    times = []
    for _ in range(TURNS):
        state.messages.append(message(source, length))
        times.append(timed(lambda: service.create_checkpoint("chat", state, append_only=append_only)))
    service.close()
    with holdfast.open(str(folder / "store"), read_only=True) as again:
        if again.restore_checkpoint("chat@latest").messages != state.messages:
            raise AssertionError("the chat read back is another one")
    promised = ", append-only" if append_only else ""
    name = f"chat, {length} B turns{promised}"
    return [_size_row(name, folder, state), _speed_row(name, times, bool(append_only))]


def _size_row(name: str, folder: Path, state: WorkflowState) -> Row:
    text = sum(len(message["content"]) for message in state.messages)
    used = disk_usage(folder / "store")
    bound = 3 * text + PER_CHECKPOINT_BYTES * TURNS
    told = f"{used / 1e6:.2f} MB on disk for {text / 1e6:.2f} MB of text; bound {bound / 1e6:.2f} MB"
    return Row("chat", f"{name}: size", told, "<= 3x text + 1.3 KB each", used <= bound)


def _speed_row(name: str, times: list[float], promised: bool) -> Row:
    first, last = p50(times[:100]), p50(times[-100:])
    told = f"first 100 {micros(first)}, last 100 {micros(last)} ({last / first:.2f}x)"
    if promised:
        return Row("chat", f"{name}: speed", told, "<= 1.5x", last <= 1.5 * first)
    return Row("chat", f"{name}: speed", told, "<= 1 ms slower", last - first <= 0.001)
