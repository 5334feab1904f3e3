"""What the endpoints that read have in common: limits of pages, names that are looked up, JSON of states."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from holdfast.application.insight.runs import RunRow
from holdfast.application.resolve import Found, resolve
from holdfast.domain import plainjson
from holdfast.domain.access import Scope
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.ids import check_workflow_id, parse_ref
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked
from holdfast.server.problems import Refusal

PAGE_MAX = 500
_CANDIDATES_MAX = 20

Limit: TypeAlias = Annotated[int, Meta(ge=1, le=PAGE_MAX)]
Cursor: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2_000)]
#: Part of what is looked for, by people.
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=500)]

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def check_there(desk: Desk, name: str) -> str:
    """Answer the name of a workflow that is there.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    head = desk.kit.store.head(check_workflow_id(name))
    if not (head.sequence or head.event_seq):
        raise _none_such(name)
    return name


def known_run(desk: Desk, name: str) -> RunRow:
    """Answer the row of a workflow.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    row = desk.runs.row(check_workflow_id(name))
    if row is None:
        raise _none_such(name)
    return row


def without_quotes(asked: Asked[Any, Any], reason: str) -> str:
    """Answer why something failed: only which error it was, for whoever may not look into states.

    An error may quote what it was about.
    """
    return reason if asked.identity.may(Scope.STATE_READ) else reason.partition(":")[0]


def shown_row(asked: Asked[Any, Any], row: RunRow) -> RunRow:
    """Answer a row as whoever asks may see it."""
    return replace(row, reason=without_quotes(asked, row.reason))


def _none_such(name: str) -> CheckpointNotFoundError:
    return CheckpointNotFoundError("there is no such workflow", place=name, hint="See GET /v1/runs.")


def writable(text: str) -> str:
    """Answer a text that an answer can repeat.

    Raises:
        Refusal: it holds bytes that are no text.
    """
    if _HALF_PAIR.search(text):
        raise Refusal(400, "invalid_id", "this is no UTF-8", place=ascii(text)[:80])
    return text


def found_checkpoint(desk: Desk, name: str) -> Found:
    """Answer the checkpoint that a name means.

    Raises:
        CheckpointNotFoundError: there is none.
        InvalidIdError: the name is none, or that of a point between two checkpoints.
        Refusal: it is the beginning of several UUIDs.
    """
    check_meaning(desk, name)
    return resolve(desk.kit.store, name)


def check_meaning(desk: Desk, name: str) -> None:
    """Refuse a name that may mean several checkpoints, and tell which.

    Raises:
        CheckpointNotFoundError: it is the path of a file.
        InvalidIdError: the name is none.
        Refusal: it is the beginning of several UUIDs.
    """
    ref, store = parse_ref(writable(name)), desk.kit.store
    if ref.path:
        # Whoever asks from elsewhere has no business with the files of this machine, or what is where.
        raise CheckpointNotFoundError(
            "a checkpoint is not named by a file here", place=name, hint="Name it by its workflow: WF@42."
        )
    if not ref.uuid or store.head(ref.workflow_id).sequence:
        return
    meant = [f"{found}@{entry.sequence}" for found, entry in store.find(ref.uuid) if not entry.pruned]
    if len(meant) > 1:
        raise Refusal(
            409,
            "ambiguous_name",
            f"{len(meant)} checkpoints have a UUID that begins so",
            place=name,
            hint="Give more of its digits, or one of the candidates.",
            candidates=meant[:_CANDIDATES_MAX],
        )


def aware(moment: datetime | None) -> datetime | None:
    """Answer a moment that is the same for everybody.

    Raises:
        Refusal: it has no time zone.
    """
    if moment is not None and moment.tzinfo is None:
        raise Refusal(400, "invalid_request", "a moment has a time zone", hint="Write 2026-01-31T12:00:00Z.")
    return moment


def raw_json(plain: Any) -> msgspec.Raw:
    """Write a plain tree as it is stored: tagged where JSON has no word for it, at any depth."""
    return msgspec.Raw(plainjson.dumps(plain))
