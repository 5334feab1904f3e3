"""Every kind of credential in one expression, and what each of its groups stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from holdfast.domain import assignments
from holdfast.domain.credential_patterns import IN_CONTEXT, TOKENS, CredentialKind

_LEAD_CHARS_MAX = 64
_FILLER = re.compile("[xX]{8}")
#: `docker run --name mysql -p3306:3306`
_PORT = re.compile("[0-9]{2,5}(?::[0-9]+)?")
_KEY_LINE = re.compile("[A-Za-z0-9+/=]{16}")


class Match(NamedTuple):
    """What an expression matched: where, and where the one group of it that took part lies."""

    start: int
    end: int
    group: int
    secret_start: int
    secret_end: int

    def shifted(self, by: int) -> Match:
        """Give the match as it lies in a longer text."""
        return Match(self.start + by, self.end + by, self.group, self.secret_start + by, self.secret_end + by)


class Scanner(Protocol):
    """Finds what an expression matches."""

    def matches(self, text: str) -> Iterator[Match]:
        """Give the matches from left to right, without overlap."""


#: Makes the scanner of an expression.
Compile = Callable[[str], Scanner]


class Finding(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    kind: str


class _Group(NamedTuple):
    """What one group of the expression stands for: a kind, or a form of assignment."""

    kind: str
    form: str
    lead: re.Pattern[str] | None
    hide_lead: bool


def _of_kind(kind: CredentialKind) -> _Group:
    lead = re.compile(f"(?:{kind.lead})\\Z", re.ASCII) if kind.lead else None
    return _Group(kind.name, "", lead, kind.hide_lead)


#: The alternatives in their order: context first, as it begins further left.
ALTERNATIVES = (
    *(kind.expression for kind in IN_CONTEXT),
    assignments.EXPRESSION,
    *(kind.expression for kind in TOKENS),
)
EXPRESSION = "|".join(ALTERNATIVES)
_GROUPS = (
    *map(_of_kind, IN_CONTEXT),
    *(_Group("", form, None, False) for form in assignments.FORMS),
    *map(_of_kind, TOKENS),
)
#: Passwords for which documents have words that stand in.
_PASSWORDS = frozenset({"url-password", "curl-password", "netrc-password", "mysql-password"})
_TOKEN_KINDS = frozenset(kind.name for kind in TOKENS)
KINDS = frozenset(kind.name for kind in (*IN_CONTEXT, *TOKENS))


def accept(text: str, match: Match) -> Finding | None:
    """Judge a match of the expression by what the expression cannot see; None if it is no secret."""
    group = _GROUPS[match.group - 1]
    start, end = match.secret_start, match.secret_end
    if group.form:
        found = assignments.judge(text, match.start, (start, end), group.form)
        return Finding(*found) if found else None
    if group.lead is not None:
        lead = group.lead.search(text[max(0, match.start - _LEAD_CHARS_MAX) : match.start])
        if lead is None:
            return None
        start = match.start - len(lead[0]) if group.hide_lead else start
    if _is_stand_in(group.kind, text[start:end]):
        return None
    return Finding(start, end, group.kind)


def _is_stand_in(kind: str, secret: str) -> bool:
    """Tell `user:{password}@host` from a password, and the frame of a key or a row of x from a key."""
    if kind == "private-key":
        return _KEY_LINE.search(secret) is None
    if kind in _TOKEN_KINDS:
        return _FILLER.search(secret) is not None
    if kind == "mysql-password" and _PORT.fullmatch(secret):
        return True
    return kind in _PASSWORDS and assignments.is_stand_in(secret)
