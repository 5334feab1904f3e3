"""Signed notes: text with signatures below it, by keys that have names (C2SP signed-note).

    text, as many lines as it likes

    — key name base64(key id, signature)

A key is told by its name and by its id, a short hash over name, kind and public key. Signatures of unknown
keys are ignored, so that keys can be changed and witnesses can add theirs. Two kinds of keys are known here:
Ed25519 over the text, and Ed25519 over the text and a time (C2SP tlog-cosignature), which is how witnesses
sign. The mathematics comes in as a function: this module has the formats only.

Reading is strict: there is one spelling for everything, and all else is an error that says where it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
)

#: Kinds of keys: Ed25519 over the text, and timestamped Ed25519 for cosignatures of witnesses.
ED25519 = 0x01
COSIGNATURE = 0x04

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64
KEY_ID_BYTES = 4
TIME_BYTES = 8
TIME_MAX = 2**63 - 1

NOTE_BYTES_MAX = 1_000_000
SIGNATURES_MAX = 100

_DASH = "\u2014 "
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_VKEY = re.compile(r"(?P<name>[^+]+)\+(?P<id>[0-9a-f]{8})\+(?P<key>[A-Za-z0-9+/]+=*)")

#: Checks an Ed25519 signature: public key, message, signature.
Verify = Callable[[bytes, bytes, bytes], bool]
#: Makes an Ed25519 signature of a message.
Sign = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with the name it signs under; as text it is `name+id+key`, which notes call a vkey."""

    name: str
    public_key: bytes
    kind: int = ED25519

    def __post_init__(self) -> None:
        check_key_name(self.name)
        if self.kind not in (ED25519, COSIGNATURE) or len(self.public_key) != PUBLIC_KEY_BYTES:
            raise InvalidIdError(f"kind {self.kind} with {len(self.public_key)} bytes is no known public key")

    @property
    def id(self) -> bytes:
        """The first four bytes of a hash over name, kind and key."""
        material = self.name.encode() + b"\n" + bytes([self.kind]) + self.public_key
        return hashlib.sha256(material).digest()[:KEY_ID_BYTES]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{to_base64(bytes([self.kind]) + self.public_key)}"


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature line: whose it claims to be, and the bytes."""

    name: str
    key_id: bytes
    data: bytes

    def __str__(self) -> str:
        return f"{_DASH}{self.name} {to_base64(self.key_id + self.data)}"


@dataclass(frozen=True, slots=True)
class Note:
    """A text, which ends with a newline, and the signatures below it."""

    text: str
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Write the note."""
        return (f"{self.text}\n" + "".join(f"{signature}\n" for signature in self.signatures)).encode()


@dataclass(frozen=True, slots=True)
class Verified:
    """A key whose signature was checked, and when it signed, where its kind tells."""

    key: VerifierKey
    #: Seconds since 1970.
    timestamp: int | None = None


def check_key_name(name: str) -> str:
    """Answer a name if a key may have it, else raise InvalidIdError."""
    if not name or "+" in name or any(char.isspace() or char < " " for char in name) or _has_surrogates(name):
        raise InvalidIdError(
            "a key's name is empty, or has a space, a plus sign or a control character in it",
            place=ascii(name)[:80],
            hint="Use something like example.com/audit.",
        )
    return name


def parse_vkey(text: str) -> VerifierKey:
    """Read a public key from its text form.

    Raises:
        CheckpointCorruptError: if it is none, or its id does not belong to it.
    """
    found = _VKEY.fullmatch(text)
    if not found:
        raise _no_key(text, "it does not read like name+id+key")
    material = from_base64(found["key"], "a public key")
    try:
        key = VerifierKey(found["name"], material[1:], material[0])
    except InvalidIdError as fault:
        raise _no_key(text, fault.message) from None
    if key.id.hex() != found["id"]:
        raise _no_key(text, f"its id should be {key.id.hex()}")
    return key


def parse_note(data: bytes) -> Note:
    """Read a note; nothing in it is to be believed before its signatures were checked.

    Raises:
        CheckpointCorruptError: if it is none.
    """
    if len(data) > NOTE_BYTES_MAX:
        raise CheckpointCorruptError(f"a signed note has {len(data)} bytes, more than {NOTE_BYTES_MAX}")
    text = decode_text(data, "a signed note")
    split = text.rfind("\n\n")
    if split < 0 or not text.endswith("\n"):
        raise CheckpointCorruptError("a signed note has no signatures below an empty line, or no end")
    first = text.count("\n", 0, split + 2) + 1
    lines = text[split + 2 : -1].split("\n")
    if len(lines) > SIGNATURES_MAX:
        raise CheckpointCorruptError(f"a signed note has {len(lines)} signatures")
    return Note(text[: split + 1], tuple(_signature(line, first + at) for at, line in enumerate(lines)))


