"""The files of a keyring: which keys wrap, what they wrap, and under which scope a wrapped key is looked up.

Names of workflows and people occur in none of them: inside wrapped, that is encrypted, bytes only, and in the
names of lookup files as a keyed hash.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import CheckpointCorruptError, UnsupportedVersionError
from holdfast.domain.value import value

KEYRING = "keys/keyring.json"
DATA_KEYS = "keys/dek/"
LOOKUPS = "keys/scope/"
#: Ids of keys that were destroyed: a copy of another store must not bring one back.
TOMBSTONES = "keys/gone/"
TOMBSTONE = b"destroyed\n"
FORMAT = "holdfast-keyring/1"
KEY_FORMAT = "holdfast-key/1"
#: Scope of what belongs to no workflow.
STORE_SCOPE = "store:"

_CHECK_CHARS = 32


def workflow_scope(workflow_id: str) -> str:
    """Name the key of a workflow."""
    return f"workflow:{workflow_id}"


def subject_scope(subject: str) -> str:
    """Name the key of a data subject."""
    return f"subject:{subject}"


def check_value(material: bytes, keyring_id: str) -> str:
    """Name a key-encryption key by what only its holder can work out, and what tells nothing about it."""
    told = f"holdfast key check\n{keyring_id}".encode()
    return hmac.digest(material, told, hashlib.sha256).hex()[:_CHECK_CHARS]


def lookup_name(index_key: bytes, scope: str) -> str:
    """Name the file that says which data key a scope has."""
    return LOOKUPS + hmac.digest(index_key, scope.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()


def data_key_name(key_id: str) -> str:
    """Name the file of a wrapped data key."""
    return DATA_KEYS + key_id


def tombstone_name(key_id: str) -> str:
    """Name the file that says that a data key was destroyed."""
    return TOMBSTONES + key_id


@value
class Wrapping:
    """A key-encryption key as a keyring knows it: where it was found, and the index key wrapped by it."""

    source: str
    index: bytes


@value
class KeyringFile:
    """What `keys/keyring.json` holds. While keys are rotated there are two wrappings."""

    id: str
    algorithm: str
    #: Check value of the key that new data keys must be wrapped with.
    current: str
    #: In the order in which they were announced: those before the current one are on their way out.
    wrappings: Mapping[str, Wrapping]

    @property
    def wanted(self) -> tuple[str, ...]:
        """Name the keys that wrap a new data key: the current one, and the one that will take its place."""
        known = tuple(self.wrappings)
        return known[known.index(self.current) :]

    def encode(self) -> bytes:
        """Write the file."""
        keks = {
            check: {"source": one.source, "index": to_base64(one.index)}
            for check, one in self.wrappings.items()
        }
        fields = {
            "format": FORMAT,
            "id": self.id,
            "algorithm": self.algorithm,
            "current": self.current,
            "keks": keks,
        }
        return plainjson.dumps(fields) + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> KeyringFile:
        """Read the file."""
        fields = _fields(data, KEYRING, FORMAT)
        try:
            wrappings = {
                check: Wrapping(_text(one["source"]), from_base64(_text(one["index"]), KEYRING))
                for check, one in fields["keks"].items()
            }
            ring = cls(_text(fields["id"]), _text(fields["algorithm"]), _text(fields["current"]), wrappings)
        except (KeyError, TypeError, AttributeError) as fault:
            raise _no_keyring(KEYRING) from fault
        if ring.current not in wrappings:
            raise _no_keyring(KEYRING)
        return ring


@value
class WrappedKey:
    """What the file of a data key holds: the key and its scope, once for each key that wraps it."""

    wraps: Mapping[str, bytes]

    def encode(self) -> bytes:
        """Write the file."""
        wraps = {check: to_base64(wrapped) for check, wrapped in self.wraps.items()}
        return plainjson.dumps({"format": KEY_FORMAT, "wraps": wraps}) + b"\n"

    @classmethod
    def decode(cls, data: bytes, place: str) -> WrappedKey:
        """Read the file."""
        fields = _fields(data, place, KEY_FORMAT)
        try:
            return cls({check: from_base64(_text(one), place) for check, one in fields["wraps"].items()})
        except (KeyError, TypeError, AttributeError) as fault:
            raise _no_keyring(place) from fault


def _fields(data: bytes, place: str, known: str) -> dict[str, Any]:
    fields = plainjson.loads(data, strict=True)
    if type(fields) is not dict or type(fields.get("format")) is not str:
        raise _no_keyring(place)
    if fields["format"] != known:
        raise UnsupportedVersionError(
            f"a file of the keyring has the format {fields['format']!r}",
            place=place,
            hint="Upgrade Holdfast.",
        )
    return fields


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError("a text is expected")
    return value


def _no_keyring(place: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        "a file of the keyring is not as Holdfast writes it",
        place=place,
        hint="Without it nothing can be opened: bring it back from a backup.",
    )
