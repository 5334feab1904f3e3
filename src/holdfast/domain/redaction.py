"""Redaction: no secret is written. Values by pattern, keys by name, in texts, trees and operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from holdfast.domain import delta, user_patterns
from holdfast.domain.catalogue import Compile
from holdfast.domain.delta import Operation
from holdfast.domain.placeholders import Key, Placeholders
from holdfast.domain.secret_keys import AT_ROOT, Around, SecretKeys, below
from holdfast.domain.secret_pairs import Grown as Grown
from holdfast.domain.secret_pairs import PairedPaths, beside
from holdfast.domain.secret_text import SecretText
from holdfast.domain.secret_tree import BETWEEN, Path, SecretTree, groups
from holdfast.domain.tree import TAG
from holdfast.domain.value import value

#: Gives the plain tree of the state that the operations change, to be changed.


@value
class Rules:
    """What a user adds to what is hidden anyway, and what is left alone.

    Attributes:
        patterns: regular expressions by the kind they find. No lookaround, no backreferences.
        keys: names whose values are hidden; case, `-`, `_` and spaces do not matter.
        allowed_keys: names whose values are not hidden for their name.
        allowed_values: values that are never hidden.
    """

    patterns: Mapping[str, str] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    allowed_keys: frozenset[str] = frozenset()
    allowed_values: frozenset[str] = frozenset()


class Redactor:
    """Hides secrets. What was hidden once is never hidden again, so it may be applied any number of times."""

    def __init__(self, key: Key, compile: Compile, rules: Rules | None = None) -> None:
        """Prepare for a key and rules.

        Args:
            key: 16 random bytes or more; equal secrets get equal placeholders under one key. Or what gives
                them when the first secret is met.
            compile: the engine.
            rules: what the user adds and allows.

        Raises:
            ConfigError: the key is too short, or a pattern cannot be used.
        """
        rules = rules or Rules()
        patterns = dict(rules.patterns)
        self._text = SecretText(Placeholders(key), compile, patterns, rules.allowed_values)
        self._keys = SecretKeys(self._text, rules.keys, rules.allowed_keys)
        self._is_anchored = user_patterns.is_anchored(patterns)
        self._tree = SecretTree(self._text, self._keys, is_joined=not self._is_anchored)

    def text(self, text: str) -> str:
        """Hide the secrets of a text: a message, a log line, a stack trace."""
        return self._text.hide(text)

    def tree(self, tree: Any) -> tuple[Any, list[Path]]:
        """Hide the secrets of a plain tree; answer it with the paths of what was hidden.

        The given tree is not changed, and parts without secrets are shared with it.
        """
        return self._tree.hide(tree, AT_ROOT, [])

    def operations(self, ops: Iterable[Operation], grown: Grown) -> tuple[list[Operation], list[Path]]:
        """Hide the secrets that operations carry; answer them with the paths of what was hidden.

        Args:
            ops: the change from one state to the next.
            grown: gives the value at a path of the new state; asked for strings that were appended to, and
                for what stands beside a name.
        """
        ops = list(ops)
        pairs = PairedPaths(self._keys, grown)
        if not self._is_anchored and self._are_harmless(ops, grown, pairs):
            return ops, []
        work = _Operations(self._text, self._keys, self._tree, pairs, grown, is_anchored=self._is_anchored)
        hidden = [work.hide(op) for op in pairs.carried_whole(ops)]
        return [op for op in hidden if op is not None], work.paths

    def _are_harmless(self, ops: Sequence[Operation], grown: Grown, pairs: PairedPaths) -> bool:
        """Tell in one search that operations carry no secret, as most do not; False settles nothing."""
        texts: list[str] = []
        before: list[str] = []
        for op in ops:
            path, what = op["path"], op["op"]
            if not self._keys.are_silent(path, is_list=what == "splice") and (
                not self._keys.are_plain(path) or pairs.concern(op)
            ):
                return False
            if what == "append":
                whole = grown(path)
                texts.append(whole)
                before.append(whole[: len(whole) - len(op["text"])])
            elif what != "delete":
                value = op["value" if what == "set" else "insert"]
                kind = type(value)
                if kind is str:
                    texts.append(value)
                elif kind is dict or kind is list or kind is bytes:
                    found = self._tree.texts(value, path[-1] if what == "set" and path else None)
                    if found is None:
                        return False
                    texts += found
        # What a string was before it has grown is clean if the string is, but may have been base64 then.
        is_encoded = any(map(self._text.is_encoded, texts + before))
        return not is_encoded and all(
            self._text.is_clean(BETWEEN.join(texts[first:last])) for first, last in groups(texts)
        )


class _Operations:
    """Goes through the operations of one change."""

    def __init__(
        self,
        text: SecretText,
        keys: SecretKeys,
        tree: SecretTree,
        pairs: PairedPaths,
        grown: Grown,
        *,
        is_anchored: bool,
    ) -> None:
        self._text = text
        self._keys = keys
        self._tree = tree
        self._grown = grown
        self._is_anchored = is_anchored
        self._pairs = pairs
        self.paths: list[Path] = []

    def hide(self, op: Operation) -> Operation | None:
        """Hide the secrets of one operation; None if nothing is left to do."""
        what, asked = op["op"], op["path"]
        path = self._keys.path(asked)
        if path != asked:
            self.paths.append(path)
            op = {**op, "path": path}
        if what == "delete":
            return op
        if what == "append":
            return self._append(op, asked)
        member = "value" if what == "set" else "insert"
        under = self._pairs.under(asked) if what == "set" else None
        hidden = self._inside(op[member], asked, path, op.get("at", 0), under)
        return op if hidden is op[member] else {**op, member: hidden}

    def _inside(self, value: Any, asked: Path, path: Path, shift: int, under: str | int | None = None) -> Any:
        """Hide the secrets of a value that goes to a path, or of items that go into the list there."""
        if asked and type(asked[-1]) is int and self._holds_pairs(asked[:-1]):
            # One of the pairs of an object, as a list of one.
            pairs = self._inside([value], asked[:-1], path[:-1], asked[-1])
            return value if pairs[0] is value else pairs[0]
        around = self._around(asked, is_container=type(value) in (dict, list))
        is_pairs = type(value) is list and self._holds_pairs(asked)
        hidden, paths = self._tree.hide(value, around, path, shift=shift, is_pairs=is_pairs, under=under)
        self.paths += paths
        return hidden

    def _around(self, path: Path, *, is_container: bool) -> Around:
        """Say what the keys along a path tell about the value at its end."""
        around = AT_ROOT
        for at, step in enumerate(path):
            inner = is_container or at + 1 < len(path)
            if isinstance(step, str):
                around = below(around, self._keys.known(step), is_container=inner)
                around = beside(around, self._pairs.kind(path, at))
            elif at >= 2 and self._holds_pairs(path[: at - 1]):
                around = self._around_pair(around, step, path[:at], is_container=inner)
            else:
                around = beside(around, self._pairs.kind(path, at))
        return around

    def _around_pair(self, around: Around, step: int, pair: Path, *, is_container: bool) -> Around:
        """Go into a pair: the value stands under its key, and of the key nothing is known."""
        if step == 0:
            return AT_ROOT
        key = self._grown(pair)[0]
        if type(key) is not str:
            return around
        return below(around, self._keys.known(key), is_container=is_container)

    def _holds_pairs(self, path: Path) -> bool:
        """Tell whether a path leads to the pairs of an object whose keys are not all texts."""
        if not path or path[-1] != "v":
            return False
        owner = self._grown(path[:-1])
        return type(owner) is dict and owner.get(TAG) in ("map", "dict")

    def _append(self, op: Operation, asked: Path) -> Operation | None:
        """Hide in the whole string that has grown; what is stored of it so far was hidden by itself."""
        whole = self._grown(asked)
        before = whole[: len(whole) - len(op["text"])]
        kind = self._around(asked, is_container=False).kind
        if kind is None and self._is_plain(whole, before):
            return op
        new, old = self._hidden(whole, kind), self._hidden(before, kind)
        if new != whole:
            self.paths.append(op["path"])
        if not new.startswith(old):
            return delta.set_value(op["path"], new)
        added = new[len(old) :]
        return delta.append(op["path"], added) if added else None

    def _is_plain(self, whole: str, before: str) -> bool:
        """Tell that neither a string nor what it was before has anything to hide."""
        if self._text.is_encoded(whole) or self._text.is_encoded(before) or not self._text.is_clean(whole):
            return False
        return not self._is_anchored or self._text.is_clean(before)

    def _hidden(self, text: str, kind: str | None) -> str:
        return self._text.hide(text) if kind is None else self._text.hide_whole(text, kind)
