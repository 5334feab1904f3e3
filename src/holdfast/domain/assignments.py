"""Secrets known by the name they are assigned to in running text: code, JSON, YAML, headers, options, URLs.

The pattern is generous; whether what was found is a secret, and not a variable, a type, a stand-in or
prose, is judged afterwards, alike for every engine.
"""

from __future__ import annotations

import re

from holdfast.domain.credential_patterns import BLANK, QUOTE, SPACES, any_case
from holdfast.domain.secret_names import secret_kind

OWNERS = ("api", "access", "secret", "private", "signing", "encryption", "auth", "account", "subscription",
           "master", "shared")  # fmt: skip
_NAME = (
    f"(?:{any_case('pass(?:word|wort|wd|phrase|code)')}|{any_case('kennwort')}|{any_case('pwd')}"
    f"|(?:{'|'.join(map(any_case, OWNERS))})[_-]?{any_case('key')}"
    f"|{any_case('secret')}|{any_case('token')}|{any_case('cred(?:ential)?')}[sS]?)[0-9]{{0,2}}"
)
#: `password: str = ...`
_TYPE = "(?::[ \\t]{0,4}[A-Za-z_][A-Za-z0-9_.|\\[\\] ]{0,30})?"
_IS = f"{QUOTE}?\\]?{SPACES}{_TYPE}(?:=>|:=|==|=|:|%3[Dd]){SPACES}"
_IN_DOUBLE = '[bBfFrRuU]{0,2}"([^"\\\\\\r\\n]*(?:\\\\[^\\r\\n][^"\\\\\\r\\n]*)*)'
_IN_SINGLE = "[bBfFrRuU]{0,2}'([^'\\\\\\r\\n]*(?:\\\\[^\\r\\n][^'\\\\\\r\\n]*)*)"
#: JSON inside a string of JSON; what is escaped in the value itself is followed one level deep.
_ESCAPED = "\\\\[\"']([^\"'\\\\\\r\\n]*(?:\\\\\\\\\\\\?[^\\\\\\r\\n][^\"'\\\\\\r\\n]*)*)"
_ESCAPED_TWICE = "\\\\{2,7}[\"']([^\"'\\\\\\r\\n]*)"
_BARE = f"([^{BLANK}\"'&;,<>\\\\`]{{4,}})"

#: What an assignment looks like, and how the value stands there, group by group.
EXPRESSION = (
    f"{_NAME}(?:{_IS}(?:{_IN_DOUBLE}|{_IN_SINGLE}|{_ESCAPED}|{_ESCAPED_TWICE}|{_BARE})"
    f"|>([^<>{BLANK}]{{4,}})</)"
    f"|--(?:[a-z0-9]{{1,12}}-){{0,4}}{_NAME}[ ]{{1,4}}[\"']?([^{BLANK}\"'-][^{BLANK}\"']{{3,}})"
)
FORMS = ("quoted", "quoted", "quoted", "quoted", "bare", "quoted", "bare")
#: Some of these, in small letters, stands in every text that the pattern matches.
KEYWORDS = ("pass", "kennwort", "pwd", "key", "secret", "token", "cred")

_NAME_BEFORE = re.compile("[A-Za-z0-9_.-]*\\Z")
_NAME_AFTER = re.compile("[A-Za-z0-9_-]*")
_NAME_CHARS_MAX = 48
_AFTER_QUOTE = tuple(" ,;:)]}")
_STAND_IN = re.compile(
    "[$<{*%(\\[]|.*(?:\\$\\{|\\{\\{|\\*\\*\\*|\\.\\.\\.|\u2026|xxx|your[-_ ])", re.IGNORECASE | re.DOTALL
)
#: A call, an item, an attribute; the name of a class.
_CODE = re.compile(
    "[A-Za-z_][A-Za-z0-9_]*(?:(?:\\.[A-Za-z_][A-Za-z0-9_]*)*[]()[{}]|(?:\\.[A-Za-z_][A-Za-z0-9_]*)+\\Z)"
    "|[A-Z][A-Za-z0-9]*(?:Key|Types?|Password|Secret|Token|Bytes|Str)[A-Za-z0-9]?\\Z"
)
_PLACE = re.compile("(?:[.~]{0,2}/|[A-Za-z]:\\\\|[a-z][a-z0-9+.-]*://)")
_ALGORITHM = re.compile(
    "(?:hmac-?)?(?:sha|md|argon|pbkdf|base|utf|aes|rsa|ed|es|rs|hs|ps|v|oauth)-?[0-9]+[a-z-]*"
)
_MOMENT_OR_NUMBER = re.compile("[0-9][0-9.,:_TZ+-]*[%kKmM]?|0x[0-9A-Fa-f]+")
#: Words of programs; a value of letters that holds one of them is a variable, a type or a label.
_PROGRAM_WORDS = re.compile(
    "pass|pw|secret|token|key|cred|auth|user|none|null|nil|true|false|self|this|str|bytes|text|input|value"
    "|env|conf|arg|opt|param|prompt|data|get|read|load|undefined|any|required|hidden|bearer|basic|number"
    "|object|default|type"
)


