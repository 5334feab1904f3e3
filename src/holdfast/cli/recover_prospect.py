"""What a recovery would come to: its plan, what that costs, and why it would be refused, with which code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.cli.exits import Exit, Failure, exit_of
from holdfast.cli.group import did_you_mean
from holdfast.cli.opening import looking, reading
from holdfast.cli.points import find_point
from holdfast.cli.recover_cost import cost_of
from holdfast.domain.errors import NoValidCheckpointError
from holdfast.domain.skipping import (
    agent_of,
    is_freed,
    is_loop_ahead,
    is_skipped,
    known_agents,
    steps_to_skip,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from holdfast.application.app import App
    from holdfast.application.insight.repeats import Repeats
    from holdfast.application.kit import Kit
    from holdfast.cli.group import Call
    from holdfast.cli.recover_order import Order
    from holdfast.domain.recovery_plan import RecoveryPlan

_NAMED = 5
_LOOK = "Look at the other side for their keys (--plan --json tells them), and give --allow-repeat-effects."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing would be done, and how the command ends for it."""

    text: str
    leave: Exit
    code: str = "refused"
    hint: str = ""

    def failure(self, place: str) -> Failure:
        """Answer what ends the command."""
        return Failure(self.code, self.leave, self.text, place=place, hint=self.hint)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a recovery would do.

    Attributes:
        point: where the state would be taken from, a checkpoint or an event; empty where none is.
        events_lost: how many events after that cannot be read.
        skipped_steps: what would be left out for the agents that are to be skipped.
        skipped_before: those of them of which nothing is left, because they were skipped before.
        is_freed: whether the run waited for answers, and would not any more.
        refusals: why nothing would be done; the first one is how the recovery itself ends.
    """

    plan: RecoveryPlan
    cost: Repeats
    point: str = ""
    events_lost: int = 0
    skipped_steps: tuple[str, ...] = ()
    skipped_before: tuple[str, ...] = ()
    is_freed: bool = False
    refusals: tuple[Refusal, ...] = ()


def prospect_of(
    call: Call, workflow: str, order: Order, program: App | None, notes: Sequence[str]
) -> Prospect:
    """Look ahead; nothing is changed.

    Args:
        notes: what is known of losses already.

    Raises:
        CheckpointError: there is no such workflow, checkpoint or agent, or the fork's name is taken.
    """
    with looking(call, app=program, on_no_valid=order.on_no_valid) as service:
        plan = _with_handler(service.plan_recovery(*order.where(workflow)), program, order)
    plan = replace(plan, warnings=(*plan.warnings, *notes, *_shared(plan, order)))
    cost = _without(cost_of(call, plan), order.skip_agents)
    with reading(call, app=program) as kit:
        _check_fork(kit, order)
        found = Prospect(plan, cost, refusals=tuple(_refusals(plan, cost, order)))
        if plan.refusals or _is_blank(plan):
            return found
        found = _with_point(kit, found, order)
        more = _handler_refusals(kit, found, order) if program is not None else ()
        return replace(found, refusals=(*found.refusals, *more))


def _with_handler(plan: RecoveryPlan, program: App | None, order: Order) -> RecoveryPlan:
    """Plan with the handler that was named instead of the checkpoint's."""
    if program is None or order.handler is None:
        return plan
    return replace(plan, handler=order.handler, is_handler_known=program.handlers.has(order.handler))


def _shared(plan: RecoveryPlan, order: Order) -> Iterator[str]:
    from holdfast.application.recovery.owners import is_held

    if order.fork is not None and plan.lease is not None and is_held(plan.lease):
        yield f"{plan.lease.owner} still works on {plan.workflow_id}: it and the fork go on side by side"


def _without(cost: Repeats, agents: Sequence[str]) -> Repeats:
    """Leave out what is not done again because its agent is skipped."""
    return replace(
        cost,
        steps_repeated=tuple(one for one in cost.steps_repeated if agent_of(one.step_id) not in agents),
        effects_at_risk=tuple(one for one in cost.effects_at_risk if agent_of(one.step_id) not in agents),
    )


def _check_fork(kit: Kit, order: Order) -> None:
    if order.fork is not None:
        from holdfast.application.edited_forks import check_free

        check_free(kit.store, order.fork)


def _is_blank(plan: RecoveryPlan) -> bool:
    """Tell whether the work would start over."""
    return plan.checkpoint is None and bool(plan.passed_over)


