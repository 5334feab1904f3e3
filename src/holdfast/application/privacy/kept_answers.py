"""Answers that a server kept may repeat what is erased, whatever was asked: each erasure empties all of them.

That a key was used, what for and by whom stays: what was done under it is not done a second time. A key that
has no answer yet is left alone, whoever has it is still at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail
from holdfast.domain import plainjson
from holdfast.domain.access import ANSWERS, NOT_KEPT
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointSchemaError,
    KeyDestroyedError,
    UnstorableValueError,
)
from holdfast.domain.json_reading import read_json

_FILES_AT_ONCE = 128
_ATTEMPTS_MAX = 100
#: What stays beside the answer.
_STAYING = ("digest", "at", "owner", "request_id")
#: Takes the place of what cannot be read: no server can either, so nothing is done again under that key.
_UNREADABLE = plainjson.dumps({"code": NOT_KEPT})
_HINT = "Look at the trail for the request's id: it tells what became of it."


class KeptAnswers:
    """Empties the answers that servers of a store keep under Idempotency-Keys."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail

    def empty(self) -> None:
        """Empty all that are kept, some with each commit; what was interrupted may be repeated.

        Raises:
            CheckpointConflictError: others change them without pause.
        """
        names = list(self._kit.store.files(ANSWERS))
        for first in range(0, len(names), _FILES_AT_ONCE):
            self._empty_some(names[first : first + _FILES_AT_ONCE])

    def _empty_some(self, names: Sequence[str]) -> None:
        for _ in range(_ATTEMPTS_MAX):
            before: dict[str, bytes | None] = {}
            after: dict[str, bytes | None] = {}
            for name in names:
                data = self._kit.store.file(name)
                emptied = None if data is None else self._emptied(name, data)
                if emptied is not None:
                    before[name], after[name] = data, emptied
            if not after:
                return
            try:
                self._trail.commit((), after, before)
            except CheckpointConflictError:
                # Others keep answers and sweep old ones meanwhile: none of that is undone here.
                continue
            return
        raise CheckpointConflictError("others change the answers that are kept without pause", place=ANSWERS)

    def _emptied(self, name: str, data: bytes) -> bytes | None:
        """Write a file without its answer; None if it has none."""
        vault = self._kit.vault
        try:
            line = data if vault is None else vault.open_file(name, data)
        except (CheckpointCorruptError, CheckpointSchemaError, KeyDestroyedError):
            # One that was damaged must not keep anybody from being erased.
            line = b""
        emptied = without_answer(line)
        return emptied if emptied is None or vault is None else vault.seal_file(name, emptied)


def without_answer(line: bytes) -> bytes | None:
    """Write what is kept of a key without the answer; None if there is none, or nothing is left of it."""
    if line == _UNREADABLE:
        return None
    try:
        fields = read_json(line)
        answer, stays = fields["answer"], {name: str(fields[name]) for name in _STAYING}
        if answer is None or answer["code"] == NOT_KEPT:
            return None
        return plainjson.dumps({**stays, "answer": _told(answer, stays["request_id"])})
    except (ValueError, KeyError, TypeError, UnstorableValueError):
        return _UNREADABLE


def _told(answer: dict[str, Any], request_id: str) -> dict[str, Any]:
    """Tell that there was an answer, in the shape of one."""
    status = answer["status"]
    if type(status) is not int:
        raise TypeError("a status is a number")
    outcome = f"was refused, with {status}" if answer["code"] else f"was done, and answered {status}"
    return {
        "status": 409,
        "headers": {},
        "body": None,
        "code": NOT_KEPT,
        "detail": f"it {outcome}; the answer went with an erasure",
        "hint": _HINT,
        "place": request_id,
        "errors": [],
        "candidates": [],
    }
