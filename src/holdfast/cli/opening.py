"""Opening the store that a call names, and finding in it what a person wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.app_running import program_at_work
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, did_you_mean
from holdfast.cli.output import safe
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    PermissionDeniedError,
)

# Imported where they are used: help must not wait for codecs and threads.
if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.kit import Kit
    from holdfast.application.resolve import Found
    from holdfast.application.service import CheckpointService
    from holdfast.domain.audit_entry import AuditEntry
    from holdfast.domain.audit_type import AuditType

_SETTINGS = "holdfast.json"
#: So many stages or phases are named where none of them was meant.
_PARTS_MAX = 10
_SELECTORS = "@42, @latest, @latest~1, @phase:2 or @stage:NAME"


def session_name() -> str:
    """Name the session that everything done by the command line on one day belongs to."""
    return f"cli-{datetime.now(UTC):%Y-%m-%d}"


@contextmanager
def reading(call: Call, *, app: App | None = None) -> Iterator[Kit]:
    """Open the store for reading: no lock, nothing written, not even on a copy that is not ours."""
    from holdfast import bootstrap
    from holdfast.config import Config

    config = Config.load({"store": call.store, "session": session_name()})
    store = bootstrap.open_store(config, read_only=True, create=False)
    try:
        with program_at_work() if app else nullcontext():
            yield bootstrap.build_kit(store, config, app=app)
    finally:
        store.close()


@contextmanager
def looking(call: Call, *, app: App | None = None, **more: Any) -> Iterator[CheckpointService]:
    """Open the store for reading, for questions that the service answers."""
    from holdfast import bootstrap

    settings: dict[str, Any] = {"session": session_name(), "end_session": False, **more, "enabled": True}
    with (
        bootstrap.open(call.store, read_only=True, create=False, app=app, **settings) as service,
        program_at_work() if app else nullcontext(),
    ):
        yield service


@contextmanager
def writing(
    call: Call,
    *,
    create: bool = False,
    encrypt: bool = False,
    app: App | None = None,
    reason: str | None = None,
    workflow_id: str | None = None,
    **more: Any,
) -> Iterator[CheckpointService]:
    """Open the store for changing it; one that is made now may be an encrypted one.

    Args:
        reason: told in the trail before anything is changed, under one id with all that is told after it.
        workflow_id: what the reason is about.
    """
    settings: dict[str, Any] = {"session": session_name(), "end_session": False, "encrypt": encrypt or None}
    settings |= more
    # Programs may be told to keep nothing; who looks after a store means that store.
    settings |= {"enabled": True, "auto_recovery": False}
    with (
        _opened(call, create=create, app=app, **settings) as service,
        program_at_work() if app else nullcontext(),
        told_why(service, reason, workflow_id),
    ):
        yield service


def _opened(call: Call, *, create: bool, **settings: Any) -> CheckpointService:
    """Open the store, and tell a place where none can be made from a disk that fails."""
    from holdfast import bootstrap

    try:
        return bootstrap.open(call.store, create=create, **settings)
    except CheckpointWriteError as failed:
        if not create or type(failed) is not CheckpointWriteError or os.path.exists(failed.place):
            raise
        why = getattr(failed.__cause__, "strerror", None) or failed.message
        raise PermissionDeniedError(
            f"no store can be made here ({why})",
            place=failed.place,
            hint="Choose a folder in which you may make others.",
        ) from failed


def refuse_inside(path: str, url: str, name: str) -> None:
    """Refuse to write into the folder of a store what is not its own.

    Raises:
        click.UsageError: the path leads there; `name` is how it was given.
    """
    scheme, _, folder = url.partition(":")
    if scheme == "file" and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise click.UsageError(f"{name} lies in the folder of the store itself: {path}")


@contextmanager
def told_why(
    service: CheckpointService, reason: str | None, workflow_id: str | None = None
) -> Iterator[None]:
    """Tell in the trail why a command changes something, if it was said, before it does."""
    if reason is None:
        yield
        return
    from holdfast.application.wishes import Wish, wished

    command = click.get_current_context().command_path.partition(" ")[2]
    with wished(service.audit, Wish(reason, workflow_id, facts={"command": command}), origin="cli"):
        yield


def tell_looked(call: Call, kit: Kit, type: AuditType, looked_at: Iterable[Found]) -> None:
    """Tell in the trail that somebody looks at checkpoints, before they are shown."""
    entries = [
        entry_of(
            kit, type, found.workflow_id, {"cp_seq": found.entry.sequence, "checksum": found.entry.checksum}
        )
        for found in looked_at
    ]
    tell(call, kit, entries)


def entry_of(
    kit: Kit,
    type: AuditType,
    workflow_id: str | None = None,
    facts: dict[str, int | str] | None = None,
    *,
    failed: bool = False,
) -> AuditEntry:
    """Make an entry of the command line's session."""
    from holdfast.application.trailing import correlation
    from holdfast.domain.audit_entry import AuditEntry
    from holdfast.domain.audit_type import Outcome

    outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
    return AuditEntry(
        kit.clock.now(),
        type,
        kit.session_id,
        workflow_id,
        actor=kit.actor,
        outcome=outcome,
        correlation_id=correlation(),
        facts=facts or {},
    )


