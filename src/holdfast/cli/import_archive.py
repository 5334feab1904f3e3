"""`holdfast import archive`: take in what `holdfast export` wrote."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.copying import bar, finish
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.export import reason_facts
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading
from holdfast.cli.output import Output
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import StoreNotFoundError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.transport.copying import CopyResult
    from holdfast.ports import Store

#: What every SQLite file begins with.
_MAGIC = b"SQLite format 3\x00"


@click.command("archive", cls=StoreCommand)
@click.argument("file", metavar="FILE")
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@changes()
def command(call: Call, file: str, workflows: tuple[str, ...], change: Change) -> None:
    """Take in what `holdfast export` wrote.

    The whole file is verified before anything is taken out of it, and what
    arrived afterwards. The store is made if there is none.

    \b
    Example:
      holdfast import archive WF-2026-001.holdfast --store .holdfast --dry-run
    """
    _check_file(file)
    with reading(replace(call, store=f"sqlite:{os.path.abspath(file)}")) as kit:
        chosen = list(dict.fromkeys(find_workflow(kit, name) for name in workflows))
        chosen = chosen or sorted(kit.store.workflows())
        _verify(call.output, kit, chosen)
        target, place = _target(call, dry_run=change.dry_run)
        try:
            result = _take_in(call.output, kit, target, chosen, change, with_trail=not workflows)
            places = (kit.store.url, place)
        finally:
            target.close()
    finish(call.output, places, result)


def _check_file(path: str) -> None:
    """Refuse what is no archive before anything opens it."""
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_MAGIC))
    except OSError as fault:
        raise click.UsageError(f"{path} cannot be read ({fault.strerror})") from None
    if begin != _MAGIC:
        raise Failure(
            "checkpoint_corrupt",
            Exit.CORRUPT,
            "the file is no archive",
            place=path,
            hint="An archive is what `holdfast export` writes. Nothing was changed.",
        )


def _verify(output: Output, kit: Kit, workflow_ids: list[str]) -> None:
    from holdfast.application.transport.archive import verify_archive

    with bar(output, workflow_ids, "verify") as show:
        verify_archive(kit.store, workflow_ids, show)


def _target(call: Call, *, dry_run: bool) -> tuple[Store, str]:
    """Open the store and name it; for a dry run one that is not there is as good as an empty one."""
    from holdfast import bootstrap
    from holdfast.config import Config, without_secrets

    config = Config.load({"store": call.store})
    try:
        store = bootstrap.open_store(config, read_only=dry_run, create=not dry_run)
        return store, store.url
    except StoreNotFoundError:
        if not dry_run:
            raise
        return bootstrap.open_store(Config(store="memory:")), without_secrets(config.store)


def _take_in(
    output: Output, kit: Kit, target: Store, workflow_ids: list[str], change: Change, *, with_trail: bool
) -> CopyResult:
    from holdfast.application.transport.copying import Copier, Outcome

    teller = _teller(kit, reason_facts(change))
    with bar(output, workflow_ids, "import") as show:
        copier = Copier(kit.store, target, kit.packer, kit.formats, show, kit.vault, teller)
        plan = copier.plan(workflow_ids, with_trail=with_trail)
        for one in plan.of(Outcome.FAILED):
            # Found before anything is written, so nothing is taken in by halves.
            raise one.error or AssertionError(one)
        return plan if change.dry_run else copier.copy(workflow_ids, with_trail=with_trail)


def _teller(
    kit: Kit, facts: dict[str, int | str]
) -> Callable[[AuditType, str | None, dict[str, int | str]], AuditEntry] | None:
    """Answer what makes the entries of the target's trail."""
    if not kit.audit:
        return None

    def told(type: AuditType, workflow_id: str | None, about: dict[str, int | str]) -> AuditEntry:
        return entry_of(kit, type, workflow_id, {**about, "from": "archive", **facts})

    return told
