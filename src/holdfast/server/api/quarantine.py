"""What was found damaged and set aside: looked at, checked again, released, and dropped for good."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from holdfast.application.quarantine_files import report_of, report_or_remains, reports
from holdfast.application.quarantine_marks import is_quarantined
from holdfast.application.recovery.unusable import in_the_way, starts
from holdfast.application.resolve import living, resolve
from holdfast.application.survey import survey
from holdfast.application.validate import list_one, validate_listed
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.quarantine import Part as SetAsidePart
from holdfast.domain.quarantine import Quarantined, Release
from holdfast.domain.recovery_plan import Damage
from holdfast.server.acting import CHANGING, READING, Acting, Name, begin
from holdfast.server.api.reading import found_checkpoint
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation
from holdfast.server.slices import Part, part_of
from holdfast.server.totals import Total


class QuarantineRow(msgspec.Struct):
    """Something that was set aside."""

    name: str
    #: What was damaged, for people.
    place: str
    kind: str
    reason: str
    workflow_id: str | None
    sequence: int | None
    found_at: str
    found_by: str | None
    size_bytes: int
    sha256: str
    checksum: str | None
    #: Whether it keeps a checkpoint from being used.
    bars: bool
    released: Release | None


class QuarantinePage(msgspec.Struct):
    """Some of what was set aside, the newest first."""

    items: list[QuarantineRow]
    next_cursor: str | None
    total: Total = UNSET


class QuarantineDetail(msgspec.Struct):
    """Something that was set aside, and how things stand now."""

    row: QuarantineRow
    parts: list[SetAsidePart]
    #: What is in the way of the checkpoint at this moment.
    damage: list[Damage]
    #: The newest older checkpoint that is not barred.
    last_good: str | None


class SetAside(Acting):
    """What is to be set aside."""

    checkpoint: Name


class Revalidation(msgspec.Struct):
    """Whether what was set aside verifies now."""

    name: str
    valid: bool
    problems: list[str]
    #: Whether it can be released.
    can_release: bool


def list_quarantine(desk: Desk, asked: Asked[Part, None]) -> QuarantinePage:
    """List what was set aside."""
    found = reports(desk.kit.store)[::-1]
    chosen, cursor, total = part_of(found, asked.query, lambda one: one.name)
    return QuarantinePage([_row(one) for one in chosen], cursor, total)


def get_quarantined(desk: Desk, asked: Asked[None, None]) -> QuarantineDetail:
    """Show why something was set aside."""
    report = report_or_remains(desk.kit.store, asked.path["name"])
    damage, last_good = _now(desk, report)
    return QuarantineDetail(_row(report), list(report.parts), list(damage), last_good)


def set_aside(desk: Desk, asked: Asked[None, SetAside]) -> QuarantineRow:
    """Set a checkpoint aside: it is not used any more until it is released."""
    found = found_checkpoint(desk, asked.body.checkpoint)
    reason = begin(desk, asked, "setAside", found.workflow_id)
    return _row(desk.service.quarantine.put(found.workflow_id, found.entry.sequence, reason))


def release(desk: Desk, asked: Asked[None, Acting]) -> QuarantineRow:
    """Let a checkpoint be used again that verifies again."""
    report = report_of(desk.kit.store, asked.path["name"])
    reason = begin(desk, asked, "releaseQuarantined", report.workflow_id)
    return _row(desk.service.quarantine.release(report.name, reason))


def drop(desk: Desk, asked: Asked[None, Acting]) -> QuarantineRow:
    """Remove evidence for good."""
    report = report_or_remains(desk.kit.store, asked.path["name"])
    reason = begin(desk, asked, "dropQuarantined", report.workflow_id)
    return _row(desk.service.quarantine.drop(report.name, reason))


def revalidate(desk: Desk, asked: Asked[None, Acting]) -> Revalidation:
    """Check whether what was set aside verifies now; nothing is released."""
    report = report_of(desk.kit.store, asked.path["name"])
    begin(desk, asked, "revalidateQuarantined", report.workflow_id)
    problems = _problems(desk, report)
    outcome = Outcome.FAILURE if problems else Outcome.SUCCESS
    desk.note(
        AuditType.CHECKPOINT_VALIDATED, report.workflow_id, {"quarantine": report.name}, outcome=outcome
    )
    is_checkpoint = report.workflow_id is not None and report.released is None
    return Revalidation(report.name, not problems, problems, is_checkpoint and not problems)


def _problems(desk: Desk, report: Quarantined) -> list[str]:
    if report.workflow_id is None or report.sequence is None:
        return ["this is no checkpoint: there is nothing to compare it with"]
    try:
        found = resolve(desk.kit.store, f"{report.workflow_id}@{report.sequence}")
    except CheckpointNotFoundError as gone:
        return [gone.message]
    return list(validate_listed(desk.kit, desk.reader, list_one(desk.kit.store, found)).problems)


def _now(desk: Desk, report: Quarantined) -> tuple[tuple[Damage, ...], str | None]:
    """Tell what is in the way of a checkpoint, and the newest one before it that nothing is in the way of."""
    store, workflow_id = desk.kit.store, report.workflow_id
    if workflow_id is None or report.sequence is None:
        return (), None
    seen = survey(store, workflow_id)
    whole = starts(store, workflow_id, seen)
    older = (one.sequence for one in living(store, workflow_id) if one.sequence < report.sequence)
    good = (
        f"{workflow_id}@{one}"
        for one in older
        if not is_quarantined(store, workflow_id, one) and not in_the_way(seen, whole, one)
    )
    return in_the_way(seen, whole, report.sequence), next(good, None)


def _row(one: Quarantined) -> QuarantineRow:
    return QuarantineRow(
        one.name,
        one.place,
        str(one.kind),
        one.reason,
        one.workflow_id,
        one.sequence,
        one.found_at,
        one.found_by,
        one.size_bytes,
        one.sha256,
        one.checksum,
        one.bars,
        one.released,
    )


OPERATIONS = (
    Operation(
        "listQuarantine",
        "GET",
        "/quarantine",
        Scope.READ,
        "List what was found damaged and set aside.",
        list_quarantine,
        query=Part,
        result=QuarantinePage,
        tag="quarantine",
    ),
    Operation(
        "setAside",
        "POST",
        "/quarantine",
        Scope.WRITE,
        "Set a checkpoint aside, with its bytes as evidence.",
        set_aside,
        body=SetAside,
        result=QuarantineRow,
        status=201,
        acts=True,
        tag="quarantine",
        problems=CHANGING,
    ),
    Operation(
        "getQuarantined",
        "GET",
        "/quarantine/{name}",
        Scope.READ,
        "Show why something was set aside, and what is in its way now.",
        get_quarantined,
        result=QuarantineDetail,
        tag="quarantine",
        problems=READING,
    ),
    Operation(
        "revalidateQuarantined",
        "POST",
        "/quarantine/{name}/revalidate",
        Scope.WRITE,
        "Check whether what was set aside verifies now.",
        revalidate,
        body=Acting,
        result=Revalidation,
        acts=True,
        tag="quarantine",
        problems=CHANGING,
    ),
    Operation(
        "releaseQuarantined",
        "POST",
        "/quarantine/{name}/release",
        Scope.WRITE,
        "Let a checkpoint be used again that verifies again.",
        release,
        body=Acting,
        result=QuarantineRow,
        acts=True,
        tag="quarantine",
        problems=CHANGING,
    ),
    Operation(
        "dropQuarantined",
        "POST",
        "/quarantine/{name}/drop",
        Scope.PRUNE,
        "Remove evidence for good.",
        drop,
        body=Acting,
        result=QuarantineRow,
        acts=True,
        tag="quarantine",
        problems=CHANGING,
    ),
)
