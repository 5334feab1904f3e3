"""`holdfast recover`: bring a workflow back, and say what was restored, replayed, skipped and lost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, looking, reading, writing
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.recover_cost import cost_fields, cost_of, print_cost
from holdfast.cli.run_requests import newest_sequence
from holdfast.domain.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.insight.repeats import Repeats
    from holdfast.application.recovery.incomplete import Incomplete
    from holdfast.application.service import CheckpointService
    from holdfast.domain.record import Lease
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
@click.option("--plan", "plan_only", is_flag=True, help="The same as --dry-run.")
@click.option("--app", metavar="MODULE:OBJECT", help="The program whose handler resumes the work.")
@click.option("--handler", metavar="NAME", help="Resume with this handler of the app instead.")
@click.option("--no-resume", is_flag=True, help="Recover the state only, also where an app is configured.")
@click.option("--skip-validation", is_flag=True, help="Resume whatever status and retries say.")
@click.option("--take-over", is_flag=True, help="End the lease of whoever has the workflow first.")
@click.option("--allow-repeat-effects", is_flag=True, help="Also where effects may happen twice.")
@click.option(
    "--checkpoint/--no-checkpoint",
    default=None,
    help="Record the recovered state. [default: if the newest is damaged]",
)
@click.option("--fresh", is_flag=True, help="Start over if no checkpoint verifies.")
@changes()
def command(call: Call, workflow: str | None, plan_only: bool, change: Change, **wanted: Any) -> None:
    """Bring a workflow back after a crash.

    Takes the newest checkpoint that verifies, replays the events since, puts
    what is damaged into quarantine, and tells what it did. With --app the
    handler named by the checkpoint then resumes the work. Without WORKFLOW
    it lists what crashed. Ends with 32 if an older checkpoint had to stand in,
    and with 3 if events were skipped or lost.

    \b
    Example:
      holdfast recover WF-2026-001 --plan
      holdfast recover WF-2026-001
    """
    order = _Order(**wanted)
    if workflow is None:
        if order != _Order() or change.reason:
            raise click.UsageError("name the WORKFLOW to recover; without one those that crashed are listed")
        _list_incomplete(call)
        return
    where = (workflow, _mode(order.mode, order.target), order.target)
    lost, events_lost = _look(call, workflow, fresh=order.fresh)
    program = _app(order.app, order.handler, no_resume=order.no_resume)
    if plan_only or change.dry_run:
        with looking(call, app=program, on_no_valid=order.on_no_valid) as service:
            plan = _with_handler(service.plan_recovery(*where), program, order.handler)
        plan = replace(plan, warnings=(*plan.warnings, *lost))
        _print_plan(call.output, plan, cost_of(call, plan), has_app=program is not None)
        return
    if not order.allow_repeat_effects:
        _refuse_repeats(call, where, order)
    with writing(
        call, app=program, on_no_valid=order.on_no_valid, reason=change.reason, workflow_id=workflow
    ) as service:
        result = _recovered(service, where, order, change.reason, is_resumed=program is not None)
    if lost:
        events_lost = max(events_lost, result.events_lost)
        result = replace(result, warnings=(*result.warnings, *lost), events_lost=events_lost)
    _print(call.output, result, is_resumed=program is not None)
    if program is None and order.target is not None:
        _tell_newest(call, result)
    _leave(result)


@dataclass(frozen=True, slots=True)
class _Order:
    """How a workflow is to be recovered, as the options say."""

    mode: str | None = None
    target: int | None = None
    app: str | None = None
    handler: str | None = None
    no_resume: bool = False
    skip_validation: bool = False
    take_over: bool = False
    allow_repeat_effects: bool = False
    checkpoint: bool | None = None
    fresh: bool = False

    @property
    def on_no_valid(self) -> str | None:
        """What to do where no checkpoint verifies; None as it is configured."""
        return "fresh" if self.fresh else None


def _recovered(
    service: CheckpointService,
    where: tuple[str, str, int | None],
    order: _Order,
    reason: str | None,
    *,
    is_resumed: bool,
) -> RecoveryResult:
    if order.take_over:
        _end_lease(service, where[0])
    if not is_resumed:
        return service.recover_workflow(*where, reason=reason, checkpoint=order.checkpoint)
    return service.resume_workflow(
        *where, override_handler=order.handler, reason=reason, skip_validation=order.skip_validation
    )


def _refuse_repeats(call: Call, where: tuple[str, str, int | None], order: _Order) -> None:
    """Refuse what --plan warns of.

    Raises:
        Failure: effects may happen twice.
    """
    with looking(call, on_no_valid=order.on_no_valid) as service:
        plan = service.plan_recovery(*where)
    at_risk = cost_of(call, plan).effects_at_risk
    if at_risk:
        named = ", ".join(f"{one.name} of {one.step_id}" for one in at_risk[:5])
        raise Failure(
            "effects_at_risk",
            Exit.REFUSED,
            f"effects may happen twice: {named}",
            place=where[0],
            hint="Look at the other side for their keys (--plan --json tells them), and give"
            " --allow-repeat-effects.",
        )


def _end_lease(service: CheckpointService, workflow: str) -> None:
    """Give up the lease of whoever has a workflow: that one cannot write any more."""
    lease = service.lease_of(workflow)
    if lease is not None:
        service.release_lease(lease)


def _mode(mode: str | None, target: int | None) -> str:
    if (mode == "point-in-time" and target is None) or (mode in ("latest", "full") and target is not None):
        raise click.UsageError("--mode point-in-time and --to N go together, and --to with no other mode")
    return _MODES[mode or ("point-in-time" if target else "latest")]


def _with_handler(plan: RecoveryPlan, program: App | None, handler: str | None) -> RecoveryPlan:
    """Plan with the handler that was named instead of the checkpoint's."""
    if program is None or handler is None:
        return plan
    return replace(plan, handler=handler, is_handler_known=program.handlers.has(handler))


