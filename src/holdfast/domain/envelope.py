"""The envelope of a checkpoint file: its version, and how one of another version is read.

The version of the envelope is Holdfast's own. That of the state inside belongs to the application.
"""

from __future__ import annotations

from typing import Any

from holdfast.domain.errors import CheckpointCorruptError, UnsupportedVersionError
from holdfast.domain.migration import MigrationRegistry, is_newer

VERSION = "1.0.0"
_PREFIX = "checkpoint-schema-v"
SCHEMA = _PREFIX + VERSION

#: Steps take and answer the file's fields without the state: `$schema`, `header`, `footer`, and others.
MIGRATIONS = MigrationRegistry()


def version_of(whole: dict[str, Any]) -> str:
    """Read the version of an envelope.

    Raises:
        CheckpointCorruptError: it names none.
    """
    schema = whole.get("$schema")
    if not isinstance(schema, str) or not schema.startswith(_PREFIX):
        raise CheckpointCorruptError(f"the file is no keyframe ({schema!r} is no schema of one)")
    return schema.removeprefix(_PREFIX)


def current(whole: dict[str, Any], place: str) -> dict[str, Any]:
    """Answer a file's fields with the envelope of today.

    One of the same major version is read as it is: it has at most fields that are not known here.

    Raises:
        CheckpointCorruptError: the file names no version.
        UnsupportedVersionError: a newer Holdfast wrote it.
        MigrationFailedError: a step of the way failed.
    """
    if whole.get("$schema") == SCHEMA:
        return whole
    version = version_of(whole)
    if version.partition(".")[0] == VERSION.partition(".")[0]:
        return whole
    return migrated(whole, VERSION, MIGRATIONS, place)


def migrated(
    whole: dict[str, Any], target: str, migrations: MigrationRegistry, place: str = ""
) -> dict[str, Any]:
    """Bring the envelope of a file to a version; the state and all fields that no step knows are kept.

    Raises:
        CheckpointCorruptError: the file names no version.
        UnsupportedVersionError: no steps lead there.
        MigrationFailedError: a step of the way failed.
    """
    source = version_of(whole)
    state = {"state": whole["state"]} if "state" in whole else {}
    outside = {name: field for name, field in whole.items() if name != "state"}
    try:
        answer = migrations.migrate(outside, source, target, place=place)
    except UnsupportedVersionError:
        message = f"the keyframe has the schema {whole['$schema']!r}, and this Holdfast reads {SCHEMA!r}"
        hint = "Upgrade Holdfast." if is_newer(source, target) else "No migration leads there."
        raise UnsupportedVersionError(message, place=place, hint=hint) from None
    header = answer.get("header")
    if source != target and isinstance(header, dict):
        answer = {**answer, "$schema": _PREFIX + target, "header": {**header, "version": target}}
    # The state stands before the footer, as people expect it.
    before: dict[str, Any] = {name: answer[name] for name in ("$schema", "header") if name in answer}
    return {**before, **state, **answer}
