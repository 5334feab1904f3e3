"""How one sequence became another: trim equal ends, then hold on to unique equal items."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Splice(NamedTuple):
    """At `at` remove so many items and insert `new[start:stop]`.

    Splices are applied left to right: when one is applied, everything before `at` is final already.
    """

    at: int
    remove: int
    start: int
    stop: int


def align(old: Sequence[bytes], new: Sequence[bytes]) -> list[Splice]:
    """Find few splices that turn `old` into `new`."""
    head, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    splices = []
    old_at = new_at = head
    for old_match, new_match in [*_anchors(old, new, head, old_end, new_end), (old_end, new_end)]:
        gap = _gap(old, new, old_at, old_match, new_at, new_match)
        if gap:
            splices.append(gap)
        old_at, new_at = old_match + 1, new_match + 1
    return splices


def _gap(
    old: Sequence[bytes], new: Sequence[bytes], old_at: int, old_end: int, new_at: int, new_end: int
) -> Splice | None:
    """Describe what lies between two matches, without the equal items next to them."""
    if old_at == old_end and new_at == new_end:
        return None
    head, tail = common_ends(old[old_at:old_end], new[new_at:new_end])
    if head + tail == old_end - old_at == new_end - new_at:
        return None
    return Splice(new_at + head, old_end - old_at - head - tail, new_at + head, new_end - tail)


def common_ends(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Count the equal items at the head and, of the others, at the tail."""
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail, most = 0, most - head
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _anchors(
    old: Sequence[bytes], new: Sequence[bytes], head: int, old_end: int, new_end: int
) -> Iterator[tuple[int, int]]:
    """Yield the longest run of pairs of items that are unique on both sides, rising on both."""
    if head in (old_end, new_end) or old_end - head == new_end - head == 1:
        return
    in_old, in_new = Counter(old[head:old_end]), Counter(new[head:new_end])
    place = {new[at]: at for at in range(head, new_end) if in_new[new[at]] == 1}
    pairs = [(at, place[old[at]]) for at in range(head, old_end) if old[at] in place and in_old[old[at]] == 1]
    yield from _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pick the longest subsequence whose second members rise (patience sorting)."""
    tops: list[int] = []
    top_pair: list[int] = []
    before: list[int] = []
    for number, (_, position) in enumerate(pairs):
        pile = bisect_left(tops, position)
        before.append(top_pair[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [position]
        top_pair[pile : pile + 1] = [number]
    chosen = []
    number = top_pair[-1] if top_pair else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]
