"""`holdfast erase`: what a workflow recorded, or what is about a person, goes for ever."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, looking, reading, writing
from holdfast.cli.output import counted, safe, size_text
from holdfast.domain.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.privacy.erasing import ErasureResult


@click.command("erase", cls=StoreCommand)
@click.option("--subject", metavar="NAME", help="Erase everything that is about this person.")
@click.option("--workflow", metavar="WORKFLOW", help="Erase what this workflow recorded.")
@changes(needs_reason=True)
def command(call: Call, subject: str | None, workflow: str | None, change: Change) -> None:
    """Erase a workflow's or a person's data for ever.

    In an encrypted store the key is destroyed, elsewhere the bytes go. The
    trail tells of it, and every proof stays valid. A legal hold prevents it.

    \b
    Example:
      holdfast erase --subject alice@example.com --reason "request 17" --yes
    """
    if bool(subject) == bool(workflow):
        raise click.UsageError("give either --subject or --workflow")
    if workflow:
        with reading(call) as kit:
            _find(kit, workflow)
    if change.dry_run:
        _plan(call, subject, workflow)
        return
    change.confirm(call.output, f"Erase {workflow or subject} for ever?")
    with writing(call) as service:
        if workflow:
            done = service.erasure.workflow(workflow, reason=change.why)
        else:
            done = service.erasure.subject(subject or "", reason=change.why)
    _print(call, done)


def _find(kit: Kit, workflow: str) -> None:
    """Look whether there is such a workflow; of one that is lost the trail still knows."""
    from holdfast.application.audit.missing import is_told

    try:
        find_workflow(kit, workflow)
    except CheckpointNotFoundError:
        if not is_told(kit.store, workflow):
            raise


def _plan(call: Call, subject: str | None, workflow: str | None) -> None:
    """Tell what would go, and refuse what a hold keeps, as the erasure itself does."""
    with looking(call) as service:
        alone, shared = [workflow or ""], list[str]()
        if subject is not None:
            alone, shared = service.erasure.plan_subject(subject)
        service.holds.check(workflow_id=workflow, subject=subject)
    text = f"Would erase {counted(len(alone), 'workflow')}: {safe(', '.join(alone)) or '-'}"
    tell_plan(call.output, text, workflows=alone, kept_workflows=shared)


def _print(call: Call, done: ErasureResult) -> None:
    if call.output.as_json:
        call.output.data(asdict(done))
        return
    parts = [counted(len(done.workflows), "workflow"), counted(done.payloads, "audit payload")]
    if done.keys:
        parts.append(f"{counted(done.keys, 'key')} destroyed")
    if done.freed_bytes:
        parts.append(f"{size_text(done.freed_bytes)} freed")
    call.output.line(f"Erased: {', '.join(parts)}")
    for workflow_id in done.kept_workflows:
        call.output.note(
            f"left: {safe(workflow_id)} is about others too; erase it with --workflow if it shall go"
        )
