"""What every request has in common that changes something: a reason, told before anything is done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from holdfast.application.wishes import REASON_CHARS_MAX, Wish, tell_wish
from holdfast.domain.ids import MAX_ID_CHARS
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked

#: Something has to be said: white space says nothing.
Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=REASON_CHARS_MAX, pattern=r"\S")]
#: The name of a workflow; whether it may be one is looked at where it is used.
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
#: The number of a checkpoint.
Number: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]

_UNPRINTABLE = re.compile("[\x00-\x20\x7f-\xa0\u2028\u2029]+")

#: Statuses beyond those that every operation has, with what they mean.
NOT_FOUND: Final[Mapping[int, str]] = {404: "There is no such thing."}
READING: Final[Mapping[int, str]] = {
    404: "There is no such thing.",
    409: "What is stored is damaged, or cannot be read here.",
    410: "Its key was destroyed, and so it is gone.",
}
CHANGING: Final[Mapping[int, str]] = {
    404: "There is no such thing.",
    409: "It cannot be done as things are, or the key is in use.",
    410: "Its key was destroyed, and so it is gone.",
    507: "The disk is full.",
}


class Acting(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is sent along with everything that changes something."""

    #: Why; it stays in the trail, so name nobody.
    reason: Reason


def begin(desk: Desk, asked: Asked[Any, Any], operation: str, workflow_id: str | None = None) -> str:
    """Tell the trail who is about to do what, and why; answer the reason in one printable line.

    Raises:
        CheckpointError: it cannot be told: then it is not done.
    """
    facts = {"via": "http", "operation": operation}
    tell_wish(desk.service.audit, Wish(asked.body.reason, workflow_id, facts=facts))
    return one_line(asked.body.reason)


def one_line(reason: str) -> str:
    """Put a reason where a short name goes: a person may have written it on several lines."""
    line = _UNPRINTABLE.sub(" ", reason).strip()[:MAX_ID_CHARS].strip()
    return ascii(reason)[:MAX_ID_CHARS] if line in ("", ".", "..") else line
