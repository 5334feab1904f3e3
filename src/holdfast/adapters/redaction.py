"""The engines that search for secrets: re2 if it is installed, else the standard library's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.domain import user_patterns
from holdfast.domain.catalogue import EXPRESSION, Compile, Match, Scanner
from holdfast.domain.errors import ConfigError
from holdfast.domain.redaction import Rules

NAMES = ("auto", "re2", "re")
#: With its usual 8 MiB re2 gives up its fast way on texts that look like many credentials at once.
_MEMORY_MAX_BYTES = 64 * 1024 * 1024


def engine(name: str = "auto") -> Compile:
    """Give the engine of that name.

    Raises:
        ConfigError: the name is unknown, or its package is not installed.
    """
    if name not in NAMES:
        raise ConfigError(f"the engine {name!r} is unknown", hint=f"Use one of {', '.join(NAMES)}.")
    has_re2 = find_spec("re2") is not None
    if name == "re2" and not has_re2:
        raise ConfigError(
            "the engine re2 needs the package google-re2", hint="Install holdfast[redaction], or use re."
        )
    return _compile_re2 if has_re2 and name != "re" else _compile_re


def read_rules(path: str) -> Rules:
    """Read what a user hides and allows beside what is hidden anyway: a TOML file.

    Raises:
        ConfigError: it cannot be read, or says what cannot be done.
    """
    # Most have no such file.
    import tomllib

    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        raise ConfigError(f"the patterns for redaction cannot be read ({fault})", place=path) from fault
    patterns = given.pop("patterns", {})
    lists = {name: given.pop(name, []) for name in _LISTS}
    if given or not _is_table(patterns) or not all(map(_is_list, lists.values())):
        raise ConfigError(
            "the file says what redaction does not know",
            place=path,
            hint=f"It may have a table of texts, patterns, and lists of texts: {', '.join(_LISTS)}.",
        )
    for name in (*patterns, *lists["keys"]):
        user_patterns.kind_name(name)
    user_patterns.combine(patterns)
    return Rules(patterns, **{name: frozenset(items) for name, items in lists.items()})


_LISTS = ("keys", "allowed_keys", "allowed_values")


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# Stores of one process search for the same, and preparing that takes longer than opening them.
@lru_cache(maxsize=16)
def _compile_re2(expression: str) -> Scanner:
    re2 = import_module("re2")
    try:
        return _Re2Scanner(re2, expression)
    except re2.error as fault:
        why = fault.args[0].decode() if isinstance(fault.args[0], bytes) else fault
        raise ConfigError(f"re2 does not take the pattern ({why})") from fault


@lru_cache(maxsize=16)
def _compile_re(expression: str) -> Scanner:
    # Takes some time to prepare, which nobody waits for who has re2.
    from holdfast.domain.candidates import CandidateScanner

    return CandidateScanner() if expression == EXPRESSION else _ReScanner(expression)


def _forget() -> None:
    """Compile anew in a forked child: re2 searches without the interpreter's lock, with locks of its own."""
    _compile_re2.cache_clear()
    _compile_re.cache_clear()
    # It remembers what it compiled by itself, and would hand out the very locks that nobody lets go of here.
    if (re2 := sys.modules.get("re2")) is not None:
        re2.purge()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class _ReScanner:
    """Searches with the standard library's engine, letter by letter."""

    def __init__(self, expression: str) -> None:
        self._pattern = re.compile(expression, re.ASCII)

    def matches(self, text: str) -> Iterator[Match]:
        """Give the matches from left to right."""
        for found in self._pattern.finditer(text):
            group = found.lastindex or 0
            yield Match(*found.span(), group, *found.span(group))


class _Re2Scanner:
    """Searches without groups first: that is all that most texts need, and several times as fast."""

    def __init__(self, re2: Any, expression: str) -> None:
        self._re2 = re2
        self._expression = expression
        self._quick = self._compiled(never_capture=True)
        self._exact: Any = None

    def _compiled(self, *, never_capture: bool) -> Any:
        options = self._re2.Options()
        options.never_capture = never_capture
        options.log_errors = False
        options.max_mem = _MEMORY_MAX_BYTES
        return self._re2.compile(self._expression, options)

    def matches(self, text: str) -> Iterator[Match]:
        """Give the matches from left to right."""
        # The engine's own way from bytes back to letters takes thirty times as long as the search.
        data = text.encode("utf-8", "replace")
        if self._quick.search(data) is None:
            return iter(())
        found = self._in_bytes(data)
        return found if len(data) == len(text) else _in_letters(found, data)

    def _in_bytes(self, data: bytes) -> Iterator[Match]:
        if self._exact is None:
            # Made when the first text has a match, for it takes long. Two threads may do so at once: there is
            # no lock that a fork could leave held.
            self._exact = self._compiled(never_capture=False)
        for found in self._exact.finditer(data):
            group = int(found.lastindex or 0)
            (start, end), (secret_start, secret_end) = found.span(), found.span(group)
            yield Match(start, end, group, secret_start, secret_end)


def _in_letters(matches: Iterator[Match], data: bytes) -> Iterator[Match]:
    """Count places in letters instead of bytes; each byte is looked at once."""
    at = letters = 0
    for start, end, group, secret_start, secret_end in matches:
        places = {}
        for place in sorted({start, end, secret_start, secret_end}):
            letters += len(data[at:place].decode())
            places[place] = letters
            at = place
        yield Match(places[start], places[end], group, places[secret_start], places[secret_end])
