"""Audit entries of writers that die: each tells of one checkpoint, or of nothing but itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import verify_session
from holdfast.ports import Store

MOMENT = datetime(2026, 1, 11, tzinfo=UTC)
#: Stands in entries that belong to no workflow, and nowhere else.
ALONE = "told-alone"
SHOWN_MAX = 3


def told(session_id: str, workflow_id: str, label: str) -> AuditEntry:
    """Tell of the checkpoint with a label."""
    return AuditEntry(MOMENT, AuditType.CHECKPOINT_CREATED, session_id, workflow_id, facts={"label": label})


def told_alone(session_id: str, writer: str, number: int) -> AuditEntry:
    """Tell something that no checkpoint shows; writers count theirs from one."""
    facts = {"kind": ALONE, "writer": writer, "number": number}
    return AuditEntry(MOMENT, AuditType.AGENT_DECISION, session_id, facts=facts)


def check(store: Store) -> list[str]:
    """Say which chain is broken, which entry is not in the tree once, what was not told once."""
    found: list[str] = []
    lines: list[bytes] = []
    for session_id in store.sessions():
        report = verify_session(store.trail(session_id), session_id)
        found += [f"{session_id}: {fault}" for fault in report.faults[:SHOWN_MAX]]
        lines += store.trail(session_id)
    # A tree of broken chains says nothing more.
    if found or not lines:
        return found
    return [*_check_tree(store, lines), *_check_told(store, lines), *_check_alone(lines)]


def _check_tree(store: Store, lines: list[bytes]) -> Iterator[str]:
    size = store.integrate()
    if size != len(lines) or Counter(store.leaves()) != Counter(lines):
        yield f"the tree has {size} leaves for {len(lines)} entries, or not the same"
    if list(store.waiting()):
        yield "entries wait that were there when the tree was made"


def _check_told(store: Store, lines: Iterable[bytes]) -> Iterator[str]:
    entries = (decode_entry(line, None) for line in lines)
    told = Counter(
        (str(entry.workflow_id), str(entry.facts["label"])) for entry in entries if "label" in entry.facts
    )
    recorded = Counter(
        (name, str(entry.label)) for name in store.workflows() for entry in store.entries(name)
    )
    for key in sorted((told - recorded) | (recorded - told), key=str)[:SHOWN_MAX]:
        yield f"{key}: recorded {recorded[key]} times and told {told[key]} times: lost, or there twice"


def _check_alone(lines: Iterable[bytes]) -> Iterator[str]:
    """Who went on to its next entry was told that the one before is kept."""
    numbers: dict[str, Counter[int]] = {}
    for line in lines:
        if ALONE.encode() in line:
            facts = decode_entry(line, None).facts
            numbers.setdefault(str(facts["writer"]), Counter())[int(facts["number"])] += 1
    for writer, counted in numbers.items():
        wrong = [number for number in range(1, max(counted) + 1) if counted[number] != 1]
        if wrong:
            yield f"{writer}: entries {wrong[:SHOWN_MAX]} are lost or there twice"