def judge(text: str, start: int, value: tuple[int, int], form: str) -> tuple[int, int, str] | None:
    """Decide on one assignment: where the secret lies and its kind, or None if it is none.

    Args:
        text: the whole text.
        start: where the pattern began to match.
        value: where the value lies.
        form: quoted or bare.
    """
    name = _name_at(text, start)
    kind = None if _is_part_of_a_chain(text, start, name) else secret_kind(name)
    first, last = value
    if kind is None:
        return None
    if form == "bare":
        last -= len(text[first:last]) - len(text[first:last].rstrip(")]}.:|"))
    found = text[first:last]
    if is_stand_in(found) or (name.lower().endswith("pwd") and _PLACE.match(found)):
        return None
    if form == "quoted":
        is_secret = _is_quoted_secret(found, kind, name)
    else:
        is_secret = _is_bare_secret(found, kind, name, is_tight=text[first - 1] not in " \t:")
    return (first, last, kind) if is_secret else None


def is_stand_in(found: str) -> bool:
    """Tell `$PASSWORD`, `{password}`, `<password>`, `PASSWORD`, `your-password` and `***` from a value."""
    return _STAND_IN.match(found) is not None or (found.isupper() and secret_kind(found) is not None)


def _name_at(text: str, at: int) -> str:
    """Read the whole name around a place."""
    before = _NAME_BEFORE.search(text[max(0, at - _NAME_CHARS_MAX) : at])
    after = _NAME_AFTER.match(text, at)
    return (before[0] if before else "") + (after[0] if after else "")


def _is_part_of_a_chain(text: str, at: int, name: str) -> bool:
    """Tell names between colons: `arn:...:secret:db`, `AWS::IAM::AccessKey: ...`."""
    after = _NAME_AFTER.match(text, at)
    end = after.end() if after else at
    return text[end - len(name) - 1 : end - len(name)] == ":" and text[end : end + 2].lstrip("\"'")[:1] == ":"


def _is_quoted_secret(found: str, kind: str, name: str) -> bool:
    has_digit = any(letter.isdigit() for letter in found)
    words = found.split()
    if found[:1] in _AFTER_QUOTE:
        # The quote was the end of a text: `prompt="Password: ", ...`
        return False
    if kind == "token":
        return has_digit and len(words) == 1 and len(found) >= 8
    if len(found) < 3 or not words:
        return False
    if has_digit or name.lower().endswith("phrase"):
        return True
    return len(words) <= 2 and not _is_label(found)


def _is_label(found: str) -> bool:
    """Tell names of keys and variables, and words like `string`, from values without a digit."""
    is_constant = found.isupper() and "_" in found
    return is_constant or secret_kind(found) is not None or found.lower() in _LABELS


_LABELS = frozenset(
    ["string", "str", "bytes", "text", "null", "none", "true", "false", "bearer", "basic", "required", "any"]
)


def _is_bare_secret(found: str, kind: str, name: str, *, is_tight: bool) -> bool:
    """Judge a value without quotes; one that follows `=` at once may be any word."""
    has_digit = any(letter.isdigit() for letter in found)
    has_letter = any(letter.isalpha() for letter in found)
    if _CODE.match(found):
        return False
    if kind == "token":
        # `token` alone is as often a word of language models.
        chars_min = 16 if name.lower() == "token" else 10
        return has_digit and has_letter and len(found) >= chars_min and not _PLACE.match(found)
    if not is_tight:
        is_mixed = has_letter and (has_digit or any(letter in "!@#$%^&*?~" for letter in found))
        is_path = "/" in found and len(found) < 32
        harmless = is_path or _ALGORITHM.fullmatch(found.lower()) or _MOMENT_OR_NUMBER.fullmatch(found)
        return is_mixed and len(found) >= 6 and not harmless
    if has_digit:
        return len(found) >= 4
    if found.replace(".", "").isidentifier():
        return len(found) >= 5 and "." not in found and not _PROGRAM_WORDS.search(found.lower())
    return len(found) >= 5
