"""Making a report on a damaged checkpoint: what is stored of it now, and which of it is worth copying."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from holdfast.application.kit import Kit
from holdfast.application.records import sha256_of
from holdfast.application.trailing import actor_of
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError
from holdfast.domain.quarantine import Kind, Quarantined, evidence_name, in_pieces, parts_of
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text
from holdfast.ports import Store

_BLOB = "blob-"


def draft_report(
    kit: Kit, workflow_id: str, sequence: int, kind: Kind, given: str
) -> tuple[Quarantined, bytes]:
    """Write a report on a checkpoint, or its keyframe, as it is stored now; answer it with the bytes to keep.

    Raises:
        CheckpointNotFoundError: there is no such checkpoint, and nothing stored that could be it.
    """
    entry, reason = _listed(kit.store, workflow_id, sequence, given)
    pieces = list(kit.store.evidence(workflow_id, sequence))
    if kind is Kind.KEYFRAME:
        pieces = [piece for piece in pieces if piece[0] == "keyframe"]
    place = f"{workflow_id}@{sequence}"
    if not pieces:
        if entry is None and reason == given:
            raise _no_checkpoint(place)
        reason += "; nothing stored of it could be located"
    parts, data = parts_of(pieces, _sound(kit.store, workflow_id, sequence, [name for name, _ in pieces]))
    sha256 = sha256_of(data)
    report = Quarantined(
        evidence_name(workflow_id, sequence, kind, sha256),
        place if kind is Kind.CHECKPOINT else f"{kind} {place}",
        reason if kit.redactor is None else kit.redactor.text(reason),
        sha256,
        len(data),
        timestamp_text(kit.clock.now()),
        kind,
        workflow_id,
        sequence,
        entry.checksum if entry else None,
        actor_of(kit),
        parts,
    )
    return replace(report, files=tuple(in_pieces(report.name, data))), data


def _listed(store: Store, workflow_id: str, sequence: int, reason: str) -> tuple[Entry | None, str]:
    """Answer what is listed of a checkpoint, and the reason; with what keeps the listing from being read."""
    try:
        return entry_of(store, workflow_id, sequence), reason
    except CheckpointCorruptError as problem:
        return None, f"{reason}; {problem.message}"


def entry_of(store: Store, workflow_id: str, sequence: int) -> Entry | None:
    """Answer what is listed of a checkpoint, pruned or not."""
    return next((one for one in store.entries(workflow_id) if one.sequence == sequence), None)


def keyframe_problem(store: Store, workflow_id: str, sequence: int) -> CheckpointError | None:
    """Tell what is wrong with a keyframe that is listed."""
    if not any(keyframe.sequence == sequence for keyframe in store.keyframes(workflow_id)):
        return None
    return problem_of(partial(store.keyframe, workflow_id, sequence))


def problem_of(read: Callable[[], object]) -> CheckpointError | None:
    """Tell what goes wrong with a reading."""
    try:
        read()
    except CheckpointError as problem:
        return problem
    return None


def _sound(store: Store, workflow_id: str, sequence: int, names: list[str]) -> list[str]:
    """Name the pieces whose bytes are what was committed: their sums say enough. A record is small."""
    blobs = [name for name in names if name.startswith(_BLOB)]
    sound = [name for name in blobs if problem_of(partial(store.blob, name.removeprefix(_BLOB))) is None]
    is_whole = "keyframe" in names and keyframe_problem(store, workflow_id, sequence) is None
    return [*sound, "keyframe"] if is_whole else sound


def _no_checkpoint(place: str) -> CheckpointNotFoundError:
    return CheckpointNotFoundError(
        "there is no such checkpoint, and nothing stored that could be it",
        place=place,
        hint="See `holdfast list` for what is there.",
    )