def _look(call: Call, workflow: str, *, fresh: bool) -> tuple[list[str], int]:
    """Say what may have been meant, before anything is done; answer what the trail tells of and is gone."""
    from holdfast.application.audit.missing import loss

    with reading(call) as kit:
        try:
            find_workflow(kit, workflow)
        except CheckpointNotFoundError:
            if not fresh:
                raise
        problem, events = loss(kit.store, workflow)
    way_out = f"`holdfast copy BACKUP STORE {workflow}` brings it back"
    return [f"{problem}: what is missing is in no file here; {way_out}"] if problem else [], events


def _app(text: str | None, handler: str | None, *, no_resume: bool) -> App | None:
    """Load the program that a flag or the configuration names, unless nothing is to be resumed."""
    if no_resume:
        if text or handler:
            raise click.UsageError("--no-resume and --app or --handler do not go together")
        return None
    from holdfast.cli.app_loading import load_app
    from holdfast.config import Config

    named = text or Config.load().app
    if named is None and handler is not None:
        raise click.UsageError("--handler needs --app, or app in holdfast.toml")
    return load_app(named) if named else None


def _list_incomplete(call: Call) -> None:
    from holdfast.application.recovery.incomplete import incomplete_workflows

    with reading(call) as kit:
        crashed = incomplete_workflows(kit)
        patience_seconds = kit.recovery.stale_seconds
    if call.output.as_json:
        call.output.data({"workflows": [_crashed_fields(one) for one in crashed]})
        return
    if not crashed:
        call.output.note(
            "Nothing to recover: every workflow ended or failed, is held by a lease, or was written less"
            f" than {patience_seconds:g} seconds ago (stale_seconds). One that surely crashed may be named."
        )
        return
    rows = [(one.workflow_id, str(one.sequence), one.reason) for one in crashed]
    call.output.table(("WORKFLOW", "LAST", "WHY"), rows, right=" r")
    call.output.note("Bring one back with `holdfast recover WORKFLOW`; --plan shows first what would happen.")


def _crashed_fields(one: Incomplete) -> dict[str, Any]:
    from holdfast.domain.time import timestamp_text

    return {
        "workflow_id": one.workflow_id,
        "sequence": one.sequence,
        "checkpoint": str(one.checkpoint_id),
        "status": str(one.status),
        "cause": str(one.cause),
        "reason": one.reason,
        "last_activity": timestamp_text(one.last_activity),
        "quiet_seconds": round(one.quiet_seconds, 3),
        "session_id": one.session_id,
        "owner": one.owner,
    }


