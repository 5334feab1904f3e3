"""`holdfast recover`: bring a workflow back, and say what was restored, replayed, skipped and lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import Output, counted, safe
from holdfast.domain.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.incomplete import Incomplete
    from holdfast.domain.recovery import RecoveryResult
    from holdfast.domain.recovery_plan import RecoveryPlan
    from holdfast.domain.state import WorkflowState

_MODES = {"latest": "latest", "full": "full", "point-in-time": "point_in_time"}


@click.command("recover", cls=StoreCommand)
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@click.option(
    "--mode", type=click.Choice(list(_MODES)), help="From where. [default: latest; with --to: point-in-time]"
)
@click.option("--to", "target", metavar="N", type=click.IntRange(min=1), help="Checkpoint to go back to.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would happen, and change nothing.")
@click.option("--app", metavar="MODULE:OBJECT", help="The program whose handler resumes the work.")
@click.option("--handler", metavar="NAME", help="Resume with this handler of the app instead.")
@click.option("--fresh", is_flag=True, help="Start over if no checkpoint verifies.")
@click.option("--reason", metavar="TEXT", help="Why; it stays in the journal.")
def command(
    call: Call,
    workflow: str | None,
    mode: str | None,
    target: int | None,
    plan_only: bool,
    app: str | None,
    handler: str | None,
    fresh: bool,
    reason: str | None,
) -> None:
    """Bring a workflow back after a crash.

    Takes the newest checkpoint that verifies, replays the events since, puts
    what is damaged into quarantine, and tells what it did. With --app the
    handler named by the checkpoint then resumes the work. Without WORKFLOW
    it lists what crashed. Ends with 32 if an older checkpoint had to stand in.

    \b
    Example:
      holdfast recover WF-2026-001 --plan
      holdfast recover WF-2026-001
    """
    if workflow is None:
        _list_incomplete(call)
        return
    chosen = _MODES[mode or ("point-in-time" if target else "latest")]
    _check_there(call, workflow, fresh=fresh)
    program = _app(app, handler)
    with writing(call, app=program, on_no_valid="fresh" if fresh else None) as service:
        if plan_only:
            _print_plan(call.output, service.plan_recovery(workflow, chosen, target))
            return
        if program is None:
            result = service.recover_workflow(workflow, chosen, target, reason=reason)
        else:
            result = service.resume_workflow(
                workflow, chosen, target, override_handler=handler, reason=reason
            )
    _print(call.output, result, is_resumed=program is not None)
    _leave(result)


def _check_there(call: Call, workflow: str, *, fresh: bool) -> None:
    """Say what may have been meant, before anything is done."""
    with reading(call) as kit:
        try:
            find_workflow(kit, workflow)
        except CheckpointNotFoundError:
            if not fresh:
                raise


def _app(text: str | None, handler: str | None) -> App | None:
    """Load the program that a flag or the configuration names."""
    from holdfast.cli.app_loading import load_app
    from holdfast.config import Config

    named = text or Config.load().app
    if named is None and handler is not None:
        raise click.UsageError("--handler needs --app, or app in holdfast.toml")
    return load_app(named) if named else None


def _list_incomplete(call: Call) -> None:
    with writing(call) as service:
        crashed = service.incomplete_workflows()
    if call.output.as_json:
        call.output.data({"workflows": [_crashed_fields(one) for one in crashed]})
        return
    if not crashed:
        call.output.note("Nothing to recover: every workflow ended, or has a living owner.")
        return
    rows = [(one.workflow_id, str(one.sequence), one.reason) for one in crashed]
    call.output.table(("WORKFLOW", "LAST", "WHY"), rows, right=" r")
    call.output.note("Bring one back with `holdfast recover WORKFLOW`; --plan shows first what would happen.")


def _crashed_fields(one: Incomplete) -> dict[str, Any]:
    return {"workflow_id": one.workflow_id, "sequence": one.sequence, "reason": one.reason}


def _print_plan(output: Output, plan: RecoveryPlan) -> None:
    if output.as_json:
        output.data(plan_fields(plan))
        return
    for refusal in plan.refusals:
        output.line(f"{output.paint('refused', 'bad')}  {safe(refusal)}")
    start = f"checkpoint {plan.checkpoint.sequence}" if plan.checkpoint else "the events alone"
    output.line(f"{safe(plan.workflow_id)} would be recovered from {start} ({plan.mode})")
    output.line(f"  events   {plan.events:,} after it, {plan.replayed:,} change the state")
    for one in plan.damage:
        output.line(f"  damaged  {safe(one)}; would go to quarantine")
    if plan.lease is not None and plan.lease.is_live:
        output.line(f"  lease    held by {safe(plan.lease.owner)} until {plan.lease.expires_at}")
    if plan.handler:
        known = "at hand" if plan.is_handler_known else "not at hand: give --app"
        output.line(f"  handler  {safe(plan.handler)}, {known}")
    _print_warnings(output, plan.warnings)
    output.note("Nothing was changed.")


def plan_fields(plan: RecoveryPlan) -> dict[str, Any]:
    """Write a plan for programs."""
    fields = asdict(plan)
    fields["checkpoint"] = str(plan.checkpoint) if plan.checkpoint else None
    fields["mode"] = str(plan.mode)
    return fields


def _print(output: Output, result: RecoveryResult, *, is_resumed: bool) -> None:
    if output.as_json:
        output.data(result_fields(result))
        return
    for problem in result.validation_errors:
        output.line(f"{output.paint('refused', 'bad')}  {safe(problem)}")
    if result.state is not None:
        _print_recovered(output, result)
    _print_warnings(output, result.warnings)
    if is_resumed and result.handler is not None:
        how = output.paint("ended well", "good") if result.success else output.paint("failed", "bad")
        output.line(f"  handler  {safe(result.handler)} {how}")
    elif result.success and not is_resumed:
        output.note(
            "The state is recovered; nothing was resumed. --app MODULE:OBJECT names the program that goes on."
        )


def _print_recovered(output: Output, result: RecoveryResult) -> None:
    used = result.checkpoint_used
    start = f"checkpoint {used.sequence}" if used else "the events alone"
    took = f"{result.recovery_time_ms:.0f} ms"
    output.line(f"{output.paint('Recovered', 'good')} {safe(result.workflow_id)} from {start} in {took}")
    replayed = f"{result.events_replayed:,} replayed"
    skipped = f", {len(result.skipped):,} skipped" if result.skipped else ""
    output.line(f"  events   {replayed}{skipped}")
    if result.quarantined:
        output.line(f"  damage   {counted(len(result.quarantined), 'checkpoint')} in quarantine")
    if result.state is not None:
        output.line(f"  state    {_outline(result.state)}")


def _outline(state: WorkflowState) -> str:
    step = f"step {state.current_step}" + (f" of {state.total_steps}" if state.total_steps else "")
    counts = (counted(len(state.tasks), "task"), counted(len(state.decisions), "decision"))
    return ", ".join((step, *counts))


def _print_warnings(output: Output, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        output.line(f"  {output.paint('warning', 'warn')}  {safe(warning)}")


def result_fields(result: RecoveryResult) -> dict[str, Any]:
    """Write a result for programs; the state itself is for `holdfast show`."""
    used = result.checkpoint_used
    return {
        "success": result.success,
        "workflow_id": result.workflow_id,
        "mode": str(result.mode),
        "checkpoint_used": str(used) if used else None,
        "events_replayed": result.events_replayed,
        "events_skipped": [asdict(event) for event in result.skipped],
        "passed_over": list(result.passed_over),
        "quarantined": list(result.quarantined),
        "recovery_time_ms": round(result.recovery_time_ms, 3),
        "steps": [asdict(step) for step in result.steps],
        "warnings": list(result.warnings),
        "validation_errors": list(result.validation_errors),
        "handler": result.handler,
        "resumed_workflow_id": result.resumed_workflow_id or None,
    }


def _leave(result: RecoveryResult) -> None:
    """End with what a script has to know."""
    if not result.success and result.handler is not None:
        raise Failure(
            "handler_failed",
            Exit.PARTIAL,
            "the state was recovered, its handler failed",
            place=result.handler,
        )
    if not result.success:
        raise click.exceptions.Exit(Exit.REFUSED)
    if result.passed_over:
        raise click.exceptions.Exit(Exit.OLDER)
