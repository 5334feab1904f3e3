"""Values that belong to a person: sealed with the person's own key, and gone from everywhere once that is.

A state, an event or a decision may hold `Personal("alice@example.org", value)` anywhere. The store keeps a
tagged object with the key's id and the sealed value; equal values of a person give equal objects, so that
what did not change is no change. Whose it is stands in the keyring only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.domain.errors import CheckpointCorruptError, UnsupportedTypeError
from holdfast.domain.tree import TAG

WHAT = "personal"


@dataclass(frozen=True, slots=True)
class Personal:
    """A value that belongs to a person, who can have it erased. The value is not shown when printed.

    Attributes:
        subject: whose it is, in whatever way the application names people.
        value: anything that can be stored.
    """

    subject: str
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Erased:
    """What comes back in place of a `Personal` whose key was destroyed. Stored again, it stays what it is."""

    key: str
    sealed: str = field(repr=False)


class People(Protocol):
    """Seals and opens values of persons."""

    def seal_personal(self, subject: str, packed: bytes) -> tuple[str, str]:
        """Seal a packed value; answers the id of the person's key and the text to store."""

    def open_personal(self, key_id: str, text: str) -> tuple[str, bytes] | None:
        """Answer whose value it is, and the value packed; None if the person's key was destroyed."""


def tag_personal(
    value: Personal | Erased, people: People | None, pack: Callable[[Any], bytes]
) -> dict[str, Any]:
    """Turn a person's value into its tagged object."""
    if type(value) is Erased:
        return {TAG: WHAT, "key": value.key, "v": value.sealed}
    if people is None:
        raise UnsupportedTypeError(
            "a person's values can be kept in an encrypted store only",
            hint="Make one with `holdfast init --encrypt`, or open a new one with encrypt=True.",
        )
    if type(value) is not Personal or type(value.subject) is not str or not value.subject:
        raise UnsupportedTypeError("the subject of a person's value is a text")
    key_id, text = people.seal_personal(value.subject, pack(value.value))
    return {TAG: WHAT, "key": key_id, "v": text}


def revive_personal(
    tagged: dict[str, Any], people: People | None, revive: Callable[[bytes], Any]
) -> Personal | Erased:
    """Turn a tagged object back into a person's value; without keys, into what is left of it."""
    key_id, text = tagged["key"], tagged["v"]
    if type(key_id) is not str or type(text) is not str:
        raise CheckpointCorruptError("a stored person's value is none")
    opened = people.open_personal(key_id, text) if people is not None else None
    if opened is None:
        return Erased(key_id, text)
    subject, packed = opened
    return Personal(subject, revive(packed))