def _print_plan(output: Output, plan: RecoveryPlan, cost: Repeats, *, has_app: bool) -> None:
    if output.as_json:
        output.data({**plan_fields(plan), **cost_fields(cost)})
        return
    for refusal in plan.refusals:
        output.line(f"{output.paint('refused', 'bad')}  {safe(refusal)}")
    output.line(f"{safe(plan.workflow_id)} {_outlook(plan)}")
    if not plan.refusals:
        changing = f"{plan.replayed:,} {'changes' if plan.replayed == 1 else 'change'} the state"
        output.line(f"  events   {plan.events:,} after it, {changing}")
    print_cost(output, cost)
    for one in plan.damage:
        output.line(f"  damaged  {safe(one)}; would go to quarantine")
    if plan.lease is not None and plan.lease.is_live:
        output.line(f"  lease    {safe(_lease_text(plan.lease))}")
    if plan.handler:
        output.line(f"  handler  {safe(plan.handler)}, {_known(plan, has_app=has_app)}")
    elif has_app and plan.checkpoint:
        output.line("  handler  none is named, so nothing would be resumed: give --handler")
    _print_warnings(output, plan.warnings)
    output.note("Nothing was changed.")


def _outlook(plan: RecoveryPlan) -> str:
    if plan.refusals:
        return "would not be recovered"
    start = f"checkpoint {plan.checkpoint.sequence}" if plan.checkpoint else "the events alone"
    return f"would be recovered from {start} ({str(plan.mode).replace('_', '-')})"


def _lease_text(lease: Lease) -> str:
    from holdfast.application.recovery.owners import is_dead

    if is_dead(lease.owner):
        return f"of {lease.owner}, whose process is gone: it would be ended"
    return f"held by {lease.owner} until {lease.expires_at}; nobody else recovers before without --take-over"


def _known(plan: RecoveryPlan, *, has_app: bool) -> str:
    if plan.is_handler_known:
        return "at hand"
    return "which the app does not have" if has_app else "not at hand: give --app"


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
    if result.state is not None:
        _print_recovered(output, result)
    _print_warnings(output, result.warnings)
    for problem in result.validation_errors:
        output.line(f"{output.paint('refused', 'bad')}  {safe(problem)}")
    if is_resumed and result.handler is not None:
        how = output.paint("ended well", "good") if result.success else output.paint("failed", "bad")
        output.line(f"  handler  {safe(result.handler)} {how}")
    elif result.success and not is_resumed:
        output.note(
            "The state is recovered; nothing was resumed. Your program goes on from the state that"
            " `recover_workflow` answers; --app MODULE:OBJECT names one whose handler goes on now."
        )


def _tell_newest(call: Call, result: RecoveryResult) -> None:
    """Say so where an older state was answered, and the newest checkpoint stays what it was."""
    if result.state is None or result.checkpoint_made is not None:
        return
    with reading(call) as kit:
        newest = newest_sequence(kit, result.workflow_id)
    if result.checkpoint_used is None or result.checkpoint_used.sequence != newest:
        call.output.note(
            f"Checkpoint {newest} is still the newest; --checkpoint records this state after it."
        )


def _print_recovered(output: Output, result: RecoveryResult) -> None:
    used = result.checkpoint_used
    start = f"checkpoint {used.sequence}" if used else "the events alone"
    took = f"{result.recovery_time_ms:.0f} ms"
    output.line(f"{output.paint('Recovered', 'good')} {safe(result.workflow_id)} from {start} in {took}")
    replayed = f"{result.events_replayed:,} replayed"
    skipped = f", {len(result.skipped):,} skipped" if result.skipped else ""
    lost = f", {result.events_lost:,} lost" if result.events_lost else ""
    output.line(f"  events   {replayed}{skipped}{lost}")
    if result.quarantined:
        output.line(f"  damage   {counted(len(result.quarantined), 'checkpoint')} in quarantine")
    if result.state is not None:
        output.line(f"  state    {_outline(result.state)}")
    if result.checkpoint_made is not None:
        output.line(f"  kept as  {safe(result.checkpoint_made)}, which `load_latest` answers from now on")


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
        "events_lost": result.events_lost,
        "passed_over": list(result.passed_over),
        "checkpoint_made": str(result.checkpoint_made) if result.checkpoint_made else None,
        "quarantined": list(result.quarantined),
        "recovery_time_ms": round(result.recovery_time_ms, 3),
        "steps": [{**asdict(step), "milliseconds": round(step.milliseconds, 3)} for step in result.steps],
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
            hint="The warnings say why. Mend it, and run this again.",
        )
    if not result.success:
        raise click.exceptions.Exit(Exit.REFUSED)
    if result.passed_over:
        raise click.exceptions.Exit(Exit.OLDER)
    if result.skipped or result.events_lost:
        raise click.exceptions.Exit(Exit.PARTIAL)
