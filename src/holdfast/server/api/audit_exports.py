"""Exports of the trail: made as an operation, fetched as one file, gone with the server."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import anyio
import msgspec

from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.server.acting import CHANGING, NOT_FOUND, Acting, begin
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.operations import OperationRow, Progress
from holdfast.server.problems import Refusal

_PIECE_BYTES = 256 * 1024
_ID = re.compile(r"[0-9a-z_]{8}")


class ExportBody(Acting):
    """What goes along; payloads may hold personal data."""

    session: str | None = None
    payloads: bool = False


class Exported(msgspec.Struct):
    """What was exported, and where it is fetched."""

    download: str
    entries: int
    signed_size: int
    bytes: int
    has_payloads: bool


def export(desk: Desk, asked: Asked[None, ExportBody]) -> Answer:
    """Begin to export the log, or one session of it."""
    begin(desk, asked, "exportAudit")
    work = partial(_export, desk, asked.body)
    return desk.operations.start("audit.export", work, asked, scope=Scope.AUDIT_EXPORT, unit="files")


def _export(desk: Desk, body: ExportBody, progress: Progress) -> Exported:
    with tempfile.TemporaryDirectory(prefix="holdfast-export-") as folder:
        made = desk.service.audit.export(
            Path(folder) / "export", body.session, include_payloads=body.payloads
        )
        target = desk.exports.place()
        files = sorted(path for path in made.folder.rglob("*") if path.is_file())
        with ZipFile(target, "w", ZIP_DEFLATED) as archive:
            for number, path in enumerate(files, 1):
                archive.write(path, Path("holdfast-export") / path.relative_to(made.folder))
                progress.step(number, len(files))
    return Exported(
        f"/v1/audit/exports/{target.stem}",
        made.entries,
        made.signed_size,
        target.stat().st_size,
        body.payloads,
    )


def fetch(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Hand an export out."""
    name = asked.path["id"]
    found = desk.exports.find(name) if _ID.fullmatch(name) else None
    if found is None:
        raise Refusal(
            404, "no_such_export", "there is no such export", hint="It is gone, or of another server."
        )
    desk.note(AuditType.TRAIL_EXPORTED, None, {"format": "zip"})
    headers = {"Content-Disposition": 'attachment; filename="holdfast-audit.zip"'}
    return Answer(None, 200, headers, "application/zip", _pieces(found))


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as file:
        while piece := await file.read(_PIECE_BYTES):
            yield piece


OPERATIONS = (
    Operation(
        "exportAudit",
        "POST",
        "/audit/export",
        Scope.AUDIT_EXPORT,
        "Export the trail for verifying it elsewhere.",
        export,
        body=ExportBody,
        result=OperationRow,
        status=202,
        acts=True,
        tag="audit",
        problems=CHANGING,
    ),
    Operation(
        "fetchAuditExport",
        "GET",
        "/audit/exports/{id}",
        Scope.AUDIT_EXPORT,
        "An export, as one file.",
        fetch,
        also=("application/zip",),
        tag="audit",
        problems=NOT_FOUND,
    ),
)
