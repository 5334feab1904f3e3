"""Redaction: what it adds to a commit, to a restore and to opening, and how fast it searches."""

from __future__ import annotations

import gc
import random
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import Row, interleaved, micros, p50
from benchmarks.states import ChangingState, text
from holdfast import WorkflowState
from holdfast.adapters.redaction import engine
from holdfast.domain.errors import StateSizeWarning
from holdfast.domain.redaction import Redactor

ROUNDS, BLOCK = 1_000, 20
ENGINES = ("re2", "re")
MB = 1_000_000
WORDS = "the plan is to read every file first and then to write down what was found in each of them, "


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    return _speed() + _commits() + _restores(folder) + _opening()


def _texts() -> dict[str, str]:
    source = random.Random(3)
    code = "    def step(self, name: str) -> int:\n        return self._known[name] + 1\n\n"
    return {
        "prose": WORDS * (MB // len(WORDS)),
        "code": code * (MB // len(code)),
        "random letters": text(source, MB),
    }


def _speed() -> list[Row]:
    """Texts without secrets, as almost all are."""
    rows = []
    for name in ENGINES:
        redactor = Redactor(bytes(32), engine(name))
        speeds = {what: _mb_per_second(redactor, whole) for what, whole in _texts().items()}
        told = ", ".join(f"{what} {speed:.0f} MB/s" for what, speed in speeds.items())
        slowest = min(speeds.values())
        bar, held = ("> 50 MB/s", slowest > 50) if name == "re2" else ("", None)
        rows.append(Row("redaction", f"search with {name}, 1 MB", told, bar, held))
    return rows


def _mb_per_second(redactor: Redactor, whole: str) -> float:
    tree = {"messages": [{"content": whole[at : at + 2_000]} for at in range(0, len(whole), 2_000)]}
    redactor.tree(tree)
    (times,) = interleaved(10, lambda: redactor.tree(tree))
    return len(whole) / p50(times) / MB


def _commits() -> list[Row]:
    return _commit_rows("prose", ProseState) + _commit_rows("random letters", ChangingState)


class ProseState(ChangingState):
    """A state of words, as people and models write them; random letters are the worst to search."""

    def step(self) -> WorkflowState:
        """Two new messages, anywhere, and a counter."""
        for _ in range(2):
            words = " ".join(self._source.choices(WORDS.split(), k=130))
            at = self._source.randrange(len(self.state.messages))
            self.state.messages[at] = {"role": "user", "content": f"{words} {self._source.random()}"}
        self.state.context["done"] += 1
        return self.state


def _commit_rows(what: str, kind: type[ChangingState]) -> list[Row]:
    """CPU of a commit of 20 KB, two edits, in memory: with and without, in turns."""
    sides: dict[str, dict[str, Any]] = {"off": {"redact": False}}
    sides |= {name: {"redact_engine": name} for name in ENGINES}
    spent = {name: _Side(kind, settings) for name, settings in sides.items()}
    gc.collect()
    for _ in range(ROUNDS // BLOCK):
        for side in spent.values():
            # As in a loop of its own: each meets warm caches.
            for _ in range(BLOCK):
                side.commit()
    plain = statistics.median(spent["off"].seconds)
    rows = []
    for name in ENGINES:
        more = statistics.median(spent[name].seconds) - plain
        bar, held = ("< 50 us", more < 50e-6) if name == "re2" else ("", None)
        told = f"{micros(max(more, 0))} more than {micros(plain)} of CPU"
        rows.append(Row("redaction", f"commit, 20 KB of {what}, two edits, {name}", told, bar, held))
    return rows


class _Side:
    """A service in memory, and what its commits cost."""

    def __init__(self, kind: type[ChangingState], settings: dict[str, Any]) -> None:
        self._service = holdfast.open("memory:", background=False, retain=False, **settings)
        self._changing = kind("bench", 20_000)
        self._service.create_checkpoint("bench", self._changing.step())
        self.seconds: list[float] = []

    def commit(self) -> None:
        state = self._changing.step()
        start = time.process_time()
        self._service.create_checkpoint("bench", state)
        self.seconds.append(time.process_time() - start)


def _restores(folder: Path) -> list[Row]:
    """A state without placeholders beside one that has them, 1 MB."""
    services = {}
    for name in ("clean", "redacted"):
        services[name] = holdfast.open(str(folder / name), background=False)
        changing = ChangingState("bench", MB)
        if name == "redacted":
            changing.state.context["password"] = "hunter2"
        services[name].create_checkpoint("bench", changing.step())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clean, redacted = interleaved(
            30,
            lambda: services["clean"].restore_checkpoint("bench@latest"),
            lambda: services["redacted"].restore_checkpoint("bench@latest"),
        )
    for service in services.values():
        service.close()
    told = f"p50 {micros(p50(clean))}, with placeholders to find {micros(p50(redacted))}"
    return [Row("redaction", "restore, 1 MB", told)]


def _opening() -> list[Row]:
    """A process of its own each time: to open a store, and to make its first checkpoint."""
    first = "s.create_checkpoint('w', {'a': 'b'})"
    calls = [_child(redact, what) for what in ("None", first) for redact in (False, True)]
    opened, opened_too, began, began_too = interleaved(12, *calls)
    told = f"{micros(max(p50(opened_too) - p50(opened), 0))} more to open"
    more = max(p50(began_too) - p50(began), 0)
    return [Row("redaction", "a new process", f"{told}, {micros(more)} more for its first checkpoint")]


def _child(redact: bool, what: str) -> Callable[[], object]:
    code = f"import holdfast; s = holdfast.open('memory:', redact={redact}); {what}"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)
