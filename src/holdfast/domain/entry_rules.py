"""What an audit entry may say, the same for who writes and for who reads one; rules tell what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.plainjson import quoted

FACTS_MAX = 16
FACT_CHARS_MAX = 512
NUMBER_MAX = 2**63 - 1
#: Those that are written by themselves: the commitment, and two that say where a session ends.
OWN_FACTS = 3
OUTCOMES = frozenset(Outcome)

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_FACT_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
#: The one spelling of a time; whether there is such a day, the calendar tells.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{6}Z")


def facts_problem(data: Mapping[str, Any], limit: int = FACTS_MAX) -> str:
    """Say why these are no plain references; empty if they are."""
    if len(data) > limit:
        return f"there are more than {limit}"
    for name, fact in data.items():
        if type(name) is not str or not _is_fact_name(name):
            return f"{ascii(name)[:40]} is no name of a fact"
        kind = type(fact)
        if kind is str:
            is_plain = len(fact) <= FACT_CHARS_MAX
        else:
            is_plain = kind in (int, bool) and -NUMBER_MAX <= fact <= NUMBER_MAX
        if not is_plain:
            return f"{name!r} is neither a short text nor a number"
    return ""


@lru_cache(maxsize=1024)
def _is_fact_name(name: str) -> bool:
    return _FACT_NAME.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def is_type(name: str) -> bool:
    """Tell whether a type is one word in capital letters."""
    return _TYPE.fullmatch(name) is not None


def is_short(text: Any) -> bool:
    """Tell whether a name is a text that fits into a line."""
    return type(text) is str and 0 < len(text) <= FACT_CHARS_MAX


def no_short_text(name: str) -> str:
    """Say that a name is none."""
    return f"{name!r} is no short text"


# From one entry of a session to the next they are the same; typed, for what equals a text may be none.
@lru_cache(maxsize=1024, typed=True)
def names_text(
    kind: str,
    session: str,
    workflow: str | None,
    agent: str | None,
    actor: str | None,
    outcome: str,
    correlation: str | None,
) -> tuple[str, str]:
    """Say what keeps names from being those of an entry, else nothing; and what and who, as a line does."""
    names = {"session": session, "workflow": workflow, "agent": agent, "actor": actor}
    for name, text in (*names.items(), ("correlation", correlation)):
        # What is not known is left out, but for the session.
        if not is_short(text) and (text is not None or name == "session"):
            return no_short_text(name), ""
    if not isinstance(kind, str) or not is_type(kind):
        return "'type' is not in capital letters", ""
    if outcome not in OUTCOMES:
        return "'outcome' is none that is known", ""
    said = f',"type":"{kind!s}"'
    said += "".join([f',"{name}":{quoted(text)}' for name, text in names.items() if text is not None])
    said += f',"outcome":"{outcome!s}"'
    return "", said if correlation is None else f'{said},"correlation":{quoted(correlation)}'


def time_problem(written: Any, said: Any) -> str:
    """Say why a time, or what the clock said instead, is none; empty if both are right."""
    if not _is_time(written) or not (said == "" or _is_time(said)):
        return "'ts' or 'clock' is no time in UTC"
    return "'clock' is not before 'ts'" if said >= written else ""


def start_problem(type: str, head: TrailHead) -> str:
    """Say that a session has to begin first; empty if it has begun."""
    if (head.seq == 0 or head.closed) and type != AuditType.SESSION_STARTED:
        return "a session begins with SESSION_STARTED, also when it was closed before"
    return ""


def is_hash(text: Any) -> bool:
    """Tell whether a text is a SHA-256 as lines have it."""
    return type(text) is str and _HASH.fullmatch(text) is not None


def _is_time(text: Any) -> bool:
    if type(text) is not str or not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
