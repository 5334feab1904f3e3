"""What the keys above a value say about it, and secrets that are keys themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.domain.placeholders import masked
from holdfast.domain.secret_names import LOGINS, NAMES, VALUES, secret_kind, squash
from holdfast.domain.secret_text import SecretText
from holdfast.domain.tree import TAG
from holdfast.domain.user_patterns import kind_name

#: So many keys are remembered; states repeat theirs.
_KEYS_MAX = 4096
#: Keys that say by what stands beside them what their value is.
_LOOKED_AT = frozenset({TAG, *VALUES})
#: What a name looks like that stands beside its value; no placeholder does.
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_. -]{1,63}")


class Key(NamedTuple):
    """What is to be known about one key; `text` is the key without the secrets in it."""

    text: str
    kind: str | None
    is_logprobs: bool
    is_properties: bool
    #: A step into a tagged object, which says nothing.
    is_tag_member: bool
    #: A list of two under it is a user and a password.
    is_login: bool
    #: It tells nothing at all about its value.
    is_plain: bool


class Around(NamedTuple):
    """What the keys above a value say about it."""

    #: The kind of secret it is by its name; None if no name says so.
    kind: str | None = None
    #: Among tokens of a vocabulary, with their probabilities.
    in_logprobs: bool = False
    #: Among the names of a JSON schema, which describe values and hold none.
    in_properties: bool = False


AT_ROOT = Around()


def below(around: Around, key: Key, *, is_container: bool) -> Around:
    """Say what is around the value of a key."""
    if key.is_tag_member:
        return around
    kind = around.kind
    if kind is None and key.kind is not None:
        is_described = around.in_properties and is_container
        is_counted = around.in_logprobs and key.kind == "token"
        kind = None if is_described or is_counted else key.kind
    if kind is None and not (around.in_logprobs or key.is_logprobs or key.is_properties):
        return AT_ROOT
    return Around(kind, around.in_logprobs or key.is_logprobs, key.is_properties)


class SecretKeys:
    """Knows keys by their names, and remembers them."""

    def __init__(self, text: SecretText, names: Iterable[str] = (), allowed: Iterable[str] = ()) -> None:
        self._text = text
        self._names = {squash(name): kind_name(name) for name in names}
        self._allowed = frozenset(map(squash, allowed))
        self._known: dict[str, Key] = {}
        #: Those of the keys met so far that are no secret, tell nothing about their value and need no look
        #: at what stands beside them.
        self.silent: set[str] = set()
        self._named: dict[str, str | None] = {}

    def known(self, key: str) -> Key:
        """Tell what is known about a key."""
        return self._known.get(key) or self._learn(key)

    def named(self, name: Any) -> str | None:
        """Tell which kind of secret a value is that a name stands beside; None if it is no such name."""
        if type(name) is not str or not _NAME.fullmatch(name):
            return None
        if name not in self._named:
            if len(self._named) >= _KEYS_MAX:
                self._named.clear()
            self._named[name] = self._kind(name)
        return self._named[name]

    def are_plain(self, path: Sequence[str | int]) -> bool:
        """Tell whether the steps of a path hold no secret and tell nothing about the value."""
        for step in path:
            if type(step) is str:
                known = self._known.get(step) or self._learn(step)
                if not known.is_plain or known.text != step:
                    return False
        return True

    def are_silent(self, path: Sequence[str | int], *, is_list: bool) -> bool:
        """Tell quickly that a path tells nothing, by itself or by what is beside; False settles nothing.

        Args:
            path: the path.
            is_list: it leads to a list that gets other items: those of a list in a list may be pairs.
        """
        silent, is_item = self.silent, False
        for step in path:
            if isinstance(step, str):
                if step not in silent:
                    return False
                is_item = False
            elif is_item and step < 2:
                # One of the first two items of a list inside a list: a name or its value, perhaps.
                return False
            else:
                is_item = True
        return not (is_item and is_list) and (not path or path[-1] not in NAMES)

    def path(self, path: Sequence[str | int]) -> list[str | int]:
        """Give a path without the secrets in its keys."""
        return [self.known(step).text if isinstance(step, str) else step for step in path]

    def _learn(self, key: str) -> Key:
        if len(self._known) >= _KEYS_MAX:
            self._known.clear()
            self.silent.clear()
        hidden = self._text.hide(key)
        # What a placeholder says is no part of the name: it must mean the same before and after.
        name = masked(hidden)
        squashed = squash(name)
        kind = self._kind(name)
        is_tag_member = key in ("v", "private")
        is_login = squashed in LOGINS and squashed not in self._allowed
        is_special = is_tag_member or is_login or squashed == "properties" or "logprob" in squashed
        known = Key(
            hidden,
            kind,
            "logprob" in squashed,
            squashed == "properties",
            is_tag_member,
            is_login,
            is_plain=kind is None and not is_special,
        )
        self._known[key] = known
        if known.is_plain and hidden == key and key not in _LOOKED_AT:
            self.silent.add(key)
        return known

    def _kind(self, name: str) -> str | None:
        squashed = squash(name)
        return None if squashed in self._allowed else self._names.get(squashed) or secret_kind(name)
