"""Which checkpoints stay, and what can physically go.

Two separate questions: `select` decides by age, number, pin and phase; `removal` works out which
groups (a keyframe and the delta file after it) none of the kept checkpoints needs any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.domain.errors import ConfigError
from holdfast.domain.record import Entry, KeyframeEntry, Removal
from holdfast.domain.time import parse_timestamp
from holdfast.domain.value import value

_DAY_SECONDS = 86_400
_NUMBERS = (
    "retain_count",
    "retain_days",
    "max_per_phase",
    "keep_within_seconds",
    "keep_daily",
    "keep_weekly",
    "max_bytes",
)
_LIMITS = ("max_per_phase", "max_bytes")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Which checkpoints stay: what any rule keeps, as far as the two limits let it.

    Pinned checkpoints always stay, and so do two that do not hang on one keyframe.

    Attributes:
        retain_count: the last so many stay.
        retain_days: those younger than this stay.
        max_per_phase: a limit: of what the rules keep, at most so many of each phase.
        keep_within_seconds: those younger than this stay, too.
        keep_daily: the newest of each of the last so many days that have one stay.
        keep_weekly: the newest of each of the last so many weeks that have one stay.
        keep_tagged: whether those with a label always stay.
        max_bytes: a limit: of what the rules keep, the oldest go until the records of the rest have at most
            so many bytes.
    """

    retain_count: int = 10
    retain_days: int = 30
    #: Applies to checkpoints that have a phase.
    max_per_phase: int | None = None
    keep_within_seconds: float = 0.0
    keep_daily: int = 0
    keep_weekly: int = 0
    keep_tagged: bool = False
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is None and name in _LIMITS:
                continue
            if not isinstance(value, int | float) or not value >= 0:
                raise ConfigError(f"{name} is {value!r}", hint="Use 0 or more.")

    @property
    def youth(self) -> timedelta:
        """Checkpoints younger than this stay."""
        seconds = max(self.retain_days * _DAY_SECONDS, self.keep_within_seconds)
        return timedelta(seconds=min(seconds, timedelta.max.days * _DAY_SECONDS))

    def keeps_all(self, oldest: Entry, now: datetime) -> bool:
        """Tell by its oldest checkpoint alone that everything of a workflow stays, as mostly it does."""
        is_limited = self.max_per_phase is not None or self.max_bytes is not None
        return not is_limited and not oldest.pruned and now - parse_timestamp(oldest.timestamp) < self.youth


@value
class Selection:
    """The decision, as ascending sequences; tombstones are in neither part."""

    keep: tuple[int, ...]
    remove: tuple[int, ...]


def select(
    entries: Iterable[Entry],
    keyframe_sequences: Iterable[int],
    policy: RetentionPolicy,
    now: datetime,
) -> Selection:
    """Decide which checkpoints of a workflow stay."""
    living = sorted((entry for entry in entries if not entry.pruned), key=_sequence)
    always = _two_apart(living, keyframe_sequences)
    always.update(
        entry.sequence for entry in living if entry.pinned or (policy.keep_tagged and entry.label is not None)
    )
    wanted = always | _recent(living, policy, now) | _periodic(living, policy)
    keep = wanted - (_over_cap(living, wanted, policy.max_per_phase) - always)
    keep -= _over_budget(living, keep, policy.max_bytes, always)
    return Selection(
        keep=tuple(sorted(keep)),
        remove=tuple(entry.sequence for entry in living if entry.sequence not in keep),
    )


def removal(entries: Iterable[Entry], keyframes: Sequence[KeyframeEntry], keep: Collection[int]) -> Removal:
    """Work out what goes if just these checkpoints are kept; keeping none removes nothing.

    Restoring checkpoint s takes the newest keyframe k <= s and every record in (k, s]; its own record
    stays in any case, for its handler and states. Everything from the keyframe before the newest kept
    checkpoint's one stays too: from there a damaged newest keyframe is rebuilt.
    """
    ordered = sorted(entries, key=_sequence)
    wanted = set(keep)
    kept = [entry for entry in ordered if entry.sequence in wanted and not entry.pruned]
    if not kept:
        return Removal(sequences=())
    needed = _needed_groups(ordered, sorted(keyframe.sequence for keyframe in keyframes), kept)
    present = {keyframe.sequence for keyframe in keyframes}
    present.update(entry.group for entry in ordered if not entry.pruned)
    groups = tuple(sorted(present - needed))
    sequences = tuple(
        entry.sequence for entry in ordered if not entry.pruned and entry.sequence not in wanted
    )
    return Removal(
        sequences=sequences,
        groups=groups,
        # Its own event stays: the one after it, the first to be replayed, is verified on top of its hash.
        events_through=max(kept[0].event_seq - 1, 0) if sequences or groups else 0,
        blobs=_orphans(ordered, keyframes, needed, set(groups)),
    )


def _sequence(entry: Entry) -> int:
    return entry.sequence


