"""The steps of a workflow as a graph: what was done, what is at work, and what the plan has left."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, product
from typing import Any

from holdfast.application.insight.lineage import Family
from holdfast.application.insight.questions import last_point
from holdfast.application.insight.runs import RunBook
from holdfast.application.kit import Kit
from holdfast.application.resolve import living
from holdfast.domain.errors import CheckpointError
from holdfast.domain.run_events import open_questions

#: So many steps are drawn, and so many checkpoints looked at where there is no plan.
NODES_MAX = 2_000
ENTRIES_MAX = 5_000
#: So many edges lead from one stage to the next.
PAIRS_MAX = 4_000
PLANNED = "planned"
#: The name of a step is that of its agent, then an item in brackets, and the round of a loop.
_STEP = re.compile(r"(?P<agent>[^\[#]*)(?P<item>\[.*\])?(?:#(?P<round>[0-9]+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Node:
    """A step, or a workflow.

    Attributes:
        kind: that of its stage (sequential, parallel, loop), `step` where no plan has it, or `run`.
        layer: how many layers of the plan, or generations of forks, come before it.
        branch: the stage it belongs to.
    """

    id: str
    label: str
    kind: str
    status: str
    is_planned: bool
    layer: int
    branch: str


@dataclass(frozen=True, slots=True)
class Edge:
    """What comes after what; `kind` is after, loop or fork, `label` the point that was forked from."""

    source: str
    target: str
    kind: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges."""

    nodes: list[Node]
    edges: list[Edge]


@dataclass(frozen=True, slots=True)
class Graph:
    """The steps of a workflow, and the forks it is related to; `is_cut` where there are more."""

    kind: str
    nodes: list[Node]
    edges: list[Edge]
    lineage: Drawing
    is_cut: bool


@dataclass(slots=True)
class _Stage:
    name: str
    kind: str
    layer: int
    after: list[str]
    agents: list[str]
    #: What an agent comes after, by its name.
    agent_after: dict[str, list[str]] = field(default_factory=dict)


def graph(kit: Kit, book: RunBook, workflow_id: str, family: Family) -> Graph:
    """Draw the steps of a workflow from its last state; by its checkpoints where that has no plan."""
    try:
        point = last_point(kit, workflow_id)
    except CheckpointError:
        point = None
    tree = point.tree if point is not None else {}
    stages = _stages(tree.get("dag_structure"))
    drawn = _planned(stages, _steps(tree)) if stages else _unplanned(kit, workflow_id)
    nodes = drawn.nodes[:NODES_MAX]
    kept = {node.id for node in nodes}
    edges = [edge for edge in drawn.edges if edge.source in kept and edge.target in kept]
    is_cut = len(drawn.nodes) > NODES_MAX or family.is_cut
    return Graph("steps", nodes, edges, _lineage(book, family), is_cut)


