"""Replays over HTTP: what events and states say, and that nothing is changed."""

from __future__ import annotations

import pytest

from tests.server.acts import REQUEST_ID, over, why_told

WHY = "the numbers look odd"


def test_a_replay_tells_where_events_and_states_differ(served):
    call, desk = served
    body = {"workflow_id": "WF/1", "reason": WHY}
    done = over(desk, call("POST", "/v1/replay", headers={"X-Request-Id": REQUEST_ID}, json=body))
    assert done["status"] == "done"
    result = done["result"]
    assert (result["start"], result["diverged"], result["is_cut"]) == ("WF/1@1", 0, False)
    assert result["unexplained"] >= 5 and result["left_out"] >= 5
    assert "/context/n" in {one["pointer"] for step in result["steps"] for one in step["differences"]}
    assert done["progress"] == {"done": 6, "total": 6, "unit": "checkpoints"}
    others = why_told(desk, "ann", "replay", WHY)
    assert {one.type for one in others} == {"STATE_READ", "OPERATION_ENDED"}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"start": "WF/1@5", "end": "WF/1@2"}, 400),
        ({"start": "other@1"}, 404),
        ({"end": "WF/1@event:9999"}, 404),
    ],
)
def test_a_replay_of_what_is_not_there_fails(served, more, status):
    call, desk = served
    body = {"workflow_id": "WF/1", "reason": WHY, **more}
    ended = over(desk, call("POST", "/v1/replay", json=body))
    assert ended["status"] == "failed" and ended["problem"]["status"] == status


def test_a_replay_of_no_workflow_is_refused(served):
    call, _ = served
    assert call("POST", "/v1/replay", json={"workflow_id": "nobody", "reason": WHY}).status_code == 404
