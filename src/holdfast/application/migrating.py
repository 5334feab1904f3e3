"""States and checkpoint files of other versions, brought to the version that is wanted.

What is stored stays as it is: a state is migrated each time it is read, until the program records it anew.
"""

from __future__ import annotations

from typing import Any

from holdfast.application.keyframes import lay_out
from holdfast.application.kit import Kit
from holdfast.domain import envelope, plainjson
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointSchemaError,
    MigrationFailedError,
)
from holdfast.domain.migration import MigrationRegistry, check_version
from holdfast.ports import Packer

_PLAIN = frozenset({str, float, bool, type(None), bytes})
_TEXTS = frozenset({str})
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_LATER = "A sealed state is migrated when it is restored, or by `holdfast migrate --apply`."


def is_current(kit: Kit, schema: str) -> bool:
    """Tell whether a stored state has the shape that the program gives its states."""
    return schema == kit.app.schema_version


def migrated(kit: Kit, tree: dict[str, Any], schema: str, place: str) -> dict[str, Any]:
    """Bring a stored state, as a plain tree without blobs, to the version of the program.

    Raises:
        UnsupportedVersionError: the program does not know how.
        MigrationFailedError: a step of the way failed.
    """
    workflow_id = tree.get("workflow_id")
    try:
        answer = kit.app.migrations.migrate(tree, schema, kit.app.schema_version, place=place)
        if answer.get("workflow_id") != workflow_id:
            raise MigrationFailedError(
                "the migrations changed the workflow's id", place=place, hint="Let them leave it alone."
            )
        return _plainly(answer, kit.packer, place)
    except CheckpointSchemaError as problem:
        # A step may repeat in what it says whatever it saw.
        if kit.redactor is not None:
            kit.redactor.conceal(problem)
        raise


def _plainly(tree: dict[str, Any], packer: Packer, place: str) -> dict[str, Any]:
    """Turn values that a step put in, a date or a set, into what is stored of them."""
    todo: list[Any] = [tree]
    while todo:
        owner = todo.pop()
        for key, value in owner.items() if type(owner) is dict else enumerate(owner):
            kind = type(value)
            if kind in _PLAIN or (kind is int and _SMALLEST <= value <= _LARGEST):
                continue
            if kind is list or (kind is dict and _TEXTS.issuperset(map(type, value))):
                todo.append(value)
                continue
            try:
                owner[key] = packer.unpack(packer.pack(value))
            except CheckpointError as problem:
                raise MigrationFailedError(
                    f"the migrations gave a value that cannot be stored: {problem.message}",
                    place=f"{place} {key}",
                    hint=problem.hint,
                ) from problem
    return tree


def migrate(data: bytes, target_version: str, migrations: MigrationRegistry = envelope.MIGRATIONS) -> bytes:
    """Bring the envelope of a checkpoint file to another version; the state and unknown fields are kept.

    Args:
        data: the bytes of a keyframe file, of any encoding.
        target_version: version of the envelope that is wanted.
        migrations: the steps that are known.

    Raises:
        CheckpointCorruptError: the bytes are no keyframe.
        UnsupportedVersionError: no steps lead there.
        MigrationFailedError: a step failed, or the file is sealed: its seal covers the envelope.
    """
    check_version(target_version)
    whole, payload = _taken_apart(data)
    if "sealed" in _header(whole):
        raise MigrationFailedError("the checkpoint file is sealed", hint=_LATER)
    if envelope.version_of(whole) == target_version:
        return data
    return _put_together(envelope.migrated(whole, target_version, migrations), payload)


def migrate_state(data: bytes, target_version: str, migrations: MigrationRegistry) -> bytes:
    """Bring the state in a readable checkpoint file to another version; all around it is kept.

    Args:
        data: the bytes of a keyframe file that is JSON.
        target_version: version of the state's shape that is wanted.
        migrations: the steps that the application knows.

    Raises:
        CheckpointCorruptError: the bytes are no keyframe.
        UnsupportedVersionError: no steps lead there.
        MigrationFailedError: a step failed, or the file is not readable.
    """
    check_version(target_version)
    whole, _ = _taken_apart(data)
    if not isinstance(whole.get("state"), dict):
        raise MigrationFailedError("the state in the file is encoded", hint=_LATER)
    header = _header(whole)
    source = header.get("state_schema", SCHEMA_VERSION)
    if source == target_version:
        return data
    state = migrations.migrate(whole["state"], source, target_version)
    return lay_out({**whole, "header": {**header, "state_schema": target_version}, "state": state})


def _taken_apart(data: bytes) -> tuple[dict[str, Any], bytes | None]:
    """Answer the fields of a file, and the payload that follows them where the state is not among them."""
    if data.startswith(b"{\n"):
        whole, payload = plainjson.loads(data), None
    else:
        line, _, payload = data.partition(b"\n")
        whole = plainjson.loads(line)
    if not isinstance(whole, dict):
        raise CheckpointCorruptError("the file is no keyframe")
    return whole, payload


def _put_together(whole: dict[str, Any], payload: bytes | None) -> bytes:
    return lay_out(whole) if payload is None else plainjson.dumps(whole) + b"\n" + payload


def _header(whole: dict[str, Any]) -> dict[str, Any]:
    header = whole.get("header")
    if not isinstance(header, dict):
        raise CheckpointCorruptError("the file is no keyframe (it has no header)")
    return header