def _refusals(plan: RecoveryPlan, cost: Repeats, order: Order) -> Iterator[Refusal]:
    """Say what stands against it, in the order in which a recovery comes upon it."""
    if cost.effects_at_risk and not order.allow_repeat_effects:
        named = ", ".join(f"{one.name} of {one.step_id}" for one in cost.effects_at_risk[:_NAMED])
        yield Refusal(f"effects may happen twice: {named}", Exit.REFUSED, "effects_at_risk", _LOOK)
    yield from _lease_refusals(plan, order)
    nothing = NoValidCheckpointError.code
    for text in plan.refusals:
        is_invalid = plan.has_nothing_valid
        yield Refusal(text, exit_of(nothing), nothing) if is_invalid else Refusal(text, Exit.REFUSED)
    if _is_blank(plan) and (order.fork or order.skip_agents) and not plan.refusals:
        said = "no checkpoint verifies: there is no state that this could begin from"
        yield Refusal(said, exit_of(nothing), nothing)


def _lease_refusals(plan: RecoveryPlan, order: Order) -> Iterator[Refusal]:
    from holdfast.application.recovery.owners import is_held

    lease = plan.lease
    if lease is not None and is_held(lease) and not order.take_over and order.fork is None:
        yield Refusal(f"{lease.owner} has the workflow until {lease.expires_at}", Exit.LOCKED, "lease_held")


def _with_point(kit: Kit, found: Prospect, order: Order) -> Prospect:
    """Add where the state is taken from, and which steps of it would be skipped."""
    from holdfast.application.resolve import resolve
    from holdfast.domain.recovery import RecoveryMode

    plan = found.plan
    last = plan.events + (resolve(kit.store, plan.checkpoint).entry.event_seq if plan.checkpoint else 0)
    if plan.checkpoint is not None and (plan.mode is RecoveryMode.POINT_IN_TIME or not plan.events):
        point = str(plan.checkpoint)
    else:
        point = f"{plan.workflow_id}@event:{last}"
    is_exact = plan.mode is RecoveryMode.POINT_IN_TIME
    lost = 0 if is_exact else kit.store.head(plan.workflow_id).event_seq - last
    found = replace(found, point=point, events_lost=max(lost, 0))
    return _with_skips(found, find_point(kit, point).tree, order) if order.skip_agents else found


def _with_skips(found: Prospect, tree: Mapping[str, Any], order: Order) -> Prospect:
    # An agent may be named twice.
    left = {agent: _steps(tree, agent, found.point) for agent in order.skip_agents}
    steps = tuple(step for steps in left.values() for step in steps)
    before = tuple(agent for agent, steps in left.items() if not steps)
    return replace(found, skipped_steps=steps, skipped_before=before, is_freed=is_freed(tree, steps))


def _steps(tree: Mapping[str, Any], agent: str, point: str) -> tuple[str, ...]:
    """Name what is left out for an agent; nothing where it was skipped before: the same may be asked again.

    Raises:
        Failure: there is no such agent, or nothing is left of it to skip.
    """
    known = known_agents(tree)
    if agent not in known:
        hint = did_you_mean(agent, known) or f"Known are: {', '.join(known[:20]) or 'none'}."
        raise Failure("no_such_agent", Exit.NOT_FOUND, f"there is no agent {agent}", place=point, hint=hint)
    steps = steps_to_skip(tree, agent)
    if not steps and not is_skipped(tree, agent):
        raise _nothing_left(agent, point, is_ahead=is_loop_ahead(tree, agent))
    return steps


def _nothing_left(agent: str, point: str, *, is_ahead: bool) -> Failure:
    if is_ahead:
        said = f"{agent} cannot be skipped yet: its loop has not begun"
        hint = "An agent of a loop can be skipped from its first round on, in each round that it is in."
    else:
        said = f"nothing is left to skip of {agent}: it has ended, or waits for a round of its loop"
        hint = "`holdfast resume --from AGENT --as NEW-ID` runs an agent again."
    return Failure("refused", Exit.REFUSED, said, place=point, hint=hint)


def _handler_refusals(kit: Kit, found: Prospect, order: Order) -> Iterator[Refusal]:
    """Say why the handler of the app would not be called."""
    plan = found.plan
    if plan.checkpoint is None:
        return
    if order.skip_validation or order.fork is not None:
        # A fork has no retries yet, and did not end.
        if not plan.is_handler_known:
            named = f"nobody registered the handler {plan.handler}" if plan.handler else "no handler is named"
            leave = exit_of("handler_not_found") if order.skip_validation else Exit.REFUSED
            yield Refusal(named, leave, "handler_not_found")
        return
    from holdfast.application.reading import Reader
    from holdfast.application.recovery.examining import problems_of
    from holdfast.application.resolve import resolve
    from holdfast.domain.state import WorkflowState

    is_resumable = find_point(kit, found.point).tree.get("resumable") is not False
    state = WorkflowState(workflow_id=plan.workflow_id, resumable=is_resumable)
    for text in problems_of(kit, Reader(kit), resolve(kit.store, plan.checkpoint), state, order.handler):
        yield Refusal(text, Exit.REFUSED)
