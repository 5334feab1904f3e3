"""One box to find everything by: workflows, checkpoints, agents, labels, errors and entries of the trail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from urllib.parse import quote

from holdfast.application.insight.run_facts import RunFacts
from holdfast.application.insight.runs import RunBook, RunRow
from holdfast.application.kit import Kit
from holdfast.application.resolve import Found, living, resolve
from holdfast.domain.errors import CheckpointError
from holdfast.domain.ids import parse_ref
from holdfast.domain.trail import decode_entry

#: So much is looked through of what no index leads to, the newest first.
_CHECKSUMS_MAX = 20_000
_LEAVES_MAX = 10_000
_NAMES_MAX = 10
_HEX = re.compile(r"[0-9a-f][0-9a-f-]{3,63}")
_DIGEST = re.compile(r"(?:sha256:)?(?P<digits>[0-9a-f]{8,64})")


class HitKind(StrEnum):
    """What was found."""

    RUN = "run"
    CHECKPOINT = "checkpoint"
    AGENT = "agent"
    LABEL = "label"
    ERROR = "error"
    TRAIL = "trail"


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found.

    Attributes:
        id: what it goes by: a workflow's id, `WF@42`, a name, the index of an entry.
        href: where the API tells more.
        rank: smaller is nearer to what was written.
    """

    kind: HitKind
    id: str
    title: str
    detail: str
    href: str
    rank: int


def search(
    kit: Kit, book: RunBook, text: str, limit: int, *, with_trail: bool, with_errors: bool = True
) -> list[Hit]:
    """Find what a text may mean, what fits best first.

    Args:
        with_trail: whether the trail is looked through too.
        with_errors: whether the words of errors are, which may quote what states hold.
    """
    wanted = text.strip()
    if not wanted:
        return []
    rows = book.all()
    hits = [*_runs(rows, wanted), *_names(rows, wanted)]
    if with_errors:
        hits += _errors(rows, wanted)
    hits += _checkpoints(kit, book, wanted)
    if with_trail:
        hits += _trail(kit, wanted)
    unique = {(hit.kind, hit.id): hit for hit in sorted(hits, key=lambda hit: -hit.rank)}
    return sorted(unique.values(), key=lambda hit: (hit.rank, _ORDER.index(hit.kind)))[:limit]


_ORDER = tuple(HitKind)
_EXACT, _START, _INSIDE, _LOOSE = range(4)


def _fit(name: str, wanted: str) -> int | None:
    """Tell how well a name fits; None if it does not."""
    folded, sought = name.casefold(), wanted.casefold()
    if folded == sought:
        return _EXACT
    if folded.startswith(sought):
        return _START
    return _INSIDE if sought in folded else None


def _runs(rows: list[tuple[RunRow, RunFacts]], wanted: str) -> Iterator[Hit]:
    for row, _ in rows:
        rank = _fit(row.workflow_id, wanted)
        if rank is not None:
            detail = f"{row.status}, {_of(row.checkpoints, 'checkpoint')}, last active {row.last_activity}"
            yield Hit(HitKind.RUN, row.workflow_id, row.workflow_id, detail, _run(row.workflow_id), rank)


def _names(rows: list[tuple[RunRow, RunFacts]], wanted: str) -> Iterator[Hit]:
    """Find agents and labels, those of the most workflows first."""
    for kind, parameter in ((HitKind.AGENT, "agent"), (HitKind.LABEL, "label")):
        found: Counter[str] = Counter()
        for _, facts in rows:
            names = facts.agents if kind is HitKind.AGENT else facts.labels
            found.update(name for name in names if _fit(name, wanted) is not None)
        for name, count in found.most_common(_NAMES_MAX):
            href = f"/v1/runs?{parameter}={quote(name, safe='')}"
            rank = _fit(name, wanted) or _EXACT
            yield Hit(kind, name, name, f"in {_of(count, 'workflow')}", href, rank)


def _errors(rows: list[tuple[RunRow, RunFacts]], wanted: str) -> Iterator[Hit]:
    for row, facts in rows:
        if facts.error and wanted.casefold() in facts.error.casefold():
            title = f"{row.workflow_id}: {facts.error}"
            yield Hit(HitKind.ERROR, row.workflow_id, title, str(row.status), _run(row.workflow_id), _LOOSE)


def _checkpoints(kit: Kit, book: RunBook, wanted: str) -> Iterator[Hit]:
    """Find checkpoints by their names, by the beginning of a UUID, or by that of a checksum."""
    if "@" in wanted:
        found = _named(kit, wanted)
        if found is not None:
            yield _checkpoint(found, _EXACT)
    if _HEX.fullmatch(wanted.lower()):
        yield from (_checkpoint(found, _START) for found in _by_uuid(kit, wanted.lower()))
    digest = _DIGEST.fullmatch(wanted.lower())
    if digest:
        yield from (_checkpoint(found, _START) for found in _by_checksum(kit, book, digest["digits"]))


def _named(kit: Kit, wanted: str) -> Found | None:
    try:
        return None if parse_ref(wanted).path else resolve(kit.store, wanted)
    except CheckpointError:
        return None


def _by_uuid(kit: Kit, wanted: str) -> Iterator[Found]:
    try:
        prefix = parse_ref(wanted).uuid
        listed = kit.store.find(prefix) if prefix else []
    except CheckpointError:
        return
    kept = (Found(name, entry) for name, entry in listed if not entry.pruned)
    yield from islice(kept, _NAMES_MAX)


def _by_checksum(kit: Kit, book: RunBook, digits: str) -> Iterator[Found]:
    """Look through the newest checkpoints of the workflows that were active last."""
    left = _CHECKSUMS_MAX
    for row, _ in book.all():
        try:
            for entry in islice(living(kit.store, row.workflow_id), left):
                left -= 1
                if entry.checksum.removeprefix("sha256:").startswith(digits):
                    yield Found(row.workflow_id, entry)
        except CheckpointError:
            continue
        if left <= 0:
            return


def _trail(kit: Kit, wanted: str) -> Iterator[Hit]:
    """Find entries of the trail by their ids, or by the request that they belong to."""
    mark = wanted.encode("utf-8", "replace")
    if len(mark) < 8 or not wanted.isascii() or '"' in wanted:
        return
    size = kit.store.integrate()
    first = max(size - _LEAVES_MAX, 0)
    for index, line in enumerate(kit.store.leaves(after=first), first):
        if mark not in line:
            continue
        try:
            entry = decode_entry(line, None)
        except CheckpointError:
            continue
        if entry.id.startswith(wanted) or entry.correlation_id == wanted:
            rank = _EXACT if entry.id == wanted else _START
            detail = f"{entry.type} by {entry.actor or 'nobody who was named'}"
            yield Hit(HitKind.TRAIL, str(index), entry.id, detail, f"/v1/audit/entries/{index}", rank)


def _checkpoint(found: Found, rank: int) -> Hit:
    name, entry = str(found), found.entry
    detail = f"{entry.type}, {entry.status}, {entry.timestamp}"
    return Hit(HitKind.CHECKPOINT, name, name, detail, f"/v1/checkpoints/{quote(name, safe='@')}", rank)


def _run(workflow_id: str) -> str:
    return f"/v1/runs/{quote(workflow_id, safe='')}"


def _of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