def tell(call: Call, kit: Kit, entries: list[AuditEntry]) -> bool:
    """Bring entries to the trail of a store that is open for reading; answer whether they are there.

    A trail that cannot be written (a copy that is not ours) is no reason to say nothing, unless it is strict.

    Raises:
        PermissionDeniedError: the entries cannot be written, and the trail is strict.
    """
    if not kit.audit or not entries:
        return False
    try:
        _append(call, entries)
        return True
    except CheckpointError as problem:
        if kit.strict_audit:
            raise PermissionDeniedError(
                f"this cannot be told in the trail, and the trail is strict ({problem.message})",
                place=problem.place or kit.store.url,
                hint="Make the store writable, or set strict_audit to false.",
            ) from None
        click.echo(f"warning: this read is not in the trail: {safe(problem.message)}", err=True)
        return False


def _append(call: Call, entries: list[AuditEntry]) -> None:
    """Commit entries by themselves: no queue, no threads, one sync."""
    from holdfast import bootstrap
    from holdfast.config import Config
    from holdfast.domain.record import NO_WORKFLOW, Commit, Head

    store = bootstrap.open_store(Config.load({"store": call.store}), create=False)
    try:
        [outcome] = store.commit([Commit(NO_WORKFLOW, Head(), audit=tuple(entries))])
    finally:
        store.close()
    if outcome is not None:
        raise outcome


def find(kit: Kit, text: str) -> Found:
    """Find the checkpoint that was written; where there is none, say what may have been meant."""
    from holdfast.application.resolve import resolve

    try:
        return resolve(kit.store, text)
    except CheckpointNotFoundError as error:
        hint = _meant_checkpoint(kit, text) or error.hint
        raise CheckpointNotFoundError(error.message, place=error.place, hint=hint) from None


def find_workflow(kit: Kit, text: str) -> str:
    """Answer a workflow's id if it is there; where it is not, say what may have been meant."""
    from holdfast.domain.ids import check_workflow_id

    check_workflow_id(text)
    if kit.store.head(text).sequence or any(kit.store.events(text)):
        return text
    hint = did_you_mean(text, kit.store.workflows()) or "See `holdfast list` for what is there."
    raise CheckpointNotFoundError("there is no such workflow", place=text, hint=hint)


def _meant_checkpoint(kit: Kit, text: str) -> str:
    from holdfast.application.resolve import living
    from holdfast.domain.ids import parse_ref

    ref = parse_ref(text)
    workflow_id = ref.workflow_id
    if not workflow_id:
        return ""
    if not kit.store.head(workflow_id).sequence:
        before, at, selector = workflow_id.rpartition("@")
        if at and before and kit.store.head(before).sequence:
            return f"{before} is there; a checkpoint of it is {_SELECTORS}, not @{selector}."
        return did_you_mean(workflow_id, kit.store.workflows())
    kept = list(living(kit.store, workflow_id))
    if ref.stage is not None:
        stages = [entry.stage for entry in kept if entry.stage is not None]
        return (
            f"{did_you_mean(ref.stage, dict.fromkeys(stages))} {_there(workflow_id, 'stage', stages)}".strip()
        )
    if ref.phase is not None:
        # Numbers that look alike are not near each other.
        return _there(workflow_id, "phase", [str(entry.phase) for entry in kept if entry.phase is not None])
    return f"{workflow_id} has checkpoints {kept[-1].sequence} to {kept[0].sequence}." if kept else ""


def _there(workflow_id: str, what: str, newest_first: list[str]) -> str:
    """Say which stages or phases there are, the newest last."""
    known = list(dict.fromkeys(newest_first))
    if not known:
        return f"No checkpoint of {workflow_id} names a {what}."
    more = f"{len(known) - _PARTS_MAX:,} more and " if len(known) > _PARTS_MAX else ""
    return f"{workflow_id} has the {what}s {more}{', '.join(reversed(known[:_PARTS_MAX]))}."


def store_above(path: str) -> str | None:
    """Find the store that a file lies in by the settings file above it."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.isfile(os.path.join(folder, _SETTINGS)):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def is_file(checkpoint: str) -> bool:
    """Tell whether a person wrote the path of a checkpoint file."""
    from holdfast.domain.ids import parse_ref

    return bool(parse_ref(checkpoint).path)


def at_its_store(call: Call, checkpoint: str) -> Call:
    """Look for a file in the store it lies in, unless another one was named."""
    from holdfast.domain.ids import parse_ref

    path = parse_ref(checkpoint).path
    if not path or call.store:
        return call
    above = store_above(path)
    if above is None:
        hint = "A checkpoint can be verified inside its store only; name that with --store."
        raise Failure("store_not_found", Exit.NO_STORE, "the file is in no store", place=path, hint=hint)
    return replace(call, store=above)
