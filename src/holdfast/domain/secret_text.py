"""Secrets in one text: found, judged, and replaced by placeholders."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Sequence

from holdfast.domain import catalogue, user_patterns
from holdfast.domain.catalogue import Compile, Finding, Scanner
from holdfast.domain.errors import ConfigError
from holdfast.domain.placeholders import Placeholders, is_placeholder, masked, spans

#: A placeholder may uncover a secret that was glued to another. So often this is followed up; a text in
#: which there is no end to it is hidden as a whole.
_PASSES_MAX = 8
#: How far inside a match is looked for others: what a false alarm covers, and what stands before a secret.
_DEPTH_MAX = 2
#: Nothing shorter than this is looked at again.
_CHARS_MIN = 16
#: A text that is base64 as a whole is looked at decoded, from this length up to that.
_ENCODED_CHARS_MIN = 20
_ENCODED_CHARS_MAX = 64 * 1024
#: Most of what looks like base64 is not text, which so many letters show.
_PROBE_CHARS = 24
_LETTER_BYTES_MAX = 4
_ENCODED = re.compile(f"[A-Za-z0-9+/_-]{{{_ENCODED_CHARS_MIN},}}={{0,2}}[\\r\\n]{{0,2}}")


class SecretText:
    """Hides the secrets of texts, by the known patterns and those of the user."""

    def __init__(
        self,
        placeholders: Placeholders,
        compile: Compile,
        patterns: dict[str, str],
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        self._placeholders = placeholders
        self._known = compile(catalogue.EXPRESSION)
        self._user = _compiled(compile, patterns) if patterns else None
        self._user_kinds = [user_patterns.kind_name(name) for name in patterns]
        self._allowed = allowed

    def hide(self, text: str, encoding: str = "utf-8") -> str:
        """Replace the secrets of a text; a text without any is answered as it is.

        Args:
            text: the text.
            encoding: what makes bytes of it again, for the placeholders' digits.
        """
        found = self._findings(text)
        if not found:
            return self._hide_encoded(text) if self.is_encoded(text) else text
        for _ in range(_PASSES_MAX):
            text = self._replaced(text, found, encoding)
            found = self._findings(text)
            if not found:
                return text
        return self.placeholder("text", text, encoding)

    def hide_whole(self, text: str, kind: str, encoding: str = "utf-8") -> str:
        """Replace a text that is a secret by the name it goes under."""
        if not text or is_placeholder(text) or text in self._allowed:
            return text
        return self.placeholder(self._kind_of(text) or kind, text, encoding)

    def placeholder(self, kind: str, secret: str, encoding: str = "utf-8") -> str:
        """Give the placeholder of a secret."""
        return self._placeholders.make(kind, secret.encode(encoding, "surrogatepass"))

    def is_clean(self, text: str) -> bool:
        """Tell, without judging, that no pattern matches: then none does in any beginning of the text."""
        if next(self._known.matches(text), None) is not None:
            return False
        return self._user is None or next(self._user.matches(text), None) is None

    def is_encoded(self, text: str) -> bool:
        """Tell whether a text may be the base64 of a text as a whole."""
        if not _ENCODED_CHARS_MIN <= len(text) <= _ENCODED_CHARS_MAX:
            return False
        if not _ENCODED.match(text, 0, _PROBE_CHARS):
            return False
        return _may_be_text(text[:_PROBE_CHARS]) and _ENCODED.fullmatch(text) is not None

    def _findings(self, text: str) -> list[Finding]:
        """Give what is to be replaced, from left to right without overlap, placeholders left out."""
        holes = spans(text)
        text = masked(text) if holes else text
        found = list(self._known_in(text, 0, len(text), _DEPTH_MAX))
        if self._user is not None:
            found += self._user_in(text, self._user)
        if not found:
            return found
        wanted = [finding for finding in found if text[finding.start : finding.end] not in self._allowed]
        return _apart(text, sorted(wanted), holes)

    def _known_in(self, text: str, first: int, last: int, depth: int) -> Iterator[Finding]:
        part = text if last - first == len(text) else text[first:last]
        for match in self._known.matches(part):
            match = match.shifted(first) if first else match
            found = catalogue.accept(text, match)
            end = match.end
            if found is not None:
                yield self._refined(text, found)
                end = found.start
            if depth and end - match.start > _CHARS_MIN:
                yield from self._known_in(text, match.start + 1, end, depth - 1)

    def _user_in(self, text: str, scanner: Scanner) -> list[Finding]:
        kinds = self._user_kinds
        return [Finding(match.start, match.end, kinds[match.group - 1]) for match in scanner.matches(text)]

    def _refined(self, text: str, found: Finding) -> Finding:
        """Call an assigned secret by its own kind, if it has one."""
        if found.kind in catalogue.KINDS or found.end - found.start < _CHARS_MIN:
            return found
        return found._replace(kind=self._kind_of(text[found.start : found.end]) or found.kind)

    def _kind_of(self, secret: str) -> str | None:
        """Name the kind of a text that is one secret from end to end."""
        for match in self._known.matches(secret):
            found = catalogue.accept(secret, match)
            return found.kind if found and (found.start, found.end) == (0, len(secret)) else None
        return None

    def _replaced(self, text: str, found: Sequence[Finding], encoding: str) -> str:
        pieces, last = [], 0
        for start, end, kind in found:
            pieces += [text[last:start], self.placeholder(kind, text[start:end], encoding)]
            last = end
        return "".join([*pieces, text[last:]])

    def _hide_encoded(self, text: str) -> str:
        """Hide a text that is the base64 of a text with a secret, under the digits of that secret."""
        plain = _decoded(text)
        found = self._findings(plain) if plain else []
        if not found or text in self._allowed:
            return text
        start, end, kind = found[0]
        return self.placeholder(kind, plain[start:end])


def _compiled(compile: Compile, patterns: dict[str, str]) -> Scanner:
    """Compile the user's patterns, one by one first, so that it can be said which one is wrong."""
    for name, pattern in patterns.items():
        try:
            compile(user_patterns.combine({name: pattern}))
        except ConfigError as fault:
            raise ConfigError(fault.message, place=f"the pattern {name!r}", hint=fault.hint) from fault
    return compile(user_patterns.combine(patterns))


