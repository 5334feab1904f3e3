"""What a run needs to know of a workflow."""

from __future__ import annotations

from holdfast import Triggers, Workflow
from holdfast.execution.declared import Declared


def test_a_workflow_tells_everything_that_a_run_asks() -> None:
    workflow: Declared = Workflow("team", concurrency=3, confidence_factor=0.5)
    workflow_names = (workflow.name, workflow.concurrency, workflow.confidence_factor)
    assert workflow_names == ("team", 3, 0.5)
    assert workflow.triggers == Triggers() and workflow.engines == {} and workflow.plan.layers == ()
