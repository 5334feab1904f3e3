"""Recovery over HTTP: what would be lost or repeated is told first; nothing happens unasked."""

from __future__ import annotations

import shlex

import pytest

import holdfast
from holdfast.domain.errors import LeaseHeldError
from tests.server.acts import REQUEST_ID, SECRET, crashed_run, over, told, why_told
from tests.server.served import application, caller_for

WHY = "the machine lost power"


def plan(call, workflow_id="WF/1", **more):
    return call("POST", "/v1/recover/plan", json={"workflow_id": workflow_id, **more})


def recover(call, workflow_id="WF/1", **more):
    body = {"workflow_id": workflow_id, "reason": WHY, **more}
    return call("POST", "/v1/recover", headers={"X-Request-Id": REQUEST_ID}, json=body)


def test_a_plan_tells_what_would_happen_and_changes_nothing(served):
    call, desk = served
    before = desk.kit.store.head("WF/1")
    told_plan = plan(call).json()
    assert told_plan["checkpoint"] == "WF/1@6" and told_plan["mode"] == "latest"
    assert (told_plan["events"], told_plan["replayed"]) == (1, 1)
    assert told_plan["refusals"] == told_plan["needs"] == told_plan["effects_at_risk"] == []
    assert told_plan["command"] == f"holdfast recover --no-resume --store={desk.kit.store.url} WF/1"
    assert desk.kit.store.head("WF/1") == before


def test_the_equal_command_is_quoted_for_a_shell(served):
    call, desk = served
    name = "-rf $(touch it) 'x'"
    desk.service.create_checkpoint(name, {"n": 1})
    told_plan = plan(call, name, mode="point_in_time", target=1).json()
    words = shlex.split(told_plan["command"])
    assert words == [
        "holdfast",
        "recover",
        "--to=1",
        "--no-resume",
        f"--store={desk.kit.store.url}",
        "--",
        name,
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"workflow_id": "nobody"}, 404),
        ({"workflow_id": "a\x01b"}, 400),
        ({"workflow_id": "WF/1", "mode": "point_in_time"}, 422),
        ({"workflow_id": "WF/1", "target": 3}, 422),
        ({"workflow_id": "WF/1", "mode": "point_in_time", "target": 99}, 404),
        ({"workflow_id": "WF/1", "mode": "sideways"}, 422),
        ({"workflow_id": ""}, 422),
    ],
)
def test_what_cannot_be_recovered_is_refused(served, body, status):
    call, desk = served
    assert call("POST", "/v1/recover/plan", json=body).status_code == status
    answer = call("POST", "/v1/recover", json={**body, "reason": WHY})
    if answer.status_code == 202:
        assert over(desk, answer)["problem"]["status"] == status
    else:
        assert answer.status_code == status


def test_a_recovery_is_an_operation_and_is_told_with_who_and_why(served):
    call, desk = served
    done = over(desk, recover(call, checkpoint=True))
    assert (done["kind"], done["status"], done["actor"]) == ("recover", "done", "ann")
    assert done["result"]["checkpoint_used"] == "WF/1@6"
    assert done["result"]["checkpoint_made"] == "WF/1@7"
    others = why_told(desk, "ann", "recover", WHY)
    assert {"WORKFLOW_RECOVERED", "LEASE_ACQUIRED", "OPERATION_ENDED"} <= {one.type for one in others}
    assert call.get(f"/v1/operations/{done['id']}") == done


def test_recovery_has_its_name_without_a_version(served):
    call, desk = served
    answer = call("POST", "/recover", json={"workflow_id": "WF/1", "reason": WHY})
    assert over(desk, answer)["status"] == "done"


def test_a_secret_in_a_reason_is_hidden(served):
    call, desk = served
    over(desk, recover(call, reason=f"because {SECRET} leaked"))
    assert SECRET not in str([(one.data, one.facts) for one in told(desk)])
    assert SECRET not in str([event.data for event in desk.service.events("WF/1")])


def test_what_somebody_has_is_left_alone_unless_that_is_allowed(url):
    with holdfast.open(url) as owner, application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        owner.acquire_lease("WF/1", "elsewhere", ttl_seconds=300)
        shown = plan(call).json()
        assert shown["lease"]["owner"] == "elsewhere" and shown["needs"] == ["take_over"]
        assert "--take-over" in shown["command"]
        refused = recover(call)
        assert refused.status_code == 409 and refused.json()["code"] == "lease_held"
        assert [one.type for one in told(desk)] == ["REQUEST_MADE", "OPERATION_REFUSED"]
        assert over(desk, recover(call, take_over=True))["status"] == "done"
        with pytest.raises(holdfast.CheckpointError) as lost:
            owner.create_checkpoint("WF/1", {"n": "too late"})
        assert lost.value.code in ("lease_lost", LeaseHeldError.code)


def test_effects_that_may_happen_twice_are_named_and_have_to_be_allowed(url):
    crashed_run(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        shown = plan(call, "WF-crash").json()
        [effect] = shown["effects_at_risk"]
        assert (effect["step_id"], effect["name"], effect["doubt"]) == ("pay", "transfer", "unknown")
        assert effect["key"].startswith("hf-")
        assert [one["step_id"] for one in shown["steps_repeated"]] == ["pay"]
        assert shown["needs"] == ["allow_repeat_effects"]
        refused = recover(call, "WF-crash")
        assert refused.status_code == 409 and refused.json()["code"] == "effects_at_risk"
        assert over(desk, recover(call, "WF-crash", allow_repeat_effects=True))["status"] == "done"


def test_going_back_tells_what_is_lost(url):
    crashed_run(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        shown = plan(call, "WF-crash", mode="point_in_time", target=1).json()
        assert [one["step_id"] for one in shown["steps_lost"]] == ["plan"]
        assert [(one["name"], one["doubt"]) for one in shown["effects_at_risk"]] == [
            ("transfer", "forgotten")
        ]


def test_a_plan_passes_over_what_cannot_be_used(served):
    call, desk = served
    desk.service.quarantine.put("WF/1", 3, "damaged")
    shown = plan(call, mode="point_in_time", target=3).json()
    assert (shown["checkpoint"], shown["passed_over"]) == ("WF/1@2", [3])
    ended = over(desk, recover(call, mode="point_in_time", target=3))
    assert ended["result"]["checkpoint_used"] == "WF/1@2"


def test_where_nothing_can_be_used_a_plan_says_so_and_a_recovery_fails(served):
    call, desk = served
    for sequence in range(1, 7):
        desk.service.quarantine.put("WF/1", sequence, "damaged")
    shown = plan(call).json()
    assert shown["checkpoint"] is None and shown["refusals"]
    assert shown["warnings"][-1].startswith("which steps and effects would be repeated cannot be told")
    ended = over(desk, recover(call))
    assert ended["status"] == "failed" and ended["result"] is None
    assert (ended["problem"]["status"], ended["problem"]["code"]) == (409, "no_valid_checkpoint")


def test_recovering_needs_its_scope(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "viewer")
        assert plan(call).status_code == 200
        assert recover(call).status_code == 403
