"""`holdfast export`: workflows in one file that can be taken along, which is a store itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.copying import bar, print_result, result_fields
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import Output, safe, size_text
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.transport.copying import CopyResult

#: What SQLite may leave beside a file.
_BESIDE = ("-wal", "-shm", "-journal")


@click.command("export", cls=StoreCommand)
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All workflows, and the trail with them.")
@click.option("--out", metavar="FILE", required=True, help="The file to make; one that is there stays.")
@changes()
def command(call: Call, workflows: tuple[str, ...], everything: bool, out: str, change: Change) -> None:
    """Write workflows into one file that can be taken along.

    The file is a store: `holdfast --store sqlite:FILE list` looks into it, and
    `holdfast import archive` takes it in. It appears under its name when it is
    whole and verified, and never in the place of another.

    \b
    Example:
      holdfast export WF-2026-001 --out WF-2026-001.holdfast --store .holdfast
    """
    if bool(workflows) == everything:
        raise click.UsageError("name workflows, or give --all")
    check_place(out)
    with reading(call) as kit:
        chosen = list(dict.fromkeys(find_workflow(kit, name) for name in workflows))
        chosen = chosen or sorted(kit.store.workflows())
        result = write_archive(call, kit, chosen, out, with_trail=everything, change=change)
        places = (kit.store.url, f"sqlite:{os.path.realpath(out)}")
    _finish(call.output, places, result, out)


def write_archive(
    call: Call, kit: Kit, workflow_ids: list[str], out: str, *, with_trail: bool, change: Change
) -> CopyResult:
    """Write workflows into a new file, and tell of it in the trail."""
    if not change.dry_run:
        # Told before: what could not be told never left.
        told: dict[str, int | str] = {"to": "archive", "workflows": len(workflow_ids), **reason_facts(change)}
        tell(call, kit, [entry_of(kit, AuditType.STORE_COPIED, None, told)])
    return _export(call.output, kit, workflow_ids, out, with_trail=with_trail, dry_run=change.dry_run)


def reason_facts(change: Change) -> dict[str, int | str]:
    """Answer what the trail is told of a reason."""
    return {} if change.reason is None else {"reason": change.reason}


def check_place(out: str) -> None:
    """Refuse a file that is there already, or that cannot be made.

    Raises:
        Failure: there is something of that name.
        UsageError: its folder is not there.
    """
    if os.path.lexists(out):
        raise Failure(
            "refused",
            Exit.REFUSED,
            "there is something of this name already",
            place=out,
            hint="Name another file.",
        )
    if not os.path.isdir(os.path.dirname(out) or "."):
        raise click.UsageError(f"{out} cannot be written: its folder is not there")


def _export(
    output: Output, kit: Kit, workflow_ids: list[str], out: str, *, with_trail: bool, dry_run: bool
) -> CopyResult:
    from holdfast import bootstrap
    from holdfast.application.transport.copying import Copier, Outcome
    from holdfast.config import Config

    tell_it = partial(entry_of, kit) if kit.audit else None
    with bar(output, workflow_ids, "export") as show:
        if dry_run:
            target = bootstrap.open_store(Config(store="memory:"))
            copier = Copier(kit.store, target, kit.packer, kit.formats, show, kit.vault)
            return copier.plan(workflow_ids, with_trail=with_trail)
        with _new_file(out) as path:
            target = bootstrap.open_store(Config(store=f"sqlite:{path}"))
            try:
                copier = Copier(kit.store, target, kit.packer, kit.formats, show, kit.vault, tell_it)
                result = copier.copy(workflow_ids, with_trail=with_trail)
            finally:
                target.close()
            for one in result.of(Outcome.FAILED):
                # An archive is whole or is not.
                raise one.error or AssertionError(one)
            _close_up(path)
            _look_again(path, workflow_ids)
        return result


@contextmanager
def _new_file(out: str) -> Iterator[str]:
    """Give the path of a file that gets its name at the end, durably; nothing is left of one that fails."""
    folder, name = os.path.split(os.path.abspath(out))
    handle, path = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
    os.close(handle)
    try:
        yield path
        _sync(path)
        _name(path, out)
    except FileExistsError:
        raise Failure(
            "refused", Exit.REFUSED, "somebody made a file of this name meanwhile", place=out
        ) from None
    finally:
        for ending in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                os.unlink(path + ending)
        _sync(folder)


def _name(path: str, out: str) -> None:
    """Give a file its name, unless another has it."""
    try:
        # Unlike a renaming, a link never takes the place of another file.
        os.link(path, out)
    except FileExistsError:
        raise
    except OSError:
        # A disk that knows no links: one that is carried about, perhaps.
        if os.path.lexists(out):
            raise FileExistsError(out) from None
        os.rename(path, out)


def _close_up(path: str) -> None:
    """Leave one file: without a write-ahead log, and with nothing beside it."""
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        connection.execute("pragma journal_mode = delete").fetchall()
    finally:
        connection.close()
    # A journal that is kept is empty after a clean end; the file says by itself that there is none.
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            os.unlink(path + ending)


def _look_again(path: str, workflow_ids: list[str]) -> None:
    """Check the file as whoever takes it in will."""
    from holdfast import bootstrap
    from holdfast.application.transport.archive import verify_archive
    from holdfast.config import Config

    store = bootstrap.open_store(Config(store=f"sqlite:{path}"), read_only=True, create=False)
    try:
        verify_archive(store, workflow_ids)
    finally:
        store.close()


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _finish(output: Output, places: tuple[str, str], result: CopyResult, out: str) -> None:
    size_bytes = 0 if result.dry_run else os.path.getsize(out)
    digest = "" if result.dry_run else _sha256(out)
    if output.as_json:
        more = {"file": out, "file_bytes": size_bytes, "sha256": digest or None}
        output.data({**result_fields(places, result), **more})
        return
    print_result(output, result)
    if not result.dry_run:
        output.note(f"Wrote {safe(out)}, {size_text(size_bytes)}, SHA-256 {digest}.")


def _sha256(path: str) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
