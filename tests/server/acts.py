"""What tests of acting have in common: stores with something in them, and looking at the trail afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast
from holdfast import RunOptions, Workflow
from holdfast.domain.errors import AgentFailedError
from holdfast.server.desk import Desk
from holdfast.server.operations import OperationRow
from holdfast.server.problems import encode

PATIENCE_SECONDS = 30
#: A request's id that tests send along, to find what was told under it.
REQUEST_ID = "req-of-a-test"
SECRET = "sk-ant-api03-" + "Zq7Lw2Xe9Rt4Yu1Io6Pa3Sd8Fg5Hj0Kl" * 2


def filled(url: str, checkpoints: int = 6) -> str:
    """Make a store with a workflow `WF/1` that has a few checkpoints and events."""
    with holdfast.open(url) as service:
        for number in range(checkpoints):
            service.create_checkpoint("WF/1", {"n": number, "words": ["a", "b"]})
            service.record_decision("WF/1", f"decision {number}")
    return url


def over(desk: Desk, response: Any) -> dict[str, Any]:
    """Wait for the operation that a response tells of; answer how it ended."""
    assert response.status_code == 202, response.text
    operation_id = response.json()["id"]
    assert response.headers["location"] == f"/v1/operations/{operation_id}"
    shown: dict[str, Any] = json.loads(encode(finished(desk, operation_id)))
    return shown


def finished(desk: Desk, operation_id: str) -> OperationRow:
    """Wait until an operation is over."""
    running = desk.operations.find(operation_id)
    assert running.future is not None
    running.future.result(PATIENCE_SECONDS)
    return running.row()


def told(desk: Desk, request_id: str = REQUEST_ID) -> list[Any]:
    """Answer what the trail was told under a request's id."""
    desk.service.flush()
    return [one for one in desk.service.audit.query_events() if one.correlation_id == request_id]


def why_told(desk: Desk, actor: str, operation: str, reason: str, request_id: str = REQUEST_ID) -> list[Any]:
    """Make sure that a request was told with who and why before all else; answer what else was told."""
    first, *others = told(desk, request_id)
    assert (first.type, first.actor) == ("REQUEST_MADE", actor)
    assert first.facts["operation"] == operation and first.facts["via"] == "http"
    assert first.data == {"reason": reason}
    assert {one.actor for one in others} <= {actor}
    return others


def waiting_run(url: str, workflow_id: str = "WF-ask") -> Workflow:
    """Run a workflow up to its question."""
    flow = Workflow("asks")

    @flow.agent
    def decide(ctx: Any) -> Any:
        answer = ctx.approve("Go on?", name="go")
        return [bool(answer), answer.by, answer.value]

    assert flow.run_sync(url, workflow_id, options=RunOptions(waits=False)).status == "waiting"
    return flow


def crashed_run(url: str, workflow_id: str = "WF-crash") -> Workflow:
    """Run a workflow that is cut short in the middle of an effect, after a step that ended."""
    flow = Workflow("pays")

    @flow.agent
    def plan(ctx: Any) -> str:
        return "planned"

    @flow.agent(after=plan)
    def pay(ctx: Any) -> Any:
        def transfer(key: str) -> None:
            raise TimeoutError("no answer")

        return ctx.effect("transfer", transfer)

    with pytest.raises(AgentFailedError):
        flow.run_sync(url, workflow_id)
    return flow
