"""The numbers of a store for whoever watches it: read in a thread of their own, and never while one waits.

What cannot be read is left out and said so; the rest is told all the same. Nothing here writes, or keeps a
writer waiting.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.application.audit.log_keeping import CHECKPOINT_FILE
from holdfast.application.insight.run_survey import RunNumbers, RunSurvey
from holdfast.application.insight.trail_counting import TrailCount, TrailNumbers
from holdfast.application.kit import Kit
from holdfast.application.quarantine_files import reports
from holdfast.domain.note import parse_note
from holdfast.domain.quarantine import Kind
from holdfast.domain.treehead import parse_head

_LOG = logging.getLogger("holdfast")

#: Numbers are at least so old before they are read again, and reading them takes a tenth of the time at most.
FRESH_SECONDS = 5.0
_REST_SHARE = 9
#: So long is waited for new ones before those from before are told.
PATIENCE_SECONDS = 2.0
_SURVEY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StoreNumbers:
    """What a store comes to.

    Attributes:
        store_bytes: what it takes, by kind: live, reclaimable, quarantine.
        free_bytes: of its disk; None where nobody can tell.
        quarantined: what is set aside and was not released, by kind.
        audit_entries: of the trail.
        unanchored: how many of them came after the last signed head.
        trail, runs: what those tell; None before they were read.
        readable: which parts could be read this time.
        read_at: when, by a clock that only goes forward.
    """

    store_bytes: Mapping[str, int] = field(default_factory=dict)
    free_bytes: int | None = None
    quarantined: Mapping[Kind, int] = field(default_factory=dict)
    audit_entries: int | None = None
    unanchored: int | None = None
    trail: TrailNumbers | None = None
    runs: RunNumbers | None = None
    readable: Mapping[str, bool] = field(default_factory=dict)
    read_at: float | None = None


class StoreWatch:
    """Keeps the numbers of one store at hand."""

    def __init__(
        self,
        kit: Kit,
        *,
        fresh_seconds: float = FRESH_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kit = kit
        self._fresh_seconds = fresh_seconds
        self._patience_seconds = patience_seconds
        self._now = now
        self._mutex = threading.Lock()
        self._reading: threading.Thread | None = None
        self._due_at = float("-inf")
        self._numbers = StoreNumbers()
        self._trail = TrailCount(kit.store)
        self._runs = RunSurvey(kit.store)

    def numbers(self) -> StoreNumbers:
        """Answer the numbers: new ones if those at hand are old and it does not take long, else these."""
        with self._mutex:
            if self._reading is None and self._now() >= self._due_at:
                self._reading = threading.Thread(target=self._read, name="holdfast-numbers", daemon=True)
                self._reading.start()
            reading = self._reading
        if reading is not None:
            reading.join(self._patience_seconds)
        return self._numbers

    def age_seconds(self) -> float | None:
        """Tell how old the numbers at hand are; None before the first were read."""
        read_at = self._numbers.read_at
        return None if read_at is None else self._now() - read_at

    def _read(self) -> None:
        began = self._now()
        numbers = replace(self._numbers, readable={})
        for part in (self._sizes, self._quarantine, self._entries, self._survey):
            numbers = self._tried(part, numbers)
        ended = self._now()
        with self._mutex:
            self._numbers = replace(numbers, read_at=ended)
            self._due_at = ended + max(self._fresh_seconds, _REST_SHARE * (ended - began))
            self._reading = None

    def _tried(self, part: Callable[[StoreNumbers], StoreNumbers], numbers: StoreNumbers) -> StoreNumbers:
        name = part.__name__.strip("_")
        try:
            numbers, is_read = part(numbers), True
        except Exception as problem:
            # Whatever is wrong with a store, whoever watches it has to see the rest, and that this failed.
            _LOG.warning("the numbers of the store are incomplete (%s): %s", name, problem)
            is_read = False
        return replace(numbers, readable={**numbers.readable, name: is_read})

    def _sizes(self, numbers: StoreNumbers) -> StoreNumbers:
        stats = self._kit.store.stats()
        space = self._kit.space() if self._kit.space is not None else None
        return replace(
            numbers,
            store_bytes=_bytes_by_kind(stats, numbers.store_bytes.get("quarantine", 0)),
            free_bytes=space[1] if space is not None else None,
            audit_entries=int(stats["audit_entries"]),
        )

    def _quarantine(self, numbers: StoreNumbers) -> StoreNumbers:
        standing = [report for report in reports(self._kit.store) if report.released is None]
        aside = sum(report.size_bytes for report in standing)
        sizes = {**numbers.store_bytes, "quarantine": aside}
        if "live" in sizes:
            sizes["live"] = max(sizes["live"] + numbers.store_bytes["quarantine"] - aside, 0)
        return replace(
            numbers,
            store_bytes=sizes,
            quarantined=Counter(report.kind for report in standing),
        )

    def _entries(self, numbers: StoreNumbers) -> StoreNumbers:
        entries = numbers.audit_entries or 0
        signed = self._kit.store.file(CHECKPOINT_FILE)
        anchored = 0 if signed is None else parse_head(parse_note(signed).text).size
        trail = self._trail.advance(entries)
        return replace(numbers, unanchored=max(entries - anchored, 0), trail=trail)

    def _survey(self, numbers: StoreNumbers) -> StoreNumbers:
        return replace(numbers, runs=self._runs.advance(_SURVEY_SECONDS))


def _bytes_by_kind(stats: Mapping[str, Any], quarantine_bytes: int) -> dict[str, int]:
    total = int(stats.get("disk_bytes", stats["bytes"]))
    reclaimable = int(stats.get("reclaimable_bytes", 0))
    live = max(total - reclaimable - quarantine_bytes, 0)
    return {"live": live, "reclaimable": reclaimable, "quarantine": quarantine_bytes}
