"""Secrets in plain trees: strings and bytes by pattern, everything under a telling key."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from holdfast.domain.placeholders import steps, unwrapped
from holdfast.domain.secret_keys import AT_ROOT, Around, SecretKeys, below
from holdfast.domain.secret_names import COUNTED, VALUES
from holdfast.domain.secret_pairs import beside, kind_of_second, kind_of_value
from holdfast.domain.secret_text import SecretText
from holdfast.domain.tree import TAG

Path = list[str | int]
#: A step down: the step before and the key or index, None at the top.
_Link = tuple[Any, Any] | None

#: Texts are looked at together, about so many letters at once.
_GROUP_CHARS = 16 * 1024
#: So many texts are remembered before they are looked at: a large state has millions.
_TEXTS_AT_ONCE = 4096
#: Between texts; no secret holds it.
BETWEEN = "\x00"
#: Tagged objects that hold other values, and those that hold a text.
_OPEN_TAGS = frozenset({"obj", "tuple", "set", "frozenset", "map", "dict"})
_TEXT_TAGS = frozenset({"path", "posixpath", "windowspath"})


#: Where a text is, the text itself, and how it is stored: str, bytes or tagged.
_Text = tuple[_Link, str, str]


class SecretTree:
    """Hides the secrets of plain trees, at any depth."""

    def __init__(self, text: SecretText, keys: SecretKeys, *, is_joined: bool = True) -> None:
        self._text = text
        self._keys = keys
        self._is_joined = is_joined

    def hide(
        self,
        tree: Any,
        around: Around,
        path: Path,
        *,
        shift: int = 0,
        is_pairs: bool = False,
        under: str | int | None = None,
    ) -> tuple[Any, list[Path]]:
        """Answer a tree without secrets, and the paths of what was hidden.

        Args:
            tree: the plain tree; it is not changed, and parts without secrets are shared with it.
            around: what the keys above it say.
            path: where it lies.
            shift: what is added to the indexes of a list, where a part of it is given.
            is_pairs: it is the pairs of an object whose keys are not all texts.
            under: the key or the index it stands under, if it is given as a whole.
        """
        is_told_of = (
            is_pairs or around is not AT_ROOT or (type(under) is str and under not in self._keys.silent)
        )
        if not is_told_of and self._is_harmless(tree):
            return tree, []
        walk = _Walk(self._text, self._keys, under)
        found = [
            swap for texts in walk.run(tree, around, is_pairs=is_pairs) for swap in self._by_pattern(texts)
        ]
        hidden = walk.swaps + found
        if not hidden and not walk.renames:
            return tree, []
        paths = [path + self._shown(link, shift) for link, _ in hidden]
        paths += [path + self._shown(link, shift) for link in walk.renames]
        return _rebuilt(tree, hidden, walk.renames, self._keys), paths

    def texts(self, tree: Any, under: str | int | None = None) -> list[str] | None:
        """Give the texts of a tree under no telling key; None if a key inside hides something."""
        plainly = _texts_of(tree, self._keys.silent)
        if plainly is not None:
            return plainly
        walk = _Walk(self._text, self._keys, under)
        found = [text for texts in walk.run(tree, AT_ROOT, is_pairs=False) for _, text, _ in texts]
        return None if walk.swaps or walk.renames else found

    def _shown(self, link: _Link, shift: int) -> Path:
        found = self._keys.path(steps(link))
        return [found[0] + shift, *found[1:]] if found and type(found[0]) is int else found

    def _is_harmless(self, tree: Any) -> bool:
        """Tell, without a note of where each text stands, that there is no secret; False settles nothing."""
        texts = _texts_of(tree, self._keys.silent)
        if texts is None:
            return False
        return all(self._text.hide(texts[index]) == texts[index] for index in self._doubtful(texts))

    def _by_pattern(self, texts: list[_Text]) -> Iterator[tuple[_Link, Any]]:
        for index in self._doubtful([text for _, text, _ in texts]):
            link, text, form = texts[index]
            hidden = self._text.hide(text, "latin-1" if form == "bytes" else "utf-8")
            if hidden != text:
                yield link, _stored(hidden, form)

    def _doubtful(self, texts: list[str]) -> Iterator[int]:
        """Name the texts that may hold a secret: most are told in one search for many that they do not."""
        for first, last in groups(texts):
            group = texts[first:last]
            is_clean = self._is_joined and self._text.is_clean(BETWEEN.join(group))
            for index, text in enumerate(group, first):
                if not is_clean or self._text.is_encoded(text):
                    yield index


class _Walk:
    """One walk through a tree: collects what is to be swapped, renamed and searched."""

    def __init__(self, text: SecretText, keys: SecretKeys, under: str | int | None) -> None:
        self._text = text
        self._keys = keys
        self._under = under
        self.swaps: list[tuple[_Link, Any]] = []
        self.renames: list[_Link] = []
        self._texts: list[_Text] = []
        self._todo: list[tuple[Any, _Link, Around]] = []

    def run(self, tree: Any, around: Around, *, is_pairs: bool) -> Iterator[list[_Text]]:
        """Go through a tree; yields the texts that are to be searched, some thousands at a time."""
        if is_pairs:
            self._pairs(tree, None, around)
        else:
            self._value(tree, None, around)
        while self._todo:
            if len(self._texts) >= _TEXTS_AT_ONCE:
                yield self._texts
                self._texts = []
            owner, link, around = self._todo.pop()
            if type(owner) is list:
                self._items(owner, link, around, link[1] if link else self._under)
            elif type(owner.get(TAG)) is str:
                self._tagged(owner, link, around)
            else:
                self._object(owner, link, around)
        yield self._texts

    def _items(self, items: list[Any], link: _Link, around: Around, under: str | int | None) -> None:
        if len(items) == 2 and (kind := kind_of_second(items, under, self._keys)):
            self._value(items[0], (link, 0), around)
            self._value(items[1], (link, 1), beside(around, kind))
            return
        for index, item in enumerate(items):
            self._value(item, (link, index), around)

    def _object(self, fields: dict[str, Any], link: _Link, around: Around) -> None:
        for key, item in fields.items():
            known = self._keys.known(key)
            if known.text != key:
                self.renames.append((link, key))
            # Where nothing is known yet, most keys add nothing.
            if known.is_plain and around is AT_ROOT:
                if type(item) is str and key not in VALUES:
                    self._texts.append(((link, key), item, "str"))
                    continue
                inner = around
            else:
                inner = below(around, known, is_container=type(item) in (dict, list))
            if key in VALUES:
                inner = beside(inner, kind_of_value(fields, item, self._keys))
            self._value(item, (link, key), inner)

    def _value(self, value: Any, link: _Link, around: Around) -> None:
        kind = type(value)
        if kind is dict or kind is list:
            self._todo.append((value, link, around))
        elif kind is str:
            self._leaf(value, link, around, "str")
        elif kind is bytes:
            self._leaf(value.decode("latin-1"), link, around, "bytes")
        elif kind is not bool and value is not None and around.kind is not None:
            self._number(value, link, around)

    def _leaf(self, text: str, link: _Link, around: Around, form: str) -> None:
        if around.kind is None:
            self._texts.append((link, text, form))
            return
        encoding = "latin-1" if form == "bytes" else "utf-8"
        hidden = self._text.hide_whole(text, around.kind, encoding)
        if hidden != text:
            self.swaps.append((link, hidden.encode() if form == "bytes" else hidden))

    def _number(self, value: Any, link: _Link, around: Around) -> None:
        """Hide what is no text, unless under its name it is a count."""
        if around.kind is not None and around.kind not in COUNTED:
            self.swaps.append((link, self._text.placeholder(around.kind, str(value))))

    def _tagged(self, tagged: dict[str, Any], link: _Link, around: Around) -> None:
        what, value = tagged[TAG], tagged.get("v")
        if what in ("map", "dict") and type(value) is list:
            self._pairs(value, (link, "v"), around)
        elif what == "tuple" and type(value) is list:
            self._items(value, (link, "v"), around, link[1] if link else self._under)
        elif what in _OPEN_TAGS:
            for member in ("v", "private"):
                if member in tagged:
                    self._value(tagged[member], (link, member), around)
        elif what in _TEXT_TAGS and type(value) is str:
            # A secret by its name goes with its tag: a placeholder is a text.
            self._leaf(value, link if around.kind else (link, "v"), around, "str")
        elif what == "str" and type(value) is str:
            self._leaf(unwrapped(value), link, around, "tagged")
        elif what != "blob":
            self._number(value, link, around)

    def _pairs(self, pairs: list[Any], link: _Link, around: Around) -> None:
        for index, pair in enumerate(pairs):
            if type(pair) is not list or len(pair) != 2:
                self._value(pair, (link, index), around)
                continue
            key, item = pair
            inner = around
            if type(key) is str:
                inner = below(around, self._keys.known(key), is_container=type(item) in (dict, list))
            self._value(key, ((link, index), 0), AT_ROOT)
            self._value(item, ((link, index), 1), inner)


def _texts_of(tree: Any, silent: set[str]) -> list[str] | None:
    """Give the texts of a tree in which no key, pair or tag tells anything; None where one may."""
    found: list[str] = []
    # As if in a list, which is what it may be set in.
    todo: list[Any] = [[tree]]
    while todo:
        owner = todo.pop()
        is_object = type(owner) is dict
        if is_object and not silent.issuperset(owner):
            return None
        for item in owner.values() if is_object else owner:
            kind = type(item)
            if kind is str:
                found.append(item)
            elif kind is dict:
                todo.append(item)
            elif kind is list:
                # A list of two in a list may be a name and its value.
                if not is_object and len(item) == 2 and type(item[0]) is str:
                    return None
                todo.append(item)
            elif kind is bytes:
                found.append(item.decode("latin-1"))
    return found


def groups(texts: list[str]) -> Iterator[tuple[int, int]]:
    """Part texts into groups that are worth one search each; gives the first of each and who comes after."""
    first = size = 0
    for index, text in enumerate(texts):
        if size and size + len(text) > _GROUP_CHARS:
            yield first, index
            first, size = index, 0
        size += len(text)
    yield first, len(texts)


def _stored(text: str, form: str) -> Any:
    if form == "bytes":
        return text.encode("latin-1")
    if form == "tagged":
        return {TAG: "str", "v": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()}
    return text


def _rebuilt(tree: Any, swaps: list[tuple[_Link, Any]], renames: list[_Link], keys: SecretKeys) -> Any:
    """Copy what lies above the places that change, and nothing else."""
    copies = _Copies(tree)
    for link, value in swaps:
        owner, key = copies.owner(link)
        owner[key] = value
    # The deepest first: the way down is by the old keys.
    for link in sorted(renames, key=lambda link: -len(steps(link))):
        owner, _ = copies.owner(link)
        renamed = {keys.known(key).text: value for key, value in owner.items()}
        owner.clear()
        owner.update(renamed)
    return copies.root[0]


class _Copies:
    """A tree of which each object and list is copied when it is first changed."""

    def __init__(self, tree: Any) -> None:
        self.root = [tree]
        self._own: set[int] = {id(self.root)}

    def owner(self, link: _Link) -> tuple[Any, Any]:
        """Give the copied owner of a place, and the key there."""
        owner: Any = self.root
        key: Any = 0
        for step in steps(link):
            inner = owner[key]
            if id(inner) not in self._own:
                owner[key] = inner = inner.copy()
                self._own.add(id(inner))
            owner, key = inner, step
        return owner, key
