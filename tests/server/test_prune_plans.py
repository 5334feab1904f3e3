"""Plans are remembered for a while, and not too many of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from holdfast.domain.retention import RetentionPolicy
from holdfast.server import prune_plans
from holdfast.server.prune_plans import KEPT, PlannedPrune, PrunePlans, new_id

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def planned() -> PlannedPrune:
    return PlannedPrune(new_id(), "WF", RetentionPolicy(), (1,), (2, 3), 3, NOW + KEPT)


def test_a_plan_is_found_until_it_expires():
    plans, plan = PrunePlans(), planned()
    plans.add(plan)
    assert plans.find(plan.id, NOW) == plan
    assert plans.find(plan.id, NOW + KEPT) is None
    assert plans.find("prune-x", NOW) is None


def test_only_the_last_plans_are_remembered(monkeypatch):
    monkeypatch.setattr(prune_plans, "_PLANS_MAX", 2)
    plans, made = PrunePlans(), [planned() for _ in range(3)]
    for plan in made:
        plans.add(plan)
    assert [plans.find(plan.id, NOW) is not None for plan in made] == [False, True, True]


def test_who_asks_for_many_plans_makes_only_the_own_ones_be_forgotten():
    plans, one = PrunePlans(), replace(planned(), shown_to="ann")
    plans.add(one)
    made = [replace(planned(), shown_to="bob") for _ in range(500)]
    for plan in made:
        plans.add(plan)
    assert plans.find(one.id, NOW) == one
    assert [plan for plan in made if plans.find(plan.id, NOW)] == made[-20:]