def _signature(line: str, number: int) -> Signature:
    place = f"line {number}"
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise CheckpointCorruptError("a line of a signed note is no signature", place=place)
    try:
        check_key_name(name)
    except InvalidIdError as fault:
        raise CheckpointCorruptError(fault.message, place=place) from None
    data = from_base64(encoded, "a signature", place)
    if len(data) <= KEY_ID_BYTES:
        raise CheckpointCorruptError("a signature is too short", place=place)
    return Signature(name, data[:KEY_ID_BYTES], data[KEY_ID_BYTES:])


def sign_text(text: str, key: VerifierKey, sign: Sign, *, timestamp: int | None = None) -> Signature:
    """Sign a text; a key for cosignatures signs the time, too.

    Raises:
        InvalidStateError: if the text cannot be that of a note, or the time is missing or too much.
    """
    if not text.endswith("\n") or _CONTROL.search(text) or _has_surrogates(text):
        raise InvalidStateError("a note's text ends with a newline and has no other control character")
    if (key.kind == COSIGNATURE) != (timestamp is not None) or not 0 <= (timestamp or 0) <= TIME_MAX:
        raise InvalidStateError("a cosignature needs a time in seconds, and no other signature takes one")
    if timestamp is None:
        return Signature(key.name, key.id, sign(text.encode()))
    stamp = timestamp.to_bytes(TIME_BYTES, "big")
    return Signature(key.name, key.id, stamp + sign(cosigned_message(timestamp, text)))


def cosigned_message(timestamp: int, text: str) -> bytes:
    """Give the bytes that a witness signs: a header, the time, and the whole text."""
    return f"cosignature/v1\ntime {timestamp}\n{text}".encode()


def verify_signatures(note: Note, keys: Iterable[VerifierKey], verify: Verify) -> tuple[Verified, ...]:
    """Check the signatures of known keys and pass over the others; answer whose were right, each once.

    Raises:
        ChecksumMismatchError: if a known key did not sign this text.
    """
    known = {(key.name, key.id): key for key in keys}
    found: dict[VerifierKey, Verified] = {}
    for signature in note.signatures:
        key = known.get((signature.name, signature.key_id))
        if key is not None and key not in found:
            found[key] = _verified(key, note.text, signature, verify)
    return tuple(found.values())


def _verified(key: VerifierKey, text: str, signature: Signature, verify: Verify) -> Verified:
    timestamp, message, proof = None, text.encode(), signature.data
    if key.kind == COSIGNATURE:
        timestamp, proof = int.from_bytes(proof[:TIME_BYTES], "big"), proof[TIME_BYTES:]
        message = cosigned_message(timestamp, text)
    is_sound = len(proof) == SIGNATURE_BYTES and (timestamp or 0) <= TIME_MAX
    if not is_sound or not verify(key.public_key, message, proof):
        raise ChecksumMismatchError(f"a signature of {key.name} is not over this text", place=str(key))
    return Verified(key, timestamp)


def open_note(data: bytes, keys: Iterable[VerifierKey], verify: Verify) -> tuple[Note, tuple[Verified, ...]]:
    """Read a note that at least one known key must have signed.

    Raises:
        CheckpointCorruptError: if it is no note.
        ChecksumMismatchError: if a known key did not sign this text, or none did.
    """
    note = parse_note(data)
    verified = verify_signatures(note, keys, verify)
    if not verified:
        names = ", ".join(sorted({signature.name for signature in note.signatures}))
        raise ChecksumMismatchError(f"no key that is known here signed the note, but {names}")
    return note, verified


def decode_text(data: bytes, what: str) -> str:
    """Read UTF-8 without control characters other than newlines.

    Raises:
        CheckpointCorruptError: if it is not that.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        raise CheckpointCorruptError(f"{what} is not UTF-8", place=f"byte {fault.start}") from None
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise CheckpointCorruptError(f"{what} has a control character in it", place=f"line {line}")
    return text


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _no_key(text: str, why: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(f"this is not a public key: {why}", place=ascii(text)[:120])