def _stages(structure: Any) -> list[_Stage]:
    listed = structure.get("stages") if isinstance(structure, Mapping) else None
    found = [_stage(one) for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return [stage for stage in found if stage.name]


def _stage(told: Mapping[str, Any]) -> _Stage:
    agents = [one for one in _list(told.get("agents")) if isinstance(one, Mapping)]
    layer = told.get("layer")
    return _Stage(
        _text(told.get("name")),
        _text(told.get("kind")) or "step",
        layer if type(layer) is int else 0,
        _texts(told.get("after")),
        _texts([one.get("name") for one in agents]),
        {_text(one.get("name")): _texts(one.get("after")) for one in agents},
    )


def _steps(tree: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Answer the status of each step that was begun, by agent."""
    steps: defaultdict[str, dict[str, str]] = defaultdict(dict)
    states = tree.get("agent_states")
    asking = {step_id for step_id, _, _ in open_questions(tree)}
    for step_id, state in states.items() if isinstance(states, Mapping) else ():
        status = state.get("status") if isinstance(state, Mapping) else None
        if status == "running" and step_id in asking:
            status = "waiting"
        named = _STEP.fullmatch(str(step_id))
        agent = named["agent"] if named else str(step_id)
        steps[agent][str(step_id)] = _text(status) or "running"
    return dict(steps)


def _planned(stages: Sequence[_Stage], steps: Mapping[str, dict[str, str]]) -> Drawing:
    nodes, edges, of_agent = list[Node](), list[Edge](), dict[str, list[str]]()
    for stage in stages:
        for agent in stage.agents:
            begun = steps.get(agent) or {agent: PLANNED}
            of_agent[agent] = list(begun)
            nodes += [_node(step, status, stage) for step, status in begun.items()]
        edges += _within(stage, of_agent)
    by_name = {stage.name: stage for stage in stages}
    home = {agent: stage for stage in stages for agent in stage.agents}
    for stage in stages:
        edges += _between(stage, by_name, home, of_agent)
    last = max((stage.layer for stage in stages), default=0)
    others = _Stage("", "step", last + 1, [], [])
    for agent, begun in steps.items():
        if agent not in of_agent:
            nodes += [_node(step, status, others) for step, status in begun.items()]
    return Drawing(nodes, list(dict.fromkeys(edges)))


def _node(step: str, status: str, stage: _Stage) -> Node:
    named = _STEP.fullmatch(step)
    # The steps for several items go side by side, whatever their stage does with its agents.
    is_one_of_many = named is not None and named["item"] is not None
    kind = "parallel" if is_one_of_many and stage.kind == "sequential" else stage.kind
    return Node(step, step, kind, status, status == PLANNED, stage.layer, stage.name)


def _within(stage: _Stage, of_agent: Mapping[str, list[str]]) -> list[Edge]:
    """Connect the agents of a stage that work one after the other; those of a loop by rounds."""
    if stage.kind == "loop":
        rounds: defaultdict[int, list[str]] = defaultdict(list)
        for agent in stage.agents:
            for step in of_agent[agent]:
                rounds[_round(step)].append(step)
        walked = [step for number in sorted(rounds) for step in rounds[number]]
        return [Edge(one, other, "loop") for one, other in pairwise(walked)]
    if stage.kind != "sequential":
        return []
    return [edge for one, other in pairwise(stage.agents) for edge in _all(of_agent[one], of_agent[other])]


def _between(
    stage: _Stage,
    by_name: Mapping[str, _Stage],
    home: Mapping[str, _Stage],
    of_agent: Mapping[str, list[str]],
) -> list[Edge]:
    """Connect a stage, and agents that name others, with what they come after."""
    found = list[Edge]()
    for before in stage.after:
        found += _all(_exits(before, by_name, of_agent), _entries(stage, of_agent))
    for agent, names in stage.agent_after.items():
        for before in names:
            same = home.get(before) is stage and before not in by_name
            if not same:
                found += _all(_exits(before, by_name, of_agent), of_agent.get(agent, []))
    return found


def _exits(name: str, by_name: Mapping[str, _Stage], of_agent: Mapping[str, list[str]]) -> list[str]:
    """Name the steps that end a stage, or those of an agent."""
    stage = by_name.get(name)
    if stage is None:
        return of_agent.get(name, [])
    if not stage.agents:
        # A barrier has nobody: whatever comes after it comes after what it waits for.
        return [step for before in stage.after for step in _exits(before, by_name, of_agent)]
    last = stage.agents if stage.kind == "parallel" else stage.agents[-1:]
    steps = [step for agent in last for step in of_agent[agent]]
    return steps[-1:] if stage.kind == "loop" else steps


def _entries(stage: _Stage, of_agent: Mapping[str, list[str]]) -> list[str]:
    first = stage.agents if stage.kind == "parallel" else stage.agents[:1]
    steps = [step for agent in first for step in of_agent[agent]]
    return steps[:1] if stage.kind == "loop" else steps


def _all(sources: Iterable[str], targets: Sequence[str]) -> list[Edge]:
    pairs = islice(product(sources, targets), PAIRS_MAX)
    return [Edge(source, target, "after") for source, target in pairs]


def _round(step: str) -> int:
    named = _STEP.fullmatch(step)
    return int(named["round"][:9]) if named and named["round"] else 1


def _unplanned(kit: Kit, workflow_id: str) -> Drawing:
    """Draw the way that the newest checkpoints went: their agents, else their stages, in order."""
    newest = list(islice(living(kit.store, workflow_id), ENTRIES_MAX))
    ways = [(name, entry) for entry in reversed(newest) if (name := entry.agent or entry.stage)]
    statuses = {name: entry.status for name, entry in ways}
    layers = {name: layer for layer, name in enumerate(statuses)}
    nodes = [Node(name, name, "step", status, False, layers[name], "") for name, status in statuses.items()]
    walked = [
        Edge(one, other, "after" if layers[other] > layers[one] else "loop")
        for (one, _), (other, _) in pairwise(ways)
        if one != other
    ]
    return Drawing(nodes, list(dict.fromkeys(walked)))


def _lineage(book: RunBook, family: Family) -> Drawing:
    """Draw the forks that a workflow is related to, a generation to a layer."""
    parent = {fork.workflow_id: name for name, fork in family.forks}
    nodes = []
    for name in family.members:
        row = book.row(name)
        status = str(row.status) if row is not None else "gone"
        nodes.append(Node(name, name, "run", status, False, _generation(name, parent), ""))
    edges = [Edge(name, fork.workflow_id, "fork", fork.point) for name, fork in family.forks]
    return Drawing(nodes, edges)


def _generation(name: str, parent: Mapping[str, str]) -> int:
    """Count the forks before one; a name that was erased and used again may lead in a circle."""
    seen = {name}
    while name in parent and parent[name] not in seen:
        name = parent[name]
        seen.add(name)
    return len(seen) - 1


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [one for one in _list(value) if isinstance(one, str) and one]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
