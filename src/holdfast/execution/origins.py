"""Where steps come from: the one step that each follows, as the plan has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.execution.plan import Plan, Stage, StageKind


@dataclass(frozen=True, slots=True)
class Origins:
    """Which agent comes after which; whoever comes after several, or after several items, is left out."""

    before: Mapping[str, str] = field(default_factory=dict)
    #: Of loops: who ends a round, by who begins the next; None where several steps end it.
    rounds: Mapping[str, str | None] = field(default_factory=dict)


def origins_of(plan: Plan) -> Origins:
    """Read from a plan who comes after whom."""
    agents, lineage = plan.agents, _Lineage(plan)
    before = {}
    for name, found in lineage.before.items():
        if len(found) == 1 and agents[one := next(iter(found))].each is None:
            before[name] = one
    loops = [stage.agents for layer in plan.layers for stage in layer if stage.kind is StageKind.LOOP]
    return Origins(before, {row[0].name: None if row[-1].each else row[-1].name for row in loops})


class _Lineage:
    """Who comes after whom, worked out stage by stage in the order of the plan.

    What a barrier waits for counts as far as nothing else says it: all behind one comes after all before it.
    """

    def __init__(self, plan: Plan) -> None:
        #: One bit for each agent: sets of them are numbers, however long a plan is.
        self._bits = {name: 1 << place for place, name in enumerate(plan.agents)}
        self._ancestors: dict[str, int] = {}
        #: Who is last in a stage, and at a barrier.
        self._ends: dict[str, frozenset[str]] = {}
        self._barriers: set[str] = set()
        self.before: dict[str, frozenset[str]] = {}
        for layer in plan.layers:
            for stage in layer:
                self._take(stage)

    def _take(self, stage: Stage) -> None:
        first = self._said(stage.after)
        before_first = self._with_ancestors(first)
        names = [agent.name for agent in stage.agents]
        for place, agent in enumerate(stage.agents):
            is_first = not place or stage.kind is StageKind.PARALLEL
            after = (*(stage.after if is_first else names[place - 1 : place]), *agent.after)
            if after == stage.after:
                # Worked out once for all of them: a thousand at once may follow a thousand.
                self.before[agent.name], self._ancestors[agent.name] = first, before_first
                continue
            self.before[agent.name] = before = self._said(after)
            self._ancestors[agent.name] = self._with_ancestors(before)
        if not names:
            self._barriers.add(stage.name)
            self._ends[stage.name] = self._newest(self._ends_of(stage.after), first)
        else:
            self._ends[stage.name] = frozenset(names if stage.kind is StageKind.PARALLEL else names[-1:])

    def _said(self, names: Sequence[str]) -> frozenset[str]:
        """Name whom these stages and agents end with; of barriers, those who do not come before another."""
        said = self._ends_of([name for name in names if name not in self._barriers])
        waited = self._ends_of([name for name in names if name in self._barriers])
        return said | self._newest(waited, said) if waited else said

    def _ends_of(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._ends.get(name, (name,)) for name in names))

    def _newest(self, names: frozenset[str], others: frozenset[str]) -> frozenset[str]:
        """Leave out who comes before one of these, or of others."""
        earlier = 0
        for name in names | others:
            earlier |= self._ancestors[name]
        return frozenset(name for name in names if not self._bits[name] & earlier)

    def _with_ancestors(self, names: frozenset[str]) -> int:
        found = 0
        for name in names:
            found |= self._bits[name] | self._ancestors[name]
        return found
