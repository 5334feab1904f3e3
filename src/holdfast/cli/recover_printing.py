"""What `holdfast recover` says: of a plan, and of what was done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.output import Output, counted, safe
from holdfast.cli.recover_cost import cost_fields, print_cost

if TYPE_CHECKING:
    from holdfast.cli.recover_order import Order
    from holdfast.cli.recover_prospect import Prospect
    from holdfast.domain.record import Lease
    from holdfast.domain.recovery import RecoveryResult
    from holdfast.domain.recovery_plan import RecoveryPlan
    from holdfast.domain.state import WorkflowState


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a recovery.

    Attributes:
        forked_from: where the new workflow begins; None where the old one goes on.
        skipped_steps: what was left out for agents that are skipped.
        skipped_before: agents that had been skipped already.
        is_resumed: whether a handler was to go on.
    """

    result: RecoveryResult
    forked_from: str | None = None
    skipped_steps: tuple[str, ...] = ()
    skipped_before: tuple[str, ...] = ()
    is_resumed: bool = False


def print_plan(output: Output, prospect: Prospect, order: Order, *, has_app: bool) -> None:
    """Say what would happen."""
    if output.as_json:
        output.data(plan_fields(prospect, order))
        return
    plan = prospect.plan
    for refusal in prospect.refusals:
        output.line(f"{output.paint('refused', 'bad')}  {safe(refusal.text)}")
    output.line(f"{safe(plan.workflow_id)} {_outlook(prospect, order)}")
    if not plan.refusals:
        changing = f"{plan.replayed:,} {'changes' if plan.replayed == 1 else 'change'} the state"
        output.line(f"  events   {plan.events:,} after it, {changing}")
    print_cost(output, prospect.cost)
    _print_aside(output, plan, is_fork=order.fork is not None)
    _print_handler(output, plan, has_app=has_app)
    _print_extras(output, prospect.skipped_steps, "would be skipped")
    _print_extras(output, prospect.skipped_before, "is skipped already")
    if order.words:
        output.line(f"  exec     {safe(order.words[0])} would be run")
    _print_warnings(output, plan.warnings)
    output.note("Nothing was changed.")


def _outlook(prospect: Prospect, order: Order) -> str:
    plan = prospect.plan
    if prospect.refusals:
        return "would not be recovered"
    start = f"checkpoint {plan.checkpoint.sequence}" if plan.checkpoint else "the events alone"
    into = f" into {safe(order.fork)}" if order.fork else ""
    return f"would be recovered{into} from {start} ({str(plan.mode).replace('_', '-')})"


def _print_aside(output: Output, plan: RecoveryPlan, *, is_fork: bool) -> None:
    """Tell what is damaged, and who has the workflow; a fork leaves both as they are."""
    for one in plan.damage:
        output.line(f"  damaged  {safe(one)}; {'stays as it is' if is_fork else 'would go to quarantine'}")
    if plan.lease is not None and plan.lease.is_live and not is_fork:
        output.line(f"  lease    {safe(_lease_text(plan.lease))}")


def _print_handler(output: Output, plan: RecoveryPlan, *, has_app: bool) -> None:
    if plan.handler:
        output.line(f"  handler  {safe(plan.handler)}, {_known(plan, has_app=has_app)}")
    elif has_app and plan.checkpoint:
        output.line("  handler  none is named, so nothing would be resumed: give --handler")


def _print_extras(output: Output, steps: tuple[str, ...], what: str) -> None:
    for step in steps:
        output.line(f"  skip     {safe(step)} {what}")


def _lease_text(lease: Lease) -> str:
    from holdfast.application.recovery.owners import is_dead

    if is_dead(lease.owner):
        return f"of {lease.owner}, whose process is gone: it would be ended"
    return f"held by {lease.owner} until {lease.expires_at}; nobody else recovers before without --take-over"


def _known(plan: RecoveryPlan, *, has_app: bool) -> str:
    if plan.is_handler_known:
        return "at hand"
    return "which the app does not have" if has_app else "not at hand: give --app"


def plan_fields(prospect: Prospect, order: Order) -> dict[str, Any]:
    """Write a plan for programs."""
    plan = prospect.plan
    return {
        **asdict(plan),
        "checkpoint": str(plan.checkpoint) if plan.checkpoint else None,
        "mode": str(plan.mode),
        "refusals": [refusal.text for refusal in prospect.refusals],
        **cost_fields(prospect.cost),
        "fork": order.fork,
        "forked_from": prospect.point if order.fork else None,
        "skipped_steps": list(prospect.skipped_steps),
        "exec": order.words or None,
    }


def print_done(output: Output, done: Done) -> None:
    """Say what was done, to people."""
    result = done.result
    if result.state is not None:
        _print_recovered(output, done)
    _print_warnings(output, result.warnings)
    for problem in result.validation_errors:
        output.line(f"{output.paint('refused', 'bad')}  {safe(problem)}")
    if done.is_resumed and result.handler is not None:
        how = output.paint("ended well", "good") if result.success else output.paint("failed", "bad")
        output.line(f"  handler  {safe(result.handler)} {how}")


def _print_recovered(output: Output, done: Done) -> None:
    result = done.result
    used = result.checkpoint_used
    start = f"checkpoint {used.sequence}" if used else "the events alone"
    took = f"{result.recovery_time_ms:.0f} ms"
    output.line(f"{output.paint('Recovered', 'good')} {safe(result.workflow_id)} from {start} in {took}")
    if done.forked_from is not None:
        output.line(f"  fork of  {safe(done.forked_from)}, which is left as it is")
    replayed = f"{result.events_replayed:,} replayed"
    skipped = f", {len(result.skipped):,} skipped" if result.skipped else ""
    lost = f", {result.events_lost:,} lost" if result.events_lost else ""
    output.line(f"  events   {replayed}{skipped}{lost}")
    if result.quarantined:
        output.line(f"  damage   {counted(len(result.quarantined), 'checkpoint')} in quarantine")
    if result.state is not None:
        output.line(f"  state    {_outline(result.state)}")
    _print_extras(output, done.skipped_steps, "is skipped")
    _print_extras(output, done.skipped_before, "is skipped already")
    if result.checkpoint_made is not None:
        output.line(f"  kept as  {safe(result.checkpoint_made)}, which `load_latest` answers from now on")


def _outline(state: WorkflowState) -> str:
    step = f"step {state.current_step}" + (f" of {state.total_steps}" if state.total_steps else "")
    counts = (counted(len(state.tasks), "task"), counted(len(state.decisions), "decision"))
    return ", ".join((step, *counts))


def _print_warnings(output: Output, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        output.line(f"  {output.paint('warning', 'warn')}  {safe(warning)}")


def result_fields(done: Done) -> dict[str, Any]:
    """Write a result for programs; the state itself is for `holdfast show`."""
    result = done.result
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
        "forked_from": done.forked_from,
        "skipped_steps": list(done.skipped_steps),
    }
