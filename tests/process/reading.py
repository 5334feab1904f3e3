"""Readers beside writers: run as `python -m tests.process.reading NAME JSON`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast.adapters.filesystem.overlay import Overlay
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, PermissionDeniedError
from tests.process import commits
from tests.process.child import Child, Report, start
from tests.process.children import Plan, write_until_killed
from tests.process.commits import Acknowledged

NOBODY = 65534
ROUNDS_PER_STORE = 20
FOUR = ("WF-0", "WF-1", "WF-2", "WF-3")


def _writer(root: str, plan: dict[str, Any] | None = None) -> Child:
    options = {"keyframes": True, "prunes": True, "pad_bytes_max": 6000, **(plan or {})}
    child = start(_write_nearby, Plan(root, workflows=FOUR, **options))
    child.read_line()
    return child


def _write_nearby(report: Report, stop: int, plan: Plan) -> None:
    # What is read about a commit long after it tells little about how soon the commit can be seen.
    report.stay_near()
    write_until_killed(report, stop, plan)


def _take_in(child: Child, told: Acknowledged, seen: int, lines: int) -> int:
    """Note at least so many more lines of the report, and all that is there; answers how many in all."""
    for _ in range(lines):
        child.read_line()
    child.read_what_is_there()
    for line in child.lines[seen:]:
        told.note(line)
    return len(child.lines)


def _in_rounds(
    options: dict[str, Any], work: Callable[[str, int, dict[str, Any]], list[str]]
) -> dict[str, Any]:
    """Do so many rounds, with a new store now and then: a reader takes as long as there is to read."""
    reads, violations = 0, list[str]()
    while reads < options["rounds"] and not violations:
        rounds = min(options["rounds"] - reads, ROUNDS_PER_STORE)
        violations = work(f"{options['root']}/{reads}", rounds, options)
        reads += rounds
    return {"reads": reads, "violations": [text[:500] for text in violations[:5]]}


def beside_prunes(options: dict[str, Any]) -> dict[str, Any]:
    """Read everything, again and again, while another process commits, prunes and recycles."""
    return _in_rounds(options, _read_beside)


def _read_beside(root: str, rounds: int, options: dict[str, Any]) -> list[str]:
    told, violations, seen = Acknowledged(), list[str](), 0
    child = _writer(root, options.get("plan"))
    if options.get("is_blind"):
        # The negative control: readers, but not the writer, know nothing but the files.
        patch.object(Overlay, "add", lambda *_: None).start()
    readers = [
        FilesystemStore.open(root, read_only=True),
        FilesystemStore.open(root, journal_bytes=65536, background=False),
    ]
    for number in range(rounds):
        seen = _take_in(child, told, seen, 3)
        try:
            violations += _look(readers[number % 2], told)
        except CheckpointError as error:
            violations.append(f"round {number}, reader {number % 2}: {error!r}")
        if violations:
            break
    child.kill()
    child.end()
    for reader in readers:
        reader.close()
    return violations


def _look(store: FilesystemStore, told: Acknowledged) -> list[str]:
    """What a reader sees while things move: whole lines, and everything acknowledged before it looked."""
    found = []
    for workflow_id, known in told.commits.items():
        entries = {entry.sequence: entry for entry in store.entries(workflow_id)}
        lost = [s for s, checksum in known.items() if s not in entries or entries[s].checksum != checksum]
        if lost:
            found.append(f"{workflow_id}: acknowledged and not seen: {lost[:5]}")
        events = list(store.events(workflow_id))
        if len(events) < commits.EVENTS_PER_COMMIT * max(known):
            found.append(f"{workflow_id}@{max(known)}: acknowledged and only {len(events)} events seen")
        found += commits.check_event_lines(workflow_id, events)
        if entries:
            found += _look_at_records(store, workflow_id, max(entries))
    return found


def _look_at_records(store: FilesystemStore, workflow_id: str, newest: int) -> list[str]:
    first = max(commits.group_of(newest) - commits.GROUP_SIZE, 1)
    try:
        records = list(store.records(workflow_id, first, newest))
    except CheckpointNotFoundError:
        # Pruned since the listing.
        return []
    for sequence, data in enumerate(records, start=first):
        fields = json.loads(data) if data.endswith(b"\n") and b"\0" not in data else {}
        if fields.get("seq") != sequence:
            return [f"{workflow_id}@{sequence}: half a record {data[:60]!r}"]
    return []


def as_nobody(options: dict[str, Any]) -> list[str]:
    """Drop every right, then read everything and try to write."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    told = Acknowledged()
    for workflow_id, known in options["told"].items():
        told.commits[workflow_id] = {int(sequence): checksum for sequence, checksum in known.items()}
    reader = FilesystemStore.open(options["root"], read_only=True)
    found = commits.check_store(reader, told)
    reader.close()
    try:
        FilesystemStore.open(options["root"])
    except PermissionDeniedError:
        return found
    except BaseException as error:
        return [*found, f"opening to write: {error!r}"]
    return [*found, "opening to write was not refused"]


def copies(options: dict[str, Any]) -> dict[str, Any]:
    """Copy a store that is being written, the journal first: it holds everything acknowledged before."""
    return _in_rounds(options, _copy_beside)


def _copy_beside(root: str, rounds: int, options: dict[str, Any]) -> list[str]:
    told, violations, seen = Acknowledged(), list[str](), 0
    child = _writer(root, options.get("plan"))
    for number in range(rounds):
        seen = _take_in(child, told, seen, 20)
        before = {workflow_id: dict(known) for workflow_id, known in told.commits.items()}
        copy = Path(f"{root}-copy-{number}")
        copy_store(Path(root), copy, leave_out=options.get("leave_out", ""))
        seen = _take_in(child, told, seen, 0)
        violations += [f"copy {number}: {text}" for text in _missing(copy, before, told)]
        shutil.rmtree(copy)
    child.kill()
    child.end()
    return violations


def _missing(copy: Path, before: dict[str, dict[int, str]], told: Acknowledged) -> list[str]:
    """What was acknowledged before a copy was made, and is not in it."""
    found = []
    reader = FilesystemStore.open(str(copy), read_only=True)
    for workflow_id, known in before.items():
        # What was pruned while the copy was made may be missing from it; what is kept may not.
        kept = {s: c for s, c in known.items() if s >= told.prune_asked.get(workflow_id, 0)}
        there = {entry.sequence: entry.checksum for entry in reader.entries(workflow_id)}
        lost = [sequence for sequence, checksum in kept.items() if there.get(sequence) != checksum]
        if lost:
            found.append(f"{workflow_id}: acknowledged and not there: {lost[:5]}")
    reader.close()
    return found


def copy_store(root: Path, copy: Path, *, leave_out: str = "") -> None:
    """Copy as an auditor would who knows of the journal; files that vanish meanwhile were pruned."""
    shutil.copytree(root / "journal", copy / "journal", ignore=shutil.ignore_patterns(leave_out))
    for source in sorted(root.rglob("*")):
        relative = source.relative_to(root)
        if source.is_dir():
            (copy / relative).mkdir(parents=True, exist_ok=True)
        elif relative.parts[0] != "journal":
            try:
                data = source.read_bytes()
            except FileNotFoundError:
                continue
            (copy / relative).write_bytes(data)


LOOPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "beside_prunes": beside_prunes,
    "as_nobody": as_nobody,
    "copies": copies,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
