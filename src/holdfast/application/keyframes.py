"""Keyframe files: a complete state with its header and footer, readable where it is JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.application.records import sha256_of
from holdfast.application.secrecy.sealing import Sealer, Vault, keyless, plaintext
from holdfast.domain import envelope, plainjson
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.lift import lift
from holdfast.domain.placeholders import is_redacted, may_hold
from holdfast.domain.plain import read_blob
from holdfast.domain.record import Keyframe, KeyframeEntry
from holdfast.domain.tree import TAG, has_tags
from holdfast.ports import Formats

_ENDINGS = {"none": "", "zstd": ".zst", "gzip": ".gz"}


@dataclass(frozen=True, slots=True)
class Caption:
    """What a keyframe's header and footer say about its checkpoint."""

    workflow_id: str
    sequence: int
    timestamp: str
    #: Empty where the record that follows names the file: the first checkpoint's.
    checksum: str = ""
    agent_id: str | None = None
    agent_version: str | None = None
    session_id: str | None = None
    parent_sequence: int = 0
    parent_checksum: str = ""
    events_since_prev: int = 0
    size_bytes: int = 0
    #: Key that the checkpoint is sealed with, and so must be its keyframe.
    key_id: str = ""
    #: Version of the state's shape.
    schema: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class ReadKeyframe:
    """A keyframe taken apart. `tagged` is False if no value in it needs reviving.

    `redacted` is False if it certainly holds no placeholder, blobs aside.
    """

    tree: dict[str, Any]
    checksum: str
    tagged: bool
    redacted: bool
    #: Version of the state's shape.
    schema: str = SCHEMA_VERSION


def build_keyframe(
    caption: Caption,
    tree: dict[str, Any],
    blobs: Iterable[str],
    formats: Formats,
    sealer: Sealer | None = None,
) -> Keyframe:
    """Write the keyframe of a plain tree whose large values are blob references already."""
    named = tuple(sorted(blobs))
    encoded = formats.encode(tree)
    about: dict[str, Any] = {"compression": encoded.compression, "encoding": encoded.encoding}
    suffix = encoded.encoding + _ENDINGS[encoded.compression]
    if suffix == "json" and sealer is None:
        data = _readable(caption, named, tree)
    else:
        about["raw_bytes"] = encoded.raw_bytes
        # Bytes and odd numbers are tags only in JSON, and are native when they come back.
        about["tagged"] = has_tags(tree)
        about["redacted"] = is_redacted(tree) or None
        payload = encoded.data
        if sealer is not None:
            about["sealed"] = sealer.about
            suffix += ".sealed"
        line = plainjson.dumps(_wrapping(caption, named, about)) + b"\n"
        if sealer is not None:
            payload = sealer.keyframe(caption.sequence, payload, line)
        data = line + payload
    entry = KeyframeEntry(caption.sequence, sha256_of(data), len(data), suffix, named)
    return Keyframe(entry, data)


def lift_stored(
    tree: dict[str, Any],
    threshold_bytes: int,
    is_stored: Callable[[str], bool],
    sealer: Sealer | None = None,
) -> tuple[dict[str, Any], set[str]]:
    """Lift the large values whose blobs are stored; answer the tree and the names of those blobs.

    A derived keyframe brings no blobs of its own: a string that grew by appends stays inside it.
    """
    lifted, blobs = lift(tree, threshold_bytes, sealer.blob if sealer else None)
    stored = {sha256 for sha256 in blobs if is_stored(sha256)}

    def load(sha256: str) -> bytes:
        return blobs[sha256] if sealer is None else sealer.vault.open_blob(blobs[sha256], sha256)

    todo: list[Any] = [lifted]
    while todo and len(stored) < len(blobs):
        owner = todo.pop()
        for key, value in owner.items() if isinstance(owner, dict) else enumerate(owner):
            if isinstance(value, dict) and value.get(TAG) == "blob" and value["sha256"] not in stored:
                owner[key] = read_blob(value, load)
            elif isinstance(value, dict | list):
                todo.append(value)
    return lifted, stored


