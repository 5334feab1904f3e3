"""Answers to an agent: JSON that is never larger than agreed, and says what it leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.checkpoint import CheckpointMeta
from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError, InvalidStateError
from holdfast.domain.ids import CheckpointID
from holdfast.domain.json_reading import read_json
from holdfast.domain.pointer import look_up, parse_pointer
from holdfast.domain.time import timestamp_text

ANSWER_BYTES = 100_000
LIMIT_MAX = 200


@dataclass(frozen=True, slots=True)
class Answers:
    """Puts answers together that are not larger than so many bytes."""

    bytes_max: int

    def fitted(self, name: str, rows: Iterable[dict[str, Any]], total: int) -> dict[str, Any]:
        """Answer as many rows as fit, and how many of all are left out."""
        room, shown = self.bytes_max, list[dict[str, Any]]()
        for row in islice(rows, LIMIT_MAX):
            room -= _size(row)
            if room < 0:
                break
            shown.append(row)
        return {name: shown, "total": total, "left_out": total - len(shown)}

    def whole(self, name: str, plain: Any, pointer: str) -> dict[str, Any]:
        """Answer a value, or what is in it where it is too large."""
        value = json_of(plain)
        if _size(value) <= self.bytes_max:
            return {name: value}
        hint = f"Larger than {self.bytes_max:,} bytes. Ask for a place in it: pointer='{pointer}/...'."
        return {"too_large": _outlined(value), "hint": hint}


def bounded(limit: int) -> int:
    """Answer how many are shown of what somebody wants to see so many of."""
    return min(max(limit, 1), LIMIT_MAX)


def json_of(plain: Any) -> Any:
    """Turn a plain tree into one that JSON has words for.

    Raises:
        InvalidStateError: it is nested too deep.
    """
    try:
        return read_json(plainjson.dumps(plain))
    except ValueError:
        raise InvalidStateError("this is nested too deep to be shown", hint="Use `holdfast show`.") from None


def looked_up(tree: Any, pointer: str) -> Any:
    """Find the value that a JSON pointer means.

    Raises:
        InvalidStateError: there is none.
    """
    try:
        return look_up(tree, parse_pointer(pointer))
    except (InvalidIdError, CheckpointNotFoundError) as wrong:
        raise InvalidStateError(wrong.message, place=wrong.place, hint=wrong.hint) from None


def listed(meta: CheckpointMeta) -> dict[str, Any]:
    """Tell of a checkpoint what a listing does."""
    return {
        "checkpoint": str(meta.id),
        "created": timestamp_text(meta.created_at),
        "type": str(meta.type),
        "status": str(meta.status),
        "agent": meta.agent_id,
        "stage": meta.stage_id,
        "bytes": meta.size_bytes,
    }


def made_fields(made: CheckpointID) -> dict[str, Any]:
    """Tell of a checkpoint that was made."""
    names = {"checkpoint": str(made), "sequence": made.sequence, "checksum": made.checksum}
    return {**names, "durable": made.durable}


def _outlined(value: Any) -> dict[str, Any]:
    """Tell what is in a value: names and sizes in bytes."""
    if isinstance(value, Mapping):
        some = islice(value.items(), LIMIT_MAX)
        return {"fields": {name[:100]: _size(inner) for name, inner in some}, "total": len(value)}
    if isinstance(value, list):
        return {"items": len(value)}
    return {"bytes": _size(value)}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
