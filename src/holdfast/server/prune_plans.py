"""Plans of what would be pruned, kept for a while: what goes is what somebody was shown."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.domain.retention import RetentionPolicy

KEPT = timedelta(minutes=15)
_PLANS_MAX = 200
#: Of one who asks: whoever may only look must not make others' plans be forgotten.
_OF_ONE_MAX = 20


@dataclass(frozen=True, slots=True)
class PlannedPrune:
    """What was shown to somebody.

    Attributes:
        sequences: of the checkpoints that would go.
        keep: of those that would stay.
        newest: what came later was not looked at.
    """

    id: str
    workflow_id: str
    policy: RetentionPolicy
    sequences: tuple[int, ...]
    keep: tuple[int, ...]
    newest: int
    expires_at: datetime
    #: Who was shown it.
    shown_to: str = ""


class PrunePlans:
    """The last plans that were made here, in memory: after a restart a plan has to be made anew."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._plans: OrderedDict[str, PlannedPrune] = OrderedDict()

    def add(self, plan: PlannedPrune) -> None:
        """Remember a plan; the oldest is forgotten where there are too many, of all or of one who asks."""
        with self._mutex:
            self._plans[plan.id] = plan
            own = [one.id for one in self._plans.values() if one.shown_to == plan.shown_to]
            for plan_id in own[:-_OF_ONE_MAX]:
                del self._plans[plan_id]
            while len(self._plans) > _PLANS_MAX:
                self._plans.popitem(last=False)

    def find(self, plan_id: str, now: datetime) -> PlannedPrune | None:
        """Answer a plan that has not expired."""
        with self._mutex:
            plan = self._plans.get(plan_id)
        return plan if plan is not None and plan.expires_at > now else None


def new_id() -> str:
    """Name a plan so that nobody can guess it."""
    return f"prune-{secrets.token_hex(12)}"
