"""Patterns that users add: checked, and made fit to stand in one expression."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.domain.errors import ConfigError

_NAME = re.compile("[a-z0-9][a-z0-9-]{0,39}")
#: An escape or a class, in which a parenthesis is a letter; or the start of a group that captures.
_GROUP = re.compile(
    "(\\\\.|\\[\\^?\\]?(?:\\\\.|[^\\]\\\\])*\\])|\\((?:\\?P?<[A-Za-z_]\\w*>|(?!\\?))", re.DOTALL
)
_FLAGS = re.compile("\\(\\?([ims]+)\\)")
_ESCAPED = re.compile("\\\\[^1-9]|\\[\\^?\\]?(?:\\\\.|[^\\]\\\\])*\\]", re.DOTALL)
_NOT_LINEAR = re.compile("\\(\\?(?:[=!>(]|<[=!]|P=)|\\\\[1-9]|[*+?}]\\+")
_COUNTS = re.compile("[{,]([0-9]+)")
_COUNT_MAX = 1000
_ANCHOR = re.compile("[$^]|\\\\[AZzbB]")


def kind_name(name: str) -> str:
    """Write a name as placeholders show it: `Employee_Number` -> `employee-number`.

    Raises:
        ConfigError: nothing is left of it, or it is too long.
    """
    slug = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")
    if not _NAME.fullmatch(slug):
        raise ConfigError(
            f"{name!r} cannot name a kind of secret", hint="Use at most 40 letters, digits and hyphens."
        )
    return slug


def combine(patterns: Mapping[str, str]) -> str:
    """Join patterns to one expression, with one group each.

    Raises:
        ConfigError: a pattern is no regular expression, matches the empty text, or cannot be searched for
            in linear time.
    """
    return "|".join(f"({_prepared(name, pattern)})" for name, pattern in patterns.items())


def is_anchored(patterns: Mapping[str, str]) -> bool:
    """Tell whether a pattern may look at the ends of a text: then it must see each text by itself."""
    return any(_ANCHOR.search(pattern) for pattern in patterns.values())


def _prepared(name: str, pattern: str) -> str:
    plain = _ESCAPED.sub("", pattern)
    if _NOT_LINEAR.search(plain):
        raise _refusal(name, "it looks around or back, which cannot be searched for in linear time")
    if "\\Z" in pattern or any(int(count) > _COUNT_MAX for count in _COUNTS.findall(plain)):
        raise _refusal(name, f"only some engines know \\\\Z, or counts above {_COUNT_MAX}")
    flags = _FLAGS.match(pattern)
    body = pattern[flags.end() :] if flags else pattern
    body = _GROUP.sub(lambda found: found[1] or "(?:", body)
    prepared = f"(?{flags[1]}:{body})" if flags else f"(?:{body})"
    try:
        matches_nothing = re.compile(prepared, re.ASCII).search("") is not None
    except (re.error, OverflowError, RecursionError) as fault:
        raise _refusal(name, f"it is no regular expression ({fault})") from fault
    if matches_nothing:
        raise _refusal(name, "it matches the empty text")
    return prepared


def _refusal(name: str, why: str) -> ConfigError:
    return ConfigError(f"the pattern {name!r} cannot be used: {why}", hint="Change or remove the pattern.")
