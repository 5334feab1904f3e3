"""A request: what somebody asks of a workflow that another process may be running.

While a workflow runs, its owner alone writes its journal. Everybody else leaves a request, a small file of
the store: one line of JSON, which carries its own SHA-256. The owner carries it out and removes it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
    StateTooLargeError,
)
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.time import parse_timestamp, timestamp_text

FOLDER = "requests/"
REQUEST_BYTES_MAX = 256 * 1024
_SUFFIX = ".json"
_HASH_CHARS = 16
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: A request ends with its sum, a quote, a brace and a newline.
_SUM_CHARS = len("sha256:") + 64
_END_CHARS = len('"}\n')
_HINT = "Ask again; the trail tells what was asked for, when and by whom."


class RequestKind(StrEnum):
    """What can be asked of a workflow."""

    CHECKPOINT = "checkpoint"
    PAUSE = "pause"
    CANCEL = "cancel"
    #: The answer to an approval that the workflow waits for.
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of a workflow.

    Attributes:
        id: a UUID.
        workflow_id: whom it is for.
        kind: what is asked for.
        actor: who asks; None if nobody was named.
        requested_at: when, with a time zone.
        reason: why, in words.
        data: what else the owner has to know; that of an approval says whether it is `granted`.
    """

    id: str
    workflow_id: str
    kind: RequestKind
    actor: str | None
    requested_at: datetime
    reason: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _UUID.fullmatch(self.id):
            raise InvalidIdError("the id of a request is no UUID", place=ascii(self.id)[:40])
        check_workflow_id(self.workflow_id)
        if self.actor is not None:
            check_id("actor", self.actor)
        if self.kind is RequestKind.APPROVAL and not isinstance(self.data.get("granted"), bool):
            raise InvalidStateError(
                "the answer to an approval does not say whether it is granted",
                place=self.workflow_id,
                hint='Give data={"granted": True} or {"granted": False}.',
            )

    @property
    def audit_type(self) -> AuditType:
        """How the trail tells of it."""
        if self.kind is not RequestKind.APPROVAL:
            return AuditType.REQUEST_MADE
        return AuditType.APPROVAL_GRANTED if self.data["granted"] else AuditType.APPROVAL_DENIED

    @property
    def file(self) -> str:
        """Name of the file that holds it."""
        return f"{folder_of(self.workflow_id)}{self.id}{_SUFFIX}"


def folder_of(workflow_id: str) -> str:
    """Begin the names of a workflow's requests; an id may be no name of a file."""
    return f"{FOLDER}{_sha256(workflow_id.encode())[:_HASH_CHARS]}/"


def id_of_file(name: str) -> str:
    """Tell the id of a request by the name of its file."""
    return name.rpartition("/")[2].removesuffix(_SUFFIX)


def encode_request(request: Request) -> bytes:
    """Write a request as its line.

    Raises:
        StateTooLargeError: it would be no small file.
    """
    fields: dict[str, Any] = {
        "id": request.id,
        "workflow_id": request.workflow_id,
        "kind": str(request.kind),
        "actor": request.actor,
        "requested_at": timestamp_text(request.requested_at),
        "reason": request.reason,
        "data": dict(request.data),
        "checksum": "",
    }
    unsigned = plainjson.dumps(fields) + b"\n"
    line = unsigned[:-_END_CHARS] + _checksum(unsigned) + unsigned[-_END_CHARS:]
    if len(line) > REQUEST_BYTES_MAX:
        raise StateTooLargeError(
            f"the request has {len(line)} bytes, the limit is {REQUEST_BYTES_MAX}",
            place=request.workflow_id,
            hint="Keep large data elsewhere, and give the request its name.",
        )
    return line


def decode_request(line: bytes, name: str) -> Request:
    """Read a request out of the file of a name, after checking it.

    Raises:
        ChecksumMismatchError: it is not what was written.
        CheckpointCorruptError: it is no request, or that of another file.
    """
    start, found = line[: -_SUM_CHARS - _END_CHARS], line[-_SUM_CHARS - _END_CHARS : -_END_CHARS]
    if found != _checksum(start + line[-_END_CHARS:]):
        raise ChecksumMismatchError("a request is not what was written", place=name, hint=_HINT)
    request = _request(line, name)
    if request.file != name:
        raise CheckpointCorruptError("the request is that of another file", place=name, hint=_HINT)
    return request


def _request(line: bytes, name: str) -> Request:
    try:
        fields = plainjson.loads(line, strict=True)
        return Request(
            _text(fields["id"]),
            _text(fields["workflow_id"]),
            RequestKind(fields["kind"]),
            None if fields["actor"] is None else _text(fields["actor"]),
            parse_timestamp(fields["requested_at"]),
            None if fields["reason"] is None else _text(fields["reason"]),
            _object(fields["data"]),
        )
    except (CheckpointError, KeyError, TypeError, ValueError) as fault:
        raise CheckpointCorruptError(f"this is no request ({fault})", place=name, hint=_HINT) from fault


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} where a text should be")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__} where an object should be")
    return value


def _checksum(unsigned: bytes) -> bytes:
    return b"sha256:" + _sha256(unsigned).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