def read_keyframe(
    data: bytes, formats: Formats, workflow_id: str, sequence: int, vault: Vault | None = None
) -> ReadKeyframe:
    """Take a keyframe apart. The store has checked its bytes.

    Raises:
        SealBrokenError: if the store is encrypted, and it was not sealed for its place.
        CheckpointCorruptError: if it is no keyframe.
        UnsupportedVersionError: if a newer Holdfast wrote it.
    """
    place = f"{workflow_id}@{sequence}"
    try:
        if data.startswith(b"{\n"):
            if vault is not None:
                raise plaintext(f"keyframe {place}")
            whole = envelope.current(plainjson.loads(data), place)
            tree, tagged, redacted = whole["state"], b'"$hf"' in data, may_hold(data)
        else:
            line, _, rest = data.partition(b"\n")
            whole = envelope.current(plainjson.loads(line), place)
            header = whole["header"]
            rest = _unsealed(line, rest, header.get("sealed"), workflow_id, sequence, vault)
            encoding = "json" if header["encoding"] == "utf-8" else header["encoding"]
            tree = formats.decode(encoding, header["compression"], rest, header["raw_bytes"])
            tagged, redacted = header["tagged"], bool(header.get("redacted"))
        checksum = whole["header"]["checkpoint_id"].get("checksum", "")
        schema = str(whole["header"].get("state_schema", SCHEMA_VERSION))
    except (KeyError, TypeError, AttributeError) as fault:
        raise CheckpointCorruptError(f"the file is no keyframe ({fault!r})", place=place) from fault
    if not isinstance(tree, dict):
        raise CheckpointCorruptError("the keyframe's state is not an object", place=place)
    return ReadKeyframe(tree, checksum, tagged, redacted, schema)


def _unsealed(
    line: bytes, rest: bytes, about: Any, workflow_id: str, sequence: int, vault: Vault | None
) -> bytes:
    if vault is not None:
        return vault.open_keyframe(about, rest, line + b"\n", workflow_id, sequence)
    if about is not None:
        raise keyless(f"keyframe {workflow_id}@{sequence}")
    return rest


def _readable(caption: Caption, blobs: tuple[str, ...], tree: dict[str, Any]) -> bytes:
    wrapping = _wrapping(caption, blobs, {"compression": "none", "encoding": "json"})
    footer = wrapping.pop("footer")
    return lay_out({**wrapping, "state": tree, "footer": footer})


def lay_out(whole: Mapping[str, Any]) -> bytes:
    """Write a keyframe as JSON: each field of the state, and each item of a list, on a line of its own."""
    parts = []
    for name, value in whole.items():
        text = plainjson.dumps(value)
        if name == "state":
            fields = (plainjson.dumps(key) + b": " + _lines(field) for key, field in value.items())
            text = b"{\n" + b",\n".join(fields) + b"\n}"
        parts.append(plainjson.dumps(name) + b": " + text)
    return b"{\n" + b",\n".join(parts) + b"\n}\n"


def _lines(value: Any) -> bytes:
    if not isinstance(value, list) or not value:
        return plainjson.dumps(value)
    return b"[\n" + b",\n".join(map(plainjson.dumps, value)) + b"\n]"


def _wrapping(caption: Caption, blobs: tuple[str, ...], about: dict[str, Any]) -> dict[str, Any]:
    identity = {
        "workflow_id": caption.workflow_id,
        "sequence": caption.sequence,
        "timestamp": caption.timestamp,
        "checksum": caption.checksum or None,
    }
    created_by = {
        "agent_id": caption.agent_id,
        "agent_version": caption.agent_version,
        "session_id": caption.session_id,
    }
    encoding = "utf-8" if about["encoding"] == "json" else about["encoding"]
    header = {
        "version": envelope.VERSION,
        # A reader takes the first version for granted.
        "state_schema": None if caption.schema == SCHEMA_VERSION else caption.schema,
        "checkpoint_id": _given(identity),
        "created_by": _given(created_by),
        **about,
        "encoding": encoding,
        "blobs": blobs or None,
    }
    footer = {
        "prev_checkpoint": {"sequence": caption.parent_sequence, "checksum": caption.parent_checksum},
        "events_since_prev": caption.events_since_prev,
        "size_bytes": caption.size_bytes,
    }
    return {"$schema": envelope.SCHEMA, "header": _given(header), "footer": footer}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
