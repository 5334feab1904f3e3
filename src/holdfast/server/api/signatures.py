"""Whether the trail vouches for a checkpoint, and which Holdfast made it."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.application.audit.vouching import vouch
from holdfast.domain.access import Scope
from holdfast.server.acting import READING
from holdfast.server.api.reading import found_checkpoint
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation


class SignatureTold(msgspec.Struct):
    """How far the trail vouches for a checkpoint.

    `index` is the entry that tells of it, `size` how many entries the newest signed head covers, `key` what
    signed that; `is_own_key` says that the server has that key, and need not believe the log. `producer` is
    the version of Holdfast that began the session in which the checkpoint was made.
    """

    checkpoint: str
    state: Literal["signed", "waiting", "untold", "broken", "unknown"]
    index: int | None
    size: int
    key: str
    is_own_key: bool
    session_id: str | None
    producer: str | None
    problem: str


def show_signature(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Tell how far the trail vouches for a checkpoint; a later head may cover what none does now."""
    found = found_checkpoint(desk, asked.path["checkpoint"])
    vouching = vouch(desk.kit.store, desk.service.audit, found)
    told = SignatureTold(
        str(found),
        vouching.standing.value,
        vouching.index,
        vouching.size,
        vouching.key,
        vouching.is_own_key,
        vouching.session_id,
        vouching.producer,
        vouching.problem,
    )
    return Answer(told, headers={"Cache-Control": "no-store"})


OPERATIONS = (
    Operation(
        "getSignature",
        "GET",
        "/checkpoints/{checkpoint}/signature",
        Scope.READ,
        "Tell whether a signed head covers a checkpoint, and which Holdfast made it.",
        show_signature,
        result=SignatureTold,
        tag="checkpoints",
        problems=READING,
    ),
)
