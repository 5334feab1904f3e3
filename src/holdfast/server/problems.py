"""What goes wrong, as problem details (RFC 9457): the same words and codes as on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from holdfast.domain.errors import CheckpointError

MEDIA_TYPE = "application/problem+json"
_TYPES = "https://holdfast.invalid/problems/"

#: By the stable code of an error. Tests see to it that none is missing.
STATUS_OF_ERROR: Mapping[str, int] = {
    "checkpoint_error": 500,
    "checkpoint_write_failed": 503,
    "disk_full": 507,
    "permission_denied": 403,
    "atomic_rename_failed": 503,
    "result_lost": 503,
    "checkpoint_conflict": 409,
    "lease_held": 409,
    "lease_lost": 409,
    "state_too_large": 413,
    "unsupported_type": 422,
    "unstorable_value": 422,
    "store_read_only": 403,
    "store_closed": 503,
    "checkpoint_read_failed": 503,
    "checkpoint_not_found": 404,
    "checkpoint_corrupt": 409,
    "checksum_mismatch": 409,
    "seal_broken": 409,
    "checkpoint_quarantined": 409,
    "key_destroyed": 410,
    "store_not_found": 503,
    "store_locked": 503,
    "recovery_failed": 409,
    "no_valid_checkpoint": 409,
    "event_replay_failed": 409,
    "state_reconstruction_failed": 409,
    "handler_not_found": 409,
    "schema_error": 409,
    "unsupported_version": 409,
    "migration_failed": 409,
    "run_failed": 409,
    "invalid_declaration": 422,
    "graph_changed": 409,
    "agent_failed": 409,
    "attempt_over": 409,
    "effect_unknown": 409,
    "legal_hold": 409,
    "key_unavailable": 503,
    "invalid_state": 422,
    "invalid_id": 400,
    "invalid_config": 422,
}


class Detail(msgspec.Struct):
    """One thing that is wrong with what was sent."""

    message: str
    place: str = ""


class Problem(msgspec.Struct, omit_defaults=False):
    """What is sent where a request cannot be answered."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    #: Names this occurrence: the same id stands in the logs and in the trail.
    instance: str
    request_id: str
    hint: str = ""
    place: str = ""
    errors: list[Detail] = []
    #: What may have been meant, where a name means several.
    candidates: list[str] = []


class Refusal(Exception):
    """End a request with a status, and the words for it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str = "",
        place: str = "",
        errors: Sequence[Detail] = (),
        candidates: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.place = place
        self.errors = list(errors)
        self.candidates = list(candidates)
        self.headers = dict(headers or {})


def refusal_of(error: CheckpointError) -> Refusal:
    """Turn an error of the library into what a request ends with."""
    status = STATUS_OF_ERROR.get(error.code, 500)
    headers = {"Retry-After": "1"} if status == 503 else None
    return Refusal(status, error.code, error.message, hint=error.hint, place=error.place, headers=headers)


def problem_of(refusal: Refusal, request_id: str) -> Problem:
    """Write a refusal as what is sent."""
    return Problem(
        type=_TYPES + refusal.code.replace("_", "-"),
        title=HTTPStatus(refusal.status).phrase,
        status=refusal.status,
        detail=_written(refusal.detail),
        code=refusal.code,
        instance=f"urn:holdfast:request:{request_id}",
        request_id=request_id,
        hint=_written(refusal.hint),
        place=_written(refusal.place),
        errors=[Detail(_written(one.message), _written(one.place)) for one in refusal.errors],
        candidates=[_written(one) for one in refusal.candidates],
    )


def _written(text: str) -> str:
    """Spell out what no text can hold, so that every problem can be read."""
    return text.encode("utf-8", "backslashreplace").decode()


def response_of(refusal: Refusal, request_id: str) -> Response:
    """Write a refusal as a response."""
    problem = problem_of(refusal, request_id)
    return Response(encode(problem), refusal.status, refusal.headers, MEDIA_TYPE)


def encode(value: Any) -> bytes:
    """Write JSON."""
    return msgspec.json.encode(value)
