"""Keyframe files: a complete state with its header and footer, readable where it is JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from holdfast.application.records import sha256_of
from holdfast.application.secrecy.sealing import Sealer, Vault, keyless, plaintext
from holdfast.domain import envelope, plainjson
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.lift import lift
from holdfast.domain.msgpack import contains
from holdfast.domain.placeholders import is_redacted as holds_placeholder
from holdfast.domain.placeholders import may_hold
from holdfast.domain.plain import read_blob
from holdfast.domain.record import Keyframe, KeyframeEntry
from holdfast.domain.tree import TAG, has_tags
from holdfast.domain.value import value
from holdfast.ports import Formats

#: From here on a state is written a part at a time.
_LARGE_BYTES = 1024 * 1024
_DRAINED_LEVELS = 3
_DRAINED_ITEMS = 256
Write = Callable[[bytes], object]

_ENDINGS = {"none": "", "zstd": ".zst", "gzip": ".gz"}


@value
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


@value
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
    """Write the keyframe of a plain tree whose large values are blob references already.

    The tree is taken apart on the way, so that a large one is not in memory twice.
    """
    named = tuple(sorted(blobs))
    # Bytes and odd numbers are tags only in JSON, and are native when they come back.
    is_tagged = has_tags(tree)
    if formats.encoding == "json":
        payload = _json_payload(caption, named, tree, formats, is_sealed=sealer is not None)
        if isinstance(payload, bytes):
            return _keyframe(caption, payload, "json", named)
    else:
        is_redacted, encoded = holds_placeholder(tree), formats.encode(tree)
        payload = _Payload(encoded.compression, encoded.data, len(encoded.raw), is_redacted)
    about = {
        "compression": payload.compression,
        "encoding": formats.encoding,
        "raw_bytes": payload.raw_bytes,
        "tagged": is_tagged,
        "redacted": payload.is_redacted or None,
        "sealed": sealer.about if sealer else None,
    }
    line = plainjson.dumps(_wrapping(caption, named, about)) + b"\n"
    suffix = formats.encoding + _ENDINGS[payload.compression] + (".sealed" if sealer else "")
    data = payload.data if sealer is None else sealer.keyframe(caption.sequence, payload.data, line)
    return _keyframe(caption, line + data, suffix, named)


class _Payload(NamedTuple):
    """An encoded state that does not lie open in its keyframe."""

    compression: str
    data: bytes
    raw_bytes: int
    is_redacted: bool


def _json_payload(
    caption: Caption, named: tuple[str, ...], tree: dict[str, Any], formats: Formats, *, is_sealed: bool
) -> _Payload | bytes:
    """Write a state as JSON; answers the whole keyframe where that may lie open as it is."""
    parts, state = _parts(_readable(caption, named, tree), is_large=caption.size_bytes >= _LARGE_BYTES)
    pressed = formats.compressed(parts[state])
    if pressed is None and not is_sealed:
        return b"".join(parts)
    compression, data = pressed or ("none", b"".join(parts[state]))
    return _Payload(compression, data, sum(map(len, parts[state])), any(map(may_hold, parts[state])))


def _keyframe(caption: Caption, data: bytes, suffix: str, named: tuple[str, ...]) -> Keyframe:
    return Keyframe(KeyframeEntry(caption.sequence, sha256_of(data), len(data), suffix, named), data)


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
        for key, held in owner.items() if isinstance(owner, dict) else enumerate(owner):
            if isinstance(held, dict) and held.get(TAG) == "blob" and held["sha256"] not in stored:
                owner[key] = read_blob(held, load)
            elif isinstance(held, dict | list):
                todo.append(held)
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
            tree, tagged, redacted = whole["state"], contains(data, b'"$hf"', rare=1), may_hold(data)
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


def _readable(caption: Caption, blobs: tuple[str, ...], tree: dict[str, Any]) -> dict[str, Any]:
    wrapping = _wrapping(caption, blobs, {"compression": "none", "encoding": "json"})
    footer = wrapping.pop("footer")
    return {**wrapping, "state": tree, "footer": footer}


def lay_out(whole: Mapping[str, Any]) -> bytes:
    """Write a keyframe as JSON: each field of the state, and each item of a list, on a line of its own.

    The state is taken apart on the way.
    """
    return b"".join(_parts(whole, is_large=False)[0])


def _parts(whole: Mapping[str, Any], *, is_large: bool) -> tuple[list[bytes], slice]:
    """Write a keyframe in parts; answer them, and which of them are the state."""
    parts, state = list[bytes](), slice(0)
    mark = b"{\n"
    for name, told in whole.items():
        parts.append(mark + plainjson.dumps(name) + b": ")
        start = len(parts)
        if name == "state":
            _write_state(told, parts.append, is_large=is_large)
            state = slice(start, len(parts))
        else:
            parts.append(plainjson.dumps(told))
        mark = b",\n"
    parts.append(b"\n}\n")
    return parts, state


def _write_state(fields: dict[str, Any], write: Write, *, is_large: bool) -> None:
    mark = b"{\n"
    for key in list(fields):
        write(mark + plainjson.dumps(key) + b": ")
        field = fields.pop(key)
        if isinstance(field, list) and field:
            _write_lines(field, write)
        elif is_large:
            _drain(field, write, _DRAINED_LEVELS)
        else:
            write(plainjson.dumps(field))
        mark = b",\n"
    write(b"{\n\n}" if mark == b"{\n" else b"\n}")


def _write_lines(items: list[Any], write: Write) -> None:
    items.reverse()
    mark = b"[\n"
    while items:
        write(mark + plainjson.dumps(items.pop()))
        mark = b",\n"
    write(b"\n]")


def _drain(value: Any, write: Write, levels: int) -> None:
    """Write a large value a part at a time, and let go of what is written.

    A tagged value stays in one part: whoever looks for placeholders looks at each part alone.
    """
    if levels and type(value) is dict and value and TAG not in value:
        mark = b"{"
        for key in list(value):
            write(mark + plainjson.dumps(key) + b":")
            _drain(value.pop(key), write, levels - 1)
            mark = b","
        write(b"}")
    elif levels and type(value) is list and len(value) > _DRAINED_ITEMS:
        value.reverse()
        mark = b"["
        while value:
            some = [value.pop() for _ in range(min(_DRAINED_ITEMS, len(value)))]
            write(mark + plainjson.dumps(some)[1:-1])
            mark = b","
        write(b"]")
    else:
        write(plainjson.dumps(value))


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
