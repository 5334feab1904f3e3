"""SQLite and PostgreSQL: a durable checkpoint beside one raw insert with the same driver and durability."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import holdfast
from benchmarks.chat import PER_CHECKPOINT_BYTES, TURNS
from benchmarks.measure import Row, interleaved, micros, p50, p95
from benchmarks.raw_sql import RawPostgres, RawSqlite, table_bytes
from benchmarks.states import ChangingState, message
from benchmarks.writers import together
from holdfast import CheckpointService, WorkflowState
from holdfast.domain.errors import StateSizeWarning

ROUNDS = 400
STATE_BYTES = 20_000
PROCESSES = 8
#: Enough that what a process does once, the plans of its statements above all, is a small part.
COMMITS_EACH = 300


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    folder = folder.resolve()
    return [*_sqlite(folder), *_postgres(folder)]


def _sqlite(folder: Path) -> list[Row]:
    url = f"sqlite:{folder / 'store.db'}"
    with _open(url) as service:
        raw = RawSqlite(folder / "raw.db")
        rows = [_commit("SQLite", service, raw)]
        raw.close()
    chat = folder / "chat.db"
    text = _chat(f"sqlite:{chat}")
    used = sum(path.stat().st_size for path in folder.glob("chat.db*"))
    return [*rows, _chat_row("SQLite", text, used)]


def _postgres(folder: Path) -> list[Row]:
    url = f"postgresql+embedded:{folder / 'server'}"
    with _open(url) as service:
        raw = RawPostgres(folder / "server")
        rows = [_commit("PostgreSQL", service, raw), _writers(service), *_processes(url)]
        before = table_bytes(raw)
        text = _chat(url)
        rows.append(_chat_row("PostgreSQL", text, table_bytes(raw) - before))
        raw.close()
    return rows


def _open(url: str) -> CheckpointService:
    return holdfast.open(url, retain=False)


def _commit(name: str, service: CheckpointService, raw: Callable[[bytes], None]) -> Row:
    changing = ChangingState("bench", STATE_BYTES)
    data = os.urandom(STATE_BYTES)
    service.create_checkpoint("bench", changing.step())
    ours, inserted = interleaved(
        ROUNDS,
        lambda: service.create_checkpoint("bench", changing.state),
        lambda: raw(data),
        before=changing.step,
        block=20,
    )
    service.create_checkpoint("bench", changing.state)
    if service.restore_checkpoint("bench@latest").messages != changing.state.messages:
        raise AssertionError("what was read back is not what was written")
    ratio = p50(ours) / p50(inserted)
    both = f"{ratio:.2f}x a raw insert ({micros(p50(inserted))})"
    told = f"p50 {micros(p50(ours))}, p95 {micros(p95(ours))}, {both}"
    return Row("stores", f"{name}: 20 KB checkpoint", told, "<= 1.5x", ratio <= 1.5)


def _writers(service: CheckpointService) -> Row:
    alone, _ = together(service, 1, 200)
    many, _ = together(service, 64, 25)
    one_rate, rate = 200 / alone, 64 * 25 / many
    told = f"{rate:.0f}/s, {rate / one_rate:.1f}x one writer ({one_rate:.0f}/s)"
    return Row("stores", "PostgreSQL: 64 writers", told, ">= 2.5x", rate >= 2.5 * one_rate)


def _processes(url: str) -> list[Row]:
    """Each with a session of its own, as processes have; and all in one, whose chain is then raced for."""
    one_rate = _rate(url, 1)
    rows = []
    for what, session_id, bar in (("", "", ">= 2x"), (" in one session", "shared", "")):
        rate = _rate(url, PROCESSES, session_id)
        told = f"{rate:.0f}/s, {rate / one_rate:.1f}x one process ({one_rate:.0f}/s)"
        held = rate >= 2 * one_rate if bar else None
        rows.append(Row("stores", f"PostgreSQL: {PROCESSES} processes{what}", told, bar, held))
    return rows


def _rate(url: str, count: int, session_id: str = "") -> float:
    """Commits per second of so many processes, from their start of work to the last one's end of it."""
    command = [sys.executable, "-m", "benchmarks.stores", url, str(COMMITS_EACH)]
    started = [
        subprocess.Popen(
            [*command, f"p{count}-{n}{session_id}", session_id or f"s{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    _hear(started, "ready")
    began = time.perf_counter()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    _hear(started, "done")
    seconds = time.perf_counter() - began
    for process in started:
        process.communicate()
    return count * COMMITS_EACH / seconds


def _hear(started: list[subprocess.Popen[str]], word: str) -> None:
    for process in started:
        assert process.stdout is not None
        if process.stdout.readline().strip() != word:
            raise AssertionError(f"a process did not get to {word!r}")


def work(url: str, each: int, workflow_id: str, session_id: str) -> None:
    """Commit in a process of its own, once told to go."""
    changing = ChangingState(workflow_id, STATE_BYTES, session_id=session_id)
    with _open(url) as service:
        service.create_checkpoint(workflow_id, changing.step())
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(each):
            service.create_checkpoint(workflow_id, changing.step())
        print("done", flush=True)


def _chat(url: str) -> int:
    """Bytes of text in a conversation that was checkpointed after each turn."""
    source = random.Random(600)
    state = WorkflowState(workflow_id="chat", session_id="bench")
    with _open(url) as service:
        for _ in range(TURNS):
            state.messages.append(message(source, 600))
            service.create_checkpoint("chat", state)
    return sum(len(turn["content"]) for turn in state.messages)


def _chat_row(name: str, text: int, used: int) -> Row:
    bound = 3 * text + PER_CHECKPOINT_BYTES * TURNS
    told = f"{used / 1e6:.2f} MB for {text / 1e6:.2f} MB of text; bound {bound / 1e6:.2f} MB"
    return Row("stores", f"{name}: chat, 600 B turns: size", told, "<= 3x text + 1.3 KB each", used <= bound)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
