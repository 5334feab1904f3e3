"""Removing what need not be kept: first the plan, then exactly what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.application.resolve import living
from holdfast.application.retain import Plan, plan_prune
from holdfast.domain.access import Scope
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.time import timestamp_text
from holdfast.server.acting import CHANGING, READING, Acting, Name, begin
from holdfast.server.api.holding import HoldRow, holds_against
from holdfast.server.api.reading import check_there
from holdfast.server.desk import Desk
from holdfast.server.equal_commands import command, option
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Refusal
from holdfast.server.prune_plans import KEPT, PlannedPrune, new_id

_Count = Annotated[int, Meta(ge=0, le=2**31)]


class Policy(msgspec.Struct, forbid_unknown_fields=True):
    """What stays; at least two checkpoints do in any case, and those that are pinned."""

    keep_last: _Count = 10
    keep_days: _Count = 30
    keep_daily: _Count = 0
    keep_weekly: _Count = 0
    #: Whether those with a label stay.
    keep_tagged: bool = False
    max_per_phase: Annotated[int, Meta(ge=1, le=2**31)] | None = None
    max_bytes: Annotated[int, Meta(ge=0, le=2**53)] | None = None

    def rules(self) -> RetentionPolicy:
        """Answer the same for the library."""
        return RetentionPolicy(
            self.keep_last,
            self.keep_days,
            self.max_per_phase,
            keep_daily=self.keep_daily,
            keep_weekly=self.keep_weekly,
            keep_tagged=self.keep_tagged,
            max_bytes=self.max_bytes,
        )


class WhatToPrune(msgspec.Struct, forbid_unknown_fields=True):
    """Of which workflow, and what stays."""

    workflow_id: Name
    policy: Policy = msgspec.field(default_factory=Policy)


class PrunePlan(msgspec.Struct):
    """What would go; nothing was changed."""

    #: To be given back to prune.
    id: str
    workflow_id: str
    policy: Policy
    #: Of the checkpoints that would go.
    sequences: list[int]
    #: How many would stay.
    kept: int
    freed_bytes: int
    #: Those that stand against it: while there is one, nothing goes.
    holds: list[HoldRow]
    command: str
    expires_at: str


class Prune(Acting):
    """The plan that was looked at."""

    plan_id: Annotated[str, Meta(min_length=1, max_length=100)]


class Pruned(msgspec.Struct):
    """What went."""

    workflow_id: str
    sequences: list[int]
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """What pruning would do at this moment."""

    plan: Plan
    kept: tuple[int, ...]


def plan(desk: Desk, asked: Asked[None, WhatToPrune]) -> PrunePlan:
    """Tell what pruning would remove, and remember it for whoever goes on."""
    body = asked.body
    check_there(desk, body.workflow_id)
    seen = _seen(desk, body.workflow_id, body.policy.rules())
    planned = PlannedPrune(
        new_id(),
        body.workflow_id,
        body.policy.rules(),
        seen.plan.removal.sequences,
        seen.kept,
        max((*seen.kept, *seen.plan.removal.sequences), default=0),
        desk.kit.clock.now() + KEPT,
        asked.identity.name,
    )
    desk.prune_plans.add(planned)
    return PrunePlan(
        planned.id,
        body.workflow_id,
        body.policy,
        list(planned.sequences),
        len(planned.keep),
        seen.plan.freed_bytes,
        holds_against(desk, body.workflow_id),
        _command(desk.kit.store.url, body),
        timestamp_text(planned.expires_at),
    )


def prune(desk: Desk, asked: Asked[None, Prune]) -> Pruned:
    """Remove what a plan showed, if that is still what would go."""
    planned = desk.prune_plans.find(asked.body.plan_id, desk.kit.clock.now())
    if planned is None:
        raise Refusal(
            409,
            "plan_unknown",
            "there is no such plan, or it has expired",
            place=asked.body.plan_id,
            hint="Ask for a new plan, and look at it.",
        )
    begin(desk, asked, "prune", planned.workflow_id)
    desk.service.holds.check(workflow_id=planned.workflow_id)
    seen = _seen(desk, planned.workflow_id, planned.policy)
    if seen.plan.removal.sequences != planned.sequences:
        raise Refusal(
            409,
            "plan_changed",
            "what would go is not what the plan showed any more",
            place=planned.workflow_id,
            hint="Ask for a new plan, and look at it.",
        )
    if not planned.sequences:
        return Pruned(planned.workflow_id, [], 0)
    # Just what was seen: what would have to go by now for its age stays until the next time.
    removed = desk.service.recording.keep_only(planned.workflow_id, planned.keep, through=planned.newest)
    return Pruned(planned.workflow_id, list(removed.removed), removed.freed_bytes)


def _seen(desk: Desk, workflow_id: str, policy: RetentionPolicy) -> _Seen:
    found = plan_prune(desk.kit, workflow_id, policy)
    going = set(found.removal.sequences)
    kept = (entry.sequence for entry in living(desk.kit.store, workflow_id))
    return _Seen(found, tuple(sorted(one for one in kept if one not in going)))


def _command(store: str, body: WhatToPrune) -> str:
    policy = body.policy
    options = [
        f"--keep-last={policy.keep_last}",
        f"--keep-days={policy.keep_days}",
        *option("keep-daily", policy.keep_daily or None),
        *option("keep-weekly", policy.keep_weekly or None),
        *option("keep-tagged", policy.keep_tagged),
        *option("max-per-phase", policy.max_per_phase),
        *option("max-bytes", policy.max_bytes),
    ]
    return command(store, "prune", [body.workflow_id], options)


OPERATIONS = (
    Operation(
        "planPrune",
        "POST",
        "/prune/plan",
        Scope.READ,
        "Tell what pruning a workflow would remove; nothing is changed.",
        plan,
        body=WhatToPrune,
        result=PrunePlan,
        tag="upkeep",
        problems=READING,
    ),
    Operation(
        "prune",
        "POST",
        "/prune",
        Scope.PRUNE,
        "Remove exactly what a plan showed.",
        prune,
        body=Prune,
        result=Pruned,
        acts=True,
        tag="upkeep",
        problems=CHANGING,
    ),
)
