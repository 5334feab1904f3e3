"""What going back costs: steps that are lost, steps that run again, effects that may happen twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.opening import reading
from holdfast.cli.output import Output, counted, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.application.insight.repeats import Repeats, StepAt
    from holdfast.cli.group import Call
    from holdfast.domain.recovery_plan import RecoveryPlan

_NAMED = 5


def cost_of(call: Call, plan: RecoveryPlan) -> Repeats:
    """Tell what work costs that goes on from where a plan leads to."""
    from holdfast.application.insight.repeats import Repeats, repeats_of
    from holdfast.domain.recovery import RecoveryMode

    if plan.checkpoint is None:
        return Repeats()
    target = plan.checkpoint.sequence if plan.mode is RecoveryMode.POINT_IN_TIME else None
    with reading(call) as kit:
        return repeats_of(kit, plan.workflow_id, target)


def cost_fields(cost: Repeats) -> dict[str, Any]:
    """Write it for programs."""
    from dataclasses import asdict

    fields = asdict(cost)
    del fields["notes"]
    return fields


def print_cost(output: Output, cost: Repeats) -> None:
    """Say it, where there is something to say."""
    for label, steps in (("lost", cost.steps_lost), ("again", cost.steps_repeated)):
        if steps:
            output.line(f"  {label:<9}{counted(len(steps), 'step')}: {_names(steps)}")
    for effect in cost.effects_at_risk:
        may = output.paint("may happen twice", "warn")
        output.line(f"  effect   {safe(effect.name)} of {safe(effect.step_id)} {may}")


def _names(steps: Sequence[StepAt]) -> str:
    named = ", ".join(safe(step.step_id) for step in steps[:_NAMED])
    return f"{named} and {len(steps) - _NAMED} more" if len(steps) > _NAMED else named
