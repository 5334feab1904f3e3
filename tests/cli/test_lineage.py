from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.lineage import forest
from tests.cli.conftest import Run


def test_forks_hang_below_what_they_were_forked_from(run: Run, store: Path):
    run("fork", "WF-1@2", "WF-1-b", "--store", store)
    run("fork", "WF-1-b", "WF-1-c", "--store", store)
    tree = (
        "WF-1: 3 checkpoints\n`- WF-1-b from WF-1@2: 1 checkpoint\n   `- WF-1-c from WF-1-b@1: 1 checkpoint\n"
    )
    assert run("list", "WF-1-c", "--tree", "--store", store).out == tree
    assert run("list", "--tree", "--store", store).out == tree + "WF-2: 1 checkpoint\n"
    data = run("list", "--tree", "--limit", 1, "--json", "--store", store).data
    assert data["total"] == 2 and data["trees"][0]["forks"][0]["forked_from"] == "WF-1@2"
    assert "1 of 2 trees" in run("list", "--tree", "--limit", 1, "--store", store).err


def test_a_line_of_many_forks_is_one_tree_and_each_stands_once(store: Path):
    with bootstrap.open(str(store)) as service:
        for number in range(40):
            service.fork_workflow("WF-1@1" if not number else f"F-{number - 1:02}@1", f"F-{number:02}")
    with bootstrap.open(str(store), read_only=True) as service:
        store_of = service._engine.kit.store
        roots = forest(store_of)
        lines = list(roots[0].branch(store_of).lines())
    assert [root.workflow_id for root in roots] == ["WF-1", "WF-2"]
    names = [kin.workflow_id for kin in roots[0].all()]
    assert len(names) == len(set(names)) == 41
    assert len(lines) == 41 and lines[-1].endswith("F-39 from F-38@1: 1 checkpoint")


def test_a_fork_of_what_is_gone_is_a_root_and_says_where_it_came_from(run: Run, store: Path):
    run("copy", store, "target", "WF-2")
    run("fork", "WF-1@2", "WF-9", "--store", store)
    assert run("copy", store, "other", "WF-9").exit_code == 0
    assert run("list", "--tree", "--store", "other").out.startswith("WF-9")
