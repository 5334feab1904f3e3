"""Changes as JSON Patch (RFC 6902), for tools that know nothing of Holdfast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from holdfast.cli.pointer import pointer_text
from holdfast.cli.values import NOTHING

if TYPE_CHECKING:
    from holdfast.domain.delta import Operation


def json_patch(changes: Iterable[tuple[Operation, Any]]) -> list[dict[str, Any]]:
    """Turn operations, each with what it found at its path, into a patch."""
    return [step for op, old in changes for step in _steps(op, old)]


def _steps(op: Operation, old: Any) -> Iterator[dict[str, Any]]:
    path = pointer_text(op["path"])
    if op["op"] == "delete":
        yield {"op": "remove", "path": path}
    elif op["op"] == "append":
        yield {"op": "replace", "path": path, "value": old + op["text"]}
    elif op["op"] == "splice":
        # Each removal moves what follows to the same place.
        yield from ({"op": "remove", "path": f"{path}/{op['at']}"} for _ in range(op["remove"]))
        for place, item in enumerate(op["insert"], start=op["at"]):
            yield {"op": "add", "path": f"{path}/{place}", "value": item}
    else:
        yield {"op": "add" if old is NOTHING else "replace", "path": path, "value": op["value"]}