def _recent(living: Sequence[Entry], policy: RetentionPolicy, now: datetime) -> set[int]:
    """Collect the last few and the young ones."""
    first_of_last, youth = len(living) - policy.retain_count, policy.youth
    return {
        entry.sequence
        for place, entry in enumerate(living)
        if place >= first_of_last or now - parse_timestamp(entry.timestamp) < youth
    }


def _periodic(living: Sequence[Entry], policy: RetentionPolicy) -> set[int]:
    """Collect the newest of each of the last days and weeks that have any, in UTC."""
    rules: tuple[tuple[int, Callable[[datetime], tuple[int, ...]]], ...] = (
        (policy.keep_daily, lambda moment: (moment.toordinal(),)),
        (policy.keep_weekly, lambda moment: moment.isocalendar()[:2]),
    )
    kept: set[int] = set()
    for count, period_of in rules:
        newest: dict[tuple[int, ...], int] = {}
        for entry in reversed(living):
            if len(newest) >= count:
                break
            newest.setdefault(period_of(parse_timestamp(entry.timestamp)), entry.sequence)
        kept.update(newest.values())
    return kept


def _over_budget(
    living: Sequence[Entry], wanted: set[int], max_bytes: int | None, always: Collection[int]
) -> set[int]:
    """Collect what does not fit any more, the newest counted first; what always stays is counted before."""
    if max_bytes is None:
        return set()
    room = max_bytes - sum(entry.length for entry in living if entry.sequence in always)
    over: set[int] = set()
    for entry in reversed(living):
        if entry.sequence in always or entry.sequence not in wanted:
            continue
        room -= entry.length
        # Once one does not fit, nothing older stays: gaps would be hard to understand.
        if room < 0:
            over.add(entry.sequence)
    return over


def _over_cap(living: Sequence[Entry], wanted: set[int], cap: int | None) -> set[int]:
    """Collect what exceeds the cap of its phase, the newest of each phase counted first."""
    over: set[int] = set()
    if cap is None:
        return over
    seen: Counter[int] = Counter()
    for entry in reversed(living):
        if entry.phase is None or entry.sequence not in wanted:
            continue
        seen[entry.phase] += 1
        if seen[entry.phase] > cap:
            over.add(entry.sequence)
    return over


def _two_apart(living: Sequence[Entry], keyframe_sequences: Iterable[int]) -> set[int]:
    """Pick the newest checkpoint and one that survives the loss of the newest one's keyframe."""
    if len(living) < 2:
        return {entry.sequence for entry in living}
    newest = living[-1].sequence
    usable = sorted(sequence for sequence in keyframe_sequences if sequence <= newest)
    # Before the newest keyframe, but not before the oldest: that one could not be restored.
    apart = [entry.sequence for entry in living if usable and usable[0] <= entry.sequence < usable[-1]]
    return {newest, apart[-1] if apart else living[-2].sequence}


def _needed_groups(ordered: Sequence[Entry], keyframes: Sequence[int], kept: Sequence[Entry]) -> set[int]:
    """Collect the groups whose keyframe or records a kept checkpoint is restored from."""
    furthest = {_keyframe_at(keyframes, entry.sequence): entry.sequence for entry in kept}
    needed = {entry.group for entry in kept}
    for keyframe, last in furthest.items():
        needed.add(keyframe)
        needed.update(entry.group for entry in _between(ordered, keyframe, last))
    newest_keyframe = _keyframe_at(keyframes, kept[-1].sequence)
    fallback = _keyframe_at(keyframes, newest_keyframe - 1) or newest_keyframe
    needed.update(keyframe for keyframe in keyframes if keyframe >= fallback)
    needed.update(entry.group for entry in _between(ordered, fallback, ordered[-1].sequence))
    return needed


def _keyframe_at(keyframes: Sequence[int], sequence: int) -> int:
    """Find the newest keyframe not after a sequence; 0, the empty state, if there is none."""
    place = bisect_right(keyframes, sequence)
    return keyframes[place - 1] if place else 0


def _between(ordered: Sequence[Entry], after: int, last: int) -> Sequence[Entry]:
    """Slice the entries with after < sequence <= last."""
    return ordered[bisect_right(ordered, after, key=_sequence) : bisect_right(ordered, last, key=_sequence)]


def _orphans(
    ordered: Sequence[Entry], keyframes: Sequence[KeyframeEntry], needed: set[int], gone: set[int]
) -> tuple[str, ...]:
    """Collect blobs that something going refers to and nothing staying does."""
    going: set[str] = set()
    staying: set[str] = set()
    for group, blobs in (
        *((entry.group, entry.blobs) for entry in ordered),
        *((keyframe.sequence, keyframe.blobs) for keyframe in keyframes),
    ):
        if group in gone:
            going.update(blobs)
        elif group in needed:
            staying.update(blobs)
    return tuple(sorted(going - staying))
