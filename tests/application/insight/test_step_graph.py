from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService, RunOptions, Workflow
from holdfast.application.insight import step_graph
from holdfast.application.insight.lineage import Lineage
from holdfast.application.insight.runs import RunBook
from holdfast.application.insight.step_graph import Graph, graph
from holdfast.application.kit import Kit
from tests.application.insight.teams import run, team
from tests.application.services import make_kit


def drawn(kit: Kit, workflow_id: str = "W") -> Graph:
    return graph(kit, RunBook(kit), workflow_id, Lineage(kit).family(workflow_id))


def edges(found: Graph) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.target, edge.kind) for edge in found.edges}


@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_a_real_run_is_drawn_with_its_items_and_rounds(kind: str, tmp_path: Any) -> None:
    with holdfast.open("memory:" if kind == "memory" else f"{kind}:{tmp_path}/s") as service:
        run(service, team(), "W", rounds=2)
        found = drawn(service._engine.kit)
    statuses = {node.id: node.status for node in found.nodes}
    assert statuses == dict.fromkeys(
        ["plan", "research[0]", "research[1]", "write", "judge", "write#2", "judge#2", "publish"], "completed"
    )
    assert edges(found) == {
        ("plan", "research[0]", "after"),
        ("plan", "research[1]", "after"),
        ("research[0]", "write", "after"),
        ("research[1]", "write", "after"),
        ("write", "judge", "loop"),
        ("judge", "write#2", "loop"),
        ("write#2", "judge#2", "loop"),
        ("judge#2", "publish", "after"),
    }
    layers = {node.id: node.layer for node in found.nodes}
    assert layers["plan"] < layers["research[0]"] < layers["write"] < layers["publish"]


def test_what_the_plan_has_left_is_planned() -> None:
    flow = Workflow("half")

    @flow.agent
    def first(ctx: Any) -> str:
        return str(ctx.approve("Go on?", name="go"))

    both = flow.parallel("both", after=first)

    @both.agent
    def left(ctx: Any) -> int:
        return 1

    @both.agent
    def right(ctx: Any) -> int:
        return 2

    @flow.agent(after=both)
    def last(ctx: Any) -> int:
        return 3

    kit = make_kit()
    flow.run_sync(CheckpointService(kit), "W", options=RunOptions(waits=False))
    found = drawn(kit)
    assert {node.id: (node.status, node.is_planned) for node in found.nodes} == {
        "first": ("waiting", False),
        "left": ("planned", True),
        "right": ("planned", True),
        "last": ("planned", True),
    }
    assert edges(found) == {
        ("first", "left", "after"),
        ("first", "right", "after"),
        ("left", "last", "after"),
        ("right", "last", "after"),
    }


def test_a_barrier_is_passed_through() -> None:
    stages = [
        {"name": "a", "kind": "sequential", "layer": 0, "agents": [{"name": "a1"}, {"name": "a2"}]},
        {"name": "b", "kind": "barrier", "layer": 1, "after": ["a"], "agents": []},
        {
            "name": "c",
            "kind": "sequential",
            "layer": 2,
            "after": ["b"],
            "agents": [{"name": "c1", "after": ["a1"]}],
        },
    ]
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    fields = {
        "dag_structure": {"stages": stages},
        "agent_states": {"a1": {"status": "completed"}, "extra": {}},
    }
    service.append_event("W", "RUN_UPDATED", {"fields": fields}, step_id="run")
    found = drawn(kit)
    assert edges(found) == {("a1", "a2", "after"), ("a2", "c1", "after"), ("a1", "c1", "after")}
    extra = next(node for node in found.nodes if node.id == "extra")
    assert (extra.kind, extra.layer, extra.status) == ("step", 3, "running")


@pytest.mark.parametrize(
    "structure",
    [
        7,
        {"stages": 7},
        {"stages": [7, {}, {"name": "s", "layer": "x", "agents": [7, {"name": 5}], "after": 7}]},
    ],
)
def test_a_state_may_hold_anything(structure: Any) -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    fields = {"dag_structure": structure, "agent_states": {"x": 7}}
    service.append_event("W", "RUN_UPDATED", {"fields": fields}, step_id="run")
    assert drawn(kit).kind == "steps"


def test_where_there_is_no_plan_the_checkpoints_tell_the_way() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for number, agent in enumerate(["plan", "write", "plan", None]):
        service.create_checkpoint("W", {"n": number}, agent_id=agent)
    found = drawn(kit)
    assert [node.id for node in found.nodes] == ["plan", "write"]
    assert edges(found) == {("plan", "write", "after"), ("write", "plan", "loop")}


def test_forks_are_drawn_as_generations() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    service.fork_workflow("W@1", "X")
    service.fork_workflow("X@1", "Y")
    found = drawn(kit, "X").lineage
    assert {node.id: node.layer for node in found.nodes} == {"W": 0, "X": 1, "Y": 2}
    assert {(edge.source, edge.target, edge.label) for edge in found.edges} == {
        ("W", "X", "W@1"),
        ("X", "Y", "X@1"),
    }
    service.erasure.workflow("W", reason="asked for")
    assert {node.id: node.status for node in drawn(kit, "X").lineage.nodes}["W"] == "empty"


def test_a_large_graph_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_graph, "NODES_MAX", 1)
    kit = make_kit()
    run(CheckpointService(kit), team(), "W")
    found = drawn(kit)
    assert (len(found.nodes), found.edges, found.is_cut) == (1, [], True)