def _may_be_text(encoded: str) -> bool:
    """Tell quickly that a piece of base64 holds no text: an error that a decoder raises takes longer."""
    standard = encoded.rstrip("=\r\n").replace("-", "+").replace("_", "/")
    try:
        data = binascii.a2b_base64(standard[: len(standard) // 4 * 4])
    except ValueError:
        return False
    # A letter that is cut in two at the end is no sign of anything.
    return len(data.decode("utf-8", "ignore").encode()) > len(data) - _LETTER_BYTES_MAX


def _decoded(text: str) -> str:
    """Decode base64 of either alphabet, padded or not, perhaps cut off; empty if it is not text."""
    standard = text.rstrip("=\r\n").replace("-", "+").replace("_", "/")
    try:
        data = binascii.a2b_base64(standard + "=" * (-len(standard) % 4), strict_mode=True)
        return data.decode()
    except UnicodeDecodeError as fault:
        # A letter that is cut in two at the end is no sign of anything.
        return data[: fault.start].decode() if fault.reason == "unexpected end of data" else ""
    except ValueError:
        return ""


def _apart(text: str, found: Sequence[Finding], holes: Sequence[tuple[int, int]]) -> list[Finding]:
    """Cut placeholders and overlaps out of findings in their order."""
    apart: list[Finding] = []
    free = next_hole = 0
    for start, end, kind in found:
        while next_hole < len(holes) and holes[next_hole][1] <= max(start, free):
            next_hole += 1
        while next_hole < len(holes) and holes[next_hole][0] < end:
            _add(apart, text, Finding(max(start, free), holes[next_hole][0], kind))
            free = holes[next_hole][1]
            next_hole += 1
        _add(apart, text, Finding(max(start, free), end, kind))
        free = max(free, end)
    return apart


def _add(apart: list[Finding], text: str, found: Finding) -> None:
    """Add a finding unless nothing of it is left."""
    if found.start < found.end and not text[found.start : found.end].isspace():
        apart.append(found)
