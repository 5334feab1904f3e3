"""Where a credential may begin: what makes a backtracking engine fast enough.

`re` tries every alternative at every letter. Here the few places are found where one can begin at all,
with searches that the interpreter does in C; only there, only those that can begin so are tried. What is
found is what the whole expression finds, from left to right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product

from holdfast.domain import assignments
from holdfast.domain.catalogue import ALTERNATIVES, Match
from holdfast.domain.credential_patterns import IN_CONTEXT, LONG_RUN_CHARS, RUN_CHARS, TOKENS

#: So far before the first run of letters a token begins at most.
_BEFORE_CHARS = 36
#: What must stand in a text in which something is assigned.
_SIGNS = (b"=", b":", b">", b"--", b"%3d")
#: What may stand before the word by which an assignment is found, and belongs to it.
_OPTION = re.compile(b"--(?:[a-z0-9]{1,12}-){0,4}(?:[a-z]{1,12}[_-]?)?\\Z")
_OWNER = re.compile(f"(?:{'|'.join(assignments.OWNERS)})[_-]?\\Z".encode())
_LOOK_BACK_CHARS = 80

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_SET = re.compile("\\[([A-Za-z]{1,6}|_-)\\]")
_CHOICE = re.compile("\\(\\?:([A-Za-z0-9_-]+(?:\\|[A-Za-z0-9_-]+)*)\\)")
_META = frozenset("[](){}?*+|.^$\\")


def heads(expression: str) -> set[str]:
    """Read the letters that an expression can begin with, as far as they are few; those of any case small."""
    found: list[tuple[str, ...]] = []
    rest = expression if expression.startswith("(?:") else expression.removeprefix("(")
    while rest:
        several = _SET.match(rest) or _CHOICE.match(rest)
        if several:
            choices = tuple(several[1].split("|")) if rest[0] == "(" else _distinct(several[1])
            taken = several.end()
        elif rest[0] == "\\" and not rest[1].isalnum():
            choices, taken = (rest[1],), 2
        elif rest[0] not in _META:
            choices, taken = (rest[0],), 1
        else:
            break
        rest = rest[taken:]
        if rest[:1] in ("?", "*", "{"):
            break
        found.append(choices)
    return {"".join(letters) for letters in product(*found)}


def _distinct(letters: str) -> tuple[str, ...]:
    """Give the letters of a set; both cases of one letter as the small one."""
    return (letters.lower()[0],) if len(letters) == 2 and len(set(letters.lower())) == 1 else tuple(letters)


def trie(words: Iterable[str]) -> str:
    """Write an alternation in which each letter is looked at once; a word stands for all that begin so."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    if "" in by_first:
        return ""
    branches = [re.escape(first) + trie(rest) for first, rest in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def _by_head(first: int, count: int, *, any_case: bool) -> dict[bytes, frozenset[int]]:
    """Say which alternatives can begin with which letters, the shortest of each kind of beginning."""
    known: dict[str, set[int]] = defaultdict(set)
    for number in range(first, first + count):
        for head in heads(ALTERNATIVES[number]):
            known[head.lower() if any_case else head].add(number)
    short = [head for head in known if not any(head != other and head.startswith(other) for other in known)]
    return {
        head.encode(): frozenset(
            number for other, numbers in known.items() if other.startswith(head) for number in numbers
        )
        for head in short
    }


_ASSIGNMENT = len(IN_CONTEXT)
_ASSIGNED = frozenset({_ASSIGNMENT})
_KEYWORDS = tuple(word.encode() for word in assignments.KEYWORDS)
_CONTEXTS = _by_head(0, _ASSIGNMENT, any_case=True)
#: A byte of some heads that is rarer than they are, and found in no time.
_RARE = {b"://": b"@", b"q~": b"~", b"%3a%2f%2f": b"%"}
_TOKENS = _by_head(_ASSIGNMENT + 1, len(TOKENS), any_case=False)
_PARTED = frozenset(head for head in _TOKENS if b"_" in head or b"-" in head)
_FUSED = tuple(head for head in _TOKENS if head not in _PARTED)
_ANY_HEAD = re.compile(trie(head.decode() for head in _TOKENS).encode())
_FUSED_HEAD = re.compile(trie(head.decode() for head in _FUSED).encode())
#: From here on, searches for one head after the other are faster than one for all of them.
_LONG_CHARS = 512


class _RunFinder:
    """Finds runs of at least so many bytes out of a set."""

    def __init__(self, letters: frozenset[int], length: int) -> None:
        self._table = bytes(97 if code in letters else 32 for code in range(256))
        self._run = b"a" * length

    def runs(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Give where runs begin and end."""
        flat = data.translate(self._table)
        start = flat.find(self._run)
        while start >= 0:
            end = flat.find(b" ", start)
            end = end if end >= 0 else len(flat)
            yield start, end
            start = flat.find(self._run, end)


_RUNS = _RunFinder(_LETTERS, RUN_CHARS)
_LONG_RUNS = _RunFinder(_LETTERS | frozenset(b"+/=%"), LONG_RUN_CHARS)
#: Places and the alternatives that can begin there.
Places = dict[int, frozenset[int]]


def places(text: str) -> Places:
    """Find every place where an alternative can begin."""
    # One byte for one letter, so that places in the bytes are places in the text.
    data = text.encode("ascii", "replace")
    small = data.lower()
    found: Places = {}
    for head, numbers in _CONTEXTS.items():
        if (head not in _RARE or _RARE[head] in small) and head in small:
            _note(found, _all(small, head), numbers)
    if any(sign in small for sign in _SIGNS):
        for word in _KEYWORDS:
            if word in small:
                _note(found, _assigned(small, word), _ASSIGNED)
    for at, head in _token_heads(data):
        _note(found, (at,), _TOKENS[head])
    return found


def _note(found: Places, where: Iterable[int], numbers: frozenset[int]) -> None:
    for at in where:
        found[at] = numbers | found[at] if at in found else numbers


def _all(data: bytes, word: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
    at = data.find(word, start, end)
    while at >= 0:
        yield at
        at = data.find(word, at + 1, end)


def _assigned(small: bytes, word: bytes) -> Iterator[int]:
    """Find where an assignment to a name with this word in it can begin."""
    for at in _all(small, word):
        before = small[max(0, at - _LOOK_BACK_CHARS) : at]
        if word != b"key":
            yield at
        elif owner := _OWNER.search(before):
            yield at - len(owner[0])
        if b"--" in before and (option := _OPTION.search(before)):
            yield at - len(option[0])


def _token_heads(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Find heads of tokens in and before runs of letters."""
    rest = bytearray()
    for start, end in _LONG_RUNS.runs(data):
        yield from _heads_between(data, max(0, start - _BEFORE_CHARS), end)
        if end - start >= _LONG_CHARS:
            # An image in base64 holds thousands of shorter runs: all of them have been looked at.
            rest = rest or bytearray(data)
            rest[start:end] = bytes(end - start)
    for start, end in _RUNS.runs(bytes(rest) or data):
        yield from _heads_between(data, max(0, start - _BEFORE_CHARS), end)


def _heads_between(data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    is_parted = data.find(b"_", start, end) >= 0 or data.find(b"-", start, end) >= 0
    if end - start < _LONG_CHARS or is_parted:
        head = _ANY_HEAD if is_parted else _FUSED_HEAD
        match = head.search(data, start, end)
        while match:
            yield match.start(), match[0]
            match = head.search(data, match.start() + 1, end)
        return
    for word in _FUSED:
        for at in _all(data, word, start, end):
            yield at, word


class _Chosen:
    """A few alternatives, compiled."""

    def __init__(self, numbers: frozenset[int]) -> None:
        chosen = sorted(numbers)
        self._pattern = re.compile("|".join(ALTERNATIVES[number] for number in chosen), re.ASCII)
        self._groups = [group for number in chosen for group in _groups_of(number)]

    def match(self, text: str, at: int) -> Match | None:
        """Match at a place; the group is counted among those of the whole expression."""
        found = self._pattern.match(text, at)
        if found is None:
            return None
        group = found.lastindex or 1
        return Match(*found.span(), self._groups[group - 1], *found.span(group))


def _groups_of(number: int) -> range:
    """Give the groups of an alternative, counted in the whole expression."""
    more = len(assignments.FORMS) - 1
    if number == _ASSIGNMENT:
        return range(number + 1, number + 2 + more)
    return (
        range(number + 1, number + 2) if number < _ASSIGNMENT else range(number + 1 + more, number + 2 + more)
    )


class CandidateScanner:
    """Scans for the known expression with the standard library's engine."""

    def __init__(self) -> None:
        self._chosen: dict[frozenset[int], _Chosen] = {}

    def matches(self, text: str) -> Iterator[Match]:
        """Give the matches from left to right."""
        found = places(text)
        end = 0
        for at in sorted(found):
            if at >= end:
                match = self._choose(found[at]).match(text, at)
                if match is not None:
                    end = match.end
                    yield match

    def _choose(self, numbers: frozenset[int]) -> _Chosen:
        chosen = self._chosen.get(numbers)
        if chosen is None:
            chosen = self._chosen[numbers] = _Chosen(numbers)
        return chosen
