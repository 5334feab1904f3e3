"""Bringing workflows back, and running their events again: first the plan, then the work."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import msgspec

from holdfast.application.insight.repeats import EffectAt, Repeats, StepAt, repeats_of
from holdfast.application.recovery.owners import is_dead
from holdfast.domain import recovery_plan
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.record import Lease
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.replay import SkippedEvent
from holdfast.server.acting import CHANGING, READING, Acting, Name, Number, begin
from holdfast.server.desk import Desk
from holdfast.server.equal_commands import command, option
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.operations import OperationRow, Progress
from holdfast.server.problems import Refusal

Mode: TypeAlias = Literal["latest", "full", "point_in_time"]
#: So many of anything are named.
_NAMED_MAX = 500


class WhatToRecover(msgspec.Struct, forbid_unknown_fields=True):
    """What to bring back, and from where."""

    workflow_id: Name
    mode: Mode = "latest"
    #: Number of the checkpoint, with `point_in_time` and only with that.
    target: Number | None = None


class Recover(Acting):
    """What to bring back, from where, and what may happen on the way."""

    workflow_id: Name
    mode: Mode = "latest"
    target: Number | None = None
    #: Whether effects may happen a second time once the work goes on.
    allow_repeat_effects: bool = False
    #: Whether the lease of whoever has the workflow is ended first.
    take_over: bool = False
    #: Whether the state is recorded as a checkpoint; null: where the newest one is damaged.
    checkpoint: bool | None = None


class LeaseHeld(msgspec.Struct):
    """Who has a workflow."""

    owner: str
    expires_at: str
    is_live: bool
    #: Certainly gone: a process of the server's machine that ended.
    is_dead: bool


class RecoveryPlan(msgspec.Struct):
    """What would happen; nothing was changed."""

    workflow_id: str
    mode: str
    checkpoint: str | None
    #: Numbers of newer checkpoints that cannot be used.
    passed_over: list[int]
    damage: list[recovery_plan.Damage]
    events: int
    replayed: int
    skipped: list[SkippedEvent]
    lease: LeaseHeld | None
    handler: str | None
    #: Why nothing would be done.
    refusals: list[str]
    warnings: list[str]
    steps_lost: list[StepAt]
    steps_repeated: list[StepAt]
    effects_at_risk: list[EffectAt]
    #: What has to be allowed in so many words: `take_over`, `allow_repeat_effects`.
    needs: list[str]
    command: str


class Recovered(msgspec.Struct):
    """What came of a recovery."""

    workflow_id: str
    mode: str
    checkpoint_used: str | None
    checkpoint_made: str | None
    events_replayed: int
    events_lost: int
    skipped: list[SkippedEvent]
    passed_over: list[int]
    quarantined: list[str]
    warnings: list[str]
    recovery_time_ms: float


def plan_recovery(desk: Desk, asked: Asked[None, WhatToRecover]) -> RecoveryPlan:
    """Tell what a recovery would do."""
    body = asked.body
    plan = desk.service.plan_recovery(body.workflow_id, body.mode, body.target)
    return _plan(plan, _repeats(desk, plan), _held(plan.lease), body, desk.kit.store.url)


def recover(desk: Desk, asked: Asked[None, Recover]) -> Answer:
    """Bring a workflow back; its state only: whoever runs it goes on from there."""
    body = asked.body
    plan = desk.service.plan_recovery(body.workflow_id, body.mode, body.target)
    reason = begin(desk, asked, "recover", body.workflow_id)
    _check_allowed(desk, body, plan)
    work = partial(_recover, desk, body, reason)
    return desk.operations.start(
        "recover", work, asked, scope=Scope.RECOVER, workflow_id=body.workflow_id, unit="steps"
    )


def _recover(desk: Desk, body: Recover, reason: str, progress: Progress) -> Recovered:
    progress.step(0, 1)
    lease = desk.service.lease_of(body.workflow_id)
    if body.take_over and lease is not None:
        desk.service.release_lease(lease)
    result = desk.service.recover_workflow(
        body.workflow_id, body.mode, body.target, reason=reason, checkpoint=body.checkpoint
    )
    if not result.success:
        raise Refusal(409, "recovery_failed", "; ".join(result.validation_errors), place=body.workflow_id)
    progress.steps.done = 1
    return _recovered(result)


def _repeats(desk: Desk, plan: recovery_plan.RecoveryPlan) -> Repeats:
    """Tell what going on from what would be restored costs."""
    if plan.mode is RecoveryMode.POINT_IN_TIME and plan.checkpoint is not None:
        return repeats_of(desk.kit, plan.workflow_id, plan.checkpoint.sequence)
    return repeats_of(desk.kit, plan.workflow_id)


def _check_allowed(desk: Desk, body: Recover, plan: recovery_plan.RecoveryPlan) -> None:
    """Refuse what was not allowed in so many words, and tell the trail.

    Raises:
        Refusal: somebody has the workflow, or effects may happen twice.
    """
    held, repeats = _held(plan.lease), _repeats(desk, plan)
    refusal = None
    if held is not None and held.is_live and not held.is_dead and not body.take_over:
        said = f"{held.owner} has the workflow until {held.expires_at}"
        hint = "Wait, or allow it with take_over: then whoever has it cannot write any more."
        refusal = Refusal(409, "lease_held", said, place=body.workflow_id, hint=hint)
    elif repeats.effects_at_risk and not body.allow_repeat_effects:
        named = ", ".join(f"{one.name} of {one.step_id}" for one in repeats.effects_at_risk[:5])
        said = f"effects may happen twice: {named}"
        hint = "Look at the other side for their keys, and allow it with allow_repeat_effects."
        refusal = Refusal(409, "effects_at_risk", said, place=body.workflow_id, hint=hint)
    if refusal is not None:
        facts = {"via": "http", "operation": "recover", "code": refusal.code}
        desk.note(AuditType.OPERATION_REFUSED, body.workflow_id, facts, outcome=Outcome.REFUSED)
        raise refusal


def _held(lease: Lease | None) -> LeaseHeld | None:
    if lease is None:
        return None
    return LeaseHeld(lease.owner, lease.expires_at, lease.is_live, is_dead(lease.owner))


def _plan(
    plan: recovery_plan.RecoveryPlan,
    repeats: Repeats,
    held: LeaseHeld | None,
    body: WhatToRecover,
    store: str,
) -> RecoveryPlan:
    needs = ["take_over"] if held is not None and held.is_live and not held.is_dead else []
    needs += ["allow_repeat_effects"] if repeats.effects_at_risk else []
    return RecoveryPlan(
        workflow_id=plan.workflow_id,
        mode=str(plan.mode),
        checkpoint=str(plan.checkpoint) if plan.checkpoint else None,
        passed_over=list(plan.passed_over[:_NAMED_MAX]),
        damage=list(plan.damage[:_NAMED_MAX]),
        events=plan.events,
        replayed=plan.replayed,
        skipped=list(plan.skipped[:_NAMED_MAX]),
        lease=held,
        handler=plan.handler,
        refusals=list(plan.refusals),
        warnings=[*plan.warnings, *repeats.notes],
        steps_lost=list(repeats.steps_lost),
        steps_repeated=list(repeats.steps_repeated),
        effects_at_risk=list(repeats.effects_at_risk),
        needs=needs,
        command=_command(store, body, needs),
    )


def _command(store: str, body: WhatToRecover, needs: list[str]) -> str:
    mode = ["--mode=full"] if body.mode == "full" else []
    allowed = [f"--{need.replace('_', '-')}" for need in needs]
    options = [*mode, *option("to", body.target), "--no-resume", *allowed]
    return command(store, "recover", [body.workflow_id], options)


def _recovered(result: RecoveryResult) -> Recovered:
    used, made = result.checkpoint_used, result.checkpoint_made
    return Recovered(
        result.workflow_id,
        str(result.mode),
        str(used) if used else None,
        str(made) if made else None,
        result.events_replayed,
        result.events_lost,
        list(result.skipped[:_NAMED_MAX]),
        list(result.passed_over[:_NAMED_MAX]),
        list(result.quarantined[:_NAMED_MAX]),
        list(result.warnings),
        round(result.recovery_time_ms, 3),
    )


OPERATIONS = (
    Operation(
        "planRecovery",
        "POST",
        "/recover/plan",
        Scope.READ,
        "Tell what a recovery would do, lose and repeat; nothing is changed.",
        plan_recovery,
        body=WhatToRecover,
        result=RecoveryPlan,
        tag="recovery",
        problems=READING,
    ),
    Operation(
        "recover",
        "POST",
        "/recover",
        Scope.RECOVER,
        "Bring a workflow back; the result of the operation tells what was restored, replayed and lost.",
        recover,
        body=Recover,
        result=OperationRow,
        status=202,
        acts=True,
        alias=True,
        tag="recovery",
        problems=CHANGING,
    ),
)
