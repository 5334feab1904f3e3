"""What tests of reading have in common: a store with runs of every kind, and looking at what was refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import holdfast
from holdfast import CheckpointService, RunOptions, Workflow
from holdfast.domain.errors import AgentFailedError
from holdfast.server.desk import Desk
from tests.server.acts import waiting_run
from tests.server.served import Caller, application

HOSTILE: dict[str, Any] = {
    "bytes": b"\x00\xff",
    "nan": float("nan"),
    "big": 10**40,
    "pair": (1, 2),
    "half": "\ud800",
    "set": {1, 2},
    "a/b~c": {"": [None, True, "<script>"]},
    "long": "line\n" * 300,
    "$hf": "no tag",
}


def work(workflow_id: str, service: CheckpointService, *, fails: bool = False) -> None:
    """Run a plan and what follows it."""
    flow = Workflow("works")

    @flow.agent
    def plan(ctx: Any) -> list[int]:
        ctx.metrics(tokens=10)
        ctx.message("a thought " * 20)
        return [1, 2]

    @flow.agent(after=plan, each=lambda run: run.result("plan"))
    def price(ctx: Any, item: int) -> int:
        if fails:
            raise ValueError("no ink")
        return item

    if fails:
        with pytest.raises(AgentFailedError):
            flow.run_sync(service, workflow_id, options=RunOptions(session_id="s-1"))
    else:
        flow.run_sync(service, workflow_id, options=RunOptions(session_id="s-1"))


def filled(url: str) -> str:
    """Make a store with a run that is done, one that failed, one that waits, a fork and an odd state."""
    with holdfast.open(url) as service:
        work("done", service)
        work("failed", service, fails=True)
        service.create_checkpoint("WF/1", {"n": 1, "words": ["a", "b", "c"]}, agent_id="writer")
        service.create_checkpoint("WF/1", {"n": 2, "words": ["b", "c", "a"], "odd": HOSTILE})
        service.fork_workflow("WF/1@1", "forked")
    waiting_run(url, "asking")
    return url


@contextmanager
def looked_at(folder: Path) -> Iterator[tuple[TestClient, Desk]]:
    """Serve such a store to tests that change nothing in it."""
    with application(filled(f"sqlite:{folder}/store")) as (client, desk):
        yield client, desk


def pages(call: Caller, path: str, limit: int) -> Iterator[list[Any]]:
    """Ask for the pages of a listing, one after the other."""
    joined = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    page = call.get(joined)
    while True:
        assert len(page["items"]) <= limit
        yield page["items"]
        if page["next_cursor"] is None:
            return
        page = call.get(f"{joined}&cursor={page['next_cursor']}")


def refused(response: Any, status: int, code: str) -> dict[str, Any]:
    """Make sure that a request was refused as it should be; answer the problem."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert (problem["status"], problem["code"]) == (status, code)
    return problem
