"""Fuzzing one target with atheris, in a process of its own that never comes back.

A finding is kept as a file and the fuzzing goes on; the same finding is kept once. What hangs or fills the
memory ends the process, and libFuzzer keeps the input.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.target import INPUT_BYTES_MAX, Target, verdict

MEMORY_MEGABYTES_MAX = 2_048
#: By the clock, on a machine that may be busy; an input that ends is measured by the processor.
HANGING_SECONDS = 120
_BEGAN = re.compile(r"^#\d+\s+INITED\s+cov: (\d+)", re.MULTILINE)
_COVERED = re.compile(r"^#\d+\s+\w+\s+cov: (\d+)", re.MULTILINE)
_EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
_LAST = re.compile(r"^#(\d+)\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """What one turn of a target gave, by what libFuzzer said about it."""

    executions: int
    coverage: int
    coverage_new: int
    exit: int


class Findings:
    """Keeps each finding once, with the input that led to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()

    def hear(self, target: Target, data: bytes) -> None:
        problem = verdict(target, data)
        if problem is None:
            return
        # Two inputs with the same error at the same line are the same finding.
        kind = problem.partition(": ")[0]
        if kind not in self._known:
            self._known.add(kind)
            self._keep(target, data, problem)

    def _keep(self, target: Target, data: bytes, problem: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        (self._folder / name).write_bytes(data)
        (self._folder / f"{name}.txt").write_text(problem + "\n", encoding="utf-8")


def fuzz(atheris: Any, target: Target, folder: Path, seconds: int, seed: int) -> Fuzzed:
    """Feed a target in a fork for some seconds."""
    log = folder / "logs" / f"{target.name}.log"
    for place in (folder / "crashes", folder / "temporary", log.parent, folder / "corpus" / target.name):
        place.mkdir(parents=True, exist_ok=True)
    pid = os.fork()
    if not pid:
        try:
            _go(atheris, target, folder, log, seconds, seed)
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    shutil.rmtree(folder / "temporary", ignore_errors=True)
    return _read(log.read_text(encoding="utf-8", errors="replace"), status)


def _go(atheris: Any, target: Target, folder: Path, log: Path, seconds: int, seed: int) -> None:
    # Whoever is ended by libFuzzer cleans nothing up.
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "temporary")
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(output, stream)
    corpus = folder / "corpus" / target.name
    for data in target.seeds():
        (corpus / f"seed-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
    findings = Findings(folder / "crashes")
    options = {
        "max_total_time": seconds,
        "seed": seed,
        "max_len": INPUT_BYTES_MAX,
        "timeout": HANGING_SECONDS,
        "rss_limit_mb": MEMORY_MEGABYTES_MAX,
        "artifact_prefix": f"{folder}/crashes/{target.name}-",
        "print_final_stats": 1,
    }
    arguments = [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(corpus)]
    atheris.Setup(arguments, lambda data: findings.hear(target, data))
    atheris.Fuzz()


def _read(log: str, status: int) -> Fuzzed:
    began, covered = _BEGAN.findall(log), [int(number) for number in _COVERED.findall(log)] or [0]
    executed = _EXECUTED.findall(log) or _LAST.findall(log) or ["0"]
    return Fuzzed(int(executed[-1]), covered[-1], covered[-1] - int(began[0]) if began else 0, status)
