"""`holdfast recover`: bring a workflow back, and say what was restored, replayed, skipped and lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe
from holdfast.cli.recover_exec import check_ended_well, run_command
from holdfast.cli.recover_order import MODES, Order
from holdfast.cli.recover_printing import Done, print_done, print_plan, result_fields
from holdfast.cli.recover_prospect import Prospect, prospect_of
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.recovery.incomplete import Incomplete
    from holdfast.application.service import CheckpointService
    from holdfast.domain.record import Entry
    from holdfast.domain.recovery import RecoveryResult


@click.command("recover", cls=StoreCommand)
@click.argument("workflow", metavar="[WORKFLOW]", required=False)
@click.option(
    "--mode", type=click.Choice(list(MODES)), help="From where. [default: latest; with --to: point-in-time]"
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
@click.option("--fork", metavar="NEW", help="Recover into this new workflow, and leave WORKFLOW as it is.")
@click.option(
    "--skip-agent",
    "skip_agents",
    metavar="NAME",
    multiple=True,
    help="Go on without what this agent has still to do; may be repeated.",
)
@click.option(
    "--exec", "exec_line", metavar="CMD", help="Run this afterwards; it is given the result as JSON."
)
@changes()
def command(call: Call, workflow: str | None, plan_only: bool, change: Change, **wanted: Any) -> None:
    """Bring a workflow back after a crash.

    Takes the newest checkpoint that verifies, replays the events since, puts
    what is damaged into quarantine, and tells what it did. With --app the
    handler named by the checkpoint then resumes the work. Without WORKFLOW
    it lists what crashed. Ends with 32 if an older checkpoint had to stand in,
    and with 3 if events were skipped or lost. A plan of what would be refused
    ends with the code of the refusal.

    \b
    Example:
      holdfast recover WF-2026-001 --plan
      holdfast recover WF-2026-001
    """
    order = Order(**wanted)
    if workflow is None:
        if order != Order() or change.reason:
            raise click.UsageError("name the WORKFLOW to recover; without one those that crashed are listed")
        _list_incomplete(call)
        return
    order.check()
    words = order.words
    lost, events_lost = _look(call, workflow, fresh=order.fresh)
    program = order.program()
    prospect = prospect_of(call, workflow, order, program, lost)
    if plan_only or change.dry_run:
        print_plan(call.output, prospect, order, has_app=program is not None)
        if prospect.refusals:
            raise click.exceptions.Exit(prospect.refusals[0].leave)
        return
    _refuse(prospect, order)
    done = _recovered(call, prospect, order, program, change.reason)
    if lost and order.fork is None:
        events_lost = max(events_lost, done.result.events_lost)
        warnings = (*done.result.warnings, *lost)
        done = replace(done, result=replace(done.result, warnings=warnings, events_lost=events_lost))
    _tell(call, done, order, words)
    _leave(done.result)


def _refuse(prospect: Prospect, order: Order) -> None:
    """Refuse what the recovery itself would not; what it refuses, it tells better, and in the trail.

    Raises:
        Failure: effects may happen twice, or there is nothing that a fork or a run without an agent could
            begin from.
    """
    is_ours = order.fork is not None or bool(order.skip_agents)
    for refusal in prospect.refusals:
        if is_ours or refusal.code == "effects_at_risk":
            raise refusal.failure(prospect.plan.workflow_id)


def _recovered(call: Call, prospect: Prospect, order: Order, program: App | None, reason: str | None) -> Done:
    """Recover the workflow, or a fork of it; steps are skipped first, so that whoever goes on knows it."""
    origin = prospect.plan.workflow_id
    target = order.fork or origin
    with writing(
        call, app=program, on_no_valid=order.on_no_valid, reason=reason, workflow_id=target
    ) as service:
        if order.fork is not None:
            _fork(service, prospect, order.fork, reason)
        else:
            if order.take_over or (order.skip_agents and _is_left(service, origin)):
                _end_lease(service, origin)
            _skip(service, prospect, reason)
        result = _carried_out(service, prospect, order, reason, is_resumed=program is not None)
    forked_from = prospect.point if order.fork else None
    skipped = prospect.skipped_steps, prospect.skipped_before
    return Done(result, forked_from, *skipped, is_resumed=program is not None)


def _carried_out(
    service: CheckpointService, prospect: Prospect, order: Order, reason: str | None, *, is_resumed: bool
) -> RecoveryResult:
    plan = prospect.plan
    where = order.where(plan.workflow_id) if order.fork is None else (order.fork, MODES["latest"], None)
    if is_resumed:
        # The first checkpoint of a fork names no handler.
        handler = order.handler if order.fork is None else plan.handler
        result = service.resume_workflow(
            *where, override_handler=handler, reason=reason, skip_validation=order.skip_validation
        )
    else:
        result = service.recover_workflow(*where, reason=reason, checkpoint=order.checkpoint)
    if order.fork is None:
        return result
    # What was passed over and lost is the origin's; the fork begins after it, and is whole.
    return replace(
        result,
        passed_over=plan.passed_over,
        skipped=plan.skipped,
        events_lost=prospect.events_lost,
        warnings=(*plan.warnings, *result.warnings),
    )


def _fork(service: CheckpointService, prospect: Prospect, name: str, reason: str | None) -> None:
    """Make the fork in one commit: there is never one in which only a part of the steps is skipped."""
    if prospect.skipped_steps or prospect.is_freed:
        service.recording.fork_skipping(prospect.point, name, prospect.skipped_steps, _why(reason))
    else:
        service.fork_workflow(prospect.point, name)


def _skip(service: CheckpointService, prospect: Prospect, reason: str | None) -> None:
    """Record that steps are not needed, as a run does where a condition does not hold."""
    steps, workflow = prospect.skipped_steps, prospect.plan.workflow_id
    if steps or prospect.is_freed:
        service.recording.skip(workflow, steps, _why(reason), is_freed=prospect.is_freed)


def _why(reason: str | None) -> dict[str, str]:
    return {"reason": f"skipped by a recovery: {reason}" if reason else "skipped by a recovery"}


def _is_left(service: CheckpointService, workflow: str) -> bool:
    """Tell whether whoever had a workflow is certainly gone, and only the lease is left."""
    from holdfast.application.recovery.owners import is_dead

    lease = service.lease_of(workflow)
    return lease is not None and lease.is_live and is_dead(lease.owner)


def _tell(call: Call, done: Done, order: Order, words: list[str]) -> None:
    """Say what was done, and run what is to be run then; programs are told how that ended, too."""
    fields, result = result_fields(done), done.result
    if not call.output.as_json:
        print_done(call.output, done)
        _hint(call, done, order, words)
    ended = run_command(call, words, fields) if words and result.success else None
    if call.output.as_json:
        call.output.data({**fields, "exec_exit_code": ended})
    if ended is not None:
        check_ended_well(words, ended)


def _hint(call: Call, done: Done, order: Order, words: list[str]) -> None:
    """Say what is left to do."""
    if not done.result.success or done.is_resumed or words:
        return
    result, newest = done.result, _newest_kept(call, done.result, order)
    call.output.note(f"The state is recovered; nothing was resumed. {_way_on(call, result, order, newest)}")


def _way_on(call: Call, result: RecoveryResult, order: Order, newest: Entry | None) -> str:
    """Say how a workflow goes on: one that has a graph is run by `holdfast resume`, not by a handler."""
    used = result.checkpoint_used.sequence if result.checkpoint_used is not None else 0
    stays = f"Checkpoint {newest.sequence} is still the newest" if newest and newest.sequence != used else ""
    if order.skip_agents or (result.state is not None and result.state.dag_structure.get("stages")):
        if newest and not stays and has_ended(newest):
            return f"The run ended with checkpoint {used}: there is nothing to go on with."
        from holdfast.cli.run_options import resume_command

        line = resume_command(call, result.workflow_id).replace("--app PROGRAM", "--app FILE.py:OBJECT")
        # A resume takes the newest checkpoint, whatever was looked at here.
        first = f"{stays}; the same with --checkpoint records this state after it, and then " if stays else ""
        return f"{first}`{safe(line)}` goes on with it."
    return (
        "Your program goes on from the state that `recover_workflow` answers;"
        " --app MODULE:OBJECT names one whose handler goes on now."
        + (f" {stays}; --checkpoint records this state after it." if stays else "")
    )


def _newest_kept(call: Call, result: RecoveryResult, order: Order) -> Entry | None:
    """Answer the newest checkpoint where one went back and it stays what it was; None where one did not."""
    if order.target is None or order.fork is not None or result.state is None or result.checkpoint_made:
        return None
    with reading(call) as kit:
        return next(iter(kit.store.entries(result.workflow_id, newest_first=True)), None)


def _end_lease(service: CheckpointService, workflow: str) -> None:
    """Give up the lease of whoever has a workflow: that one cannot write any more."""
    lease = service.lease_of(workflow)
    if lease is not None:
        service.release_lease(lease)


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
