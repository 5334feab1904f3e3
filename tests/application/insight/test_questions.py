from __future__ import annotations

from typing import Any

import pytest

from holdfast import RunOptions
from holdfast.application.insight.questions import (
    OpenQuestion,
    all_questions,
    has_ended,
    last_point,
    questions_of,
)
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.run_events import open_questions
from tests import encrypted
from tests.application.insight.test_runs import asking, working
from tests.application.services import make_kit


@pytest.fixture
def kit() -> Kit:
    kit = make_kit()
    service = CheckpointService(kit)
    asking().run_sync(service, "asking", options=RunOptions(waits=False))
    working().run_sync(service, "done")
    return kit


def test_a_question_is_open_until_its_run_has_taken_the_answer_in(kit: Kit) -> None:
    service = CheckpointService(kit)
    [one] = questions_of(kit, "asking")
    assert (one.step_id, one.name, one.text, one.data, one.answer) == ("ask", "go", "Go on?", {}, None)
    assert one.since.endswith("Z")
    request = service.requests.put("asking", "approval", actor="ann", data={"granted": True})
    [one] = questions_of(kit, "asking", service.requests.pending())
    assert one.answer is not None and one.answer.id == request.id
    asking().run_sync(service, "asking")
    assert questions_of(kit, "asking") == [] and has_ended(kit, "asking")


def test_all_workflows_are_asked_unless_some_are_named(kit: Kit) -> None:
    assert [one.workflow_id for one in all_questions(kit) if isinstance(one, OpenQuestion)] == ["asking"]
    assert list(all_questions(kit, (), ["done"])) == []


def test_a_workflow_that_was_erased_waits_for_nothing_and_warns_nobody(kit: Kit) -> None:
    CheckpointService(kit).erasure.workflow("asking", reason="asked for")
    assert list(all_questions(kit)) == []


def test_nor_does_one_whose_key_was_destroyed() -> None:
    with encrypted.service(encrypted.encrypted_store()) as service:
        asking().run_sync(service, "asking", options=RunOptions(waits=False))
        kit = service._engine.kit
        assert len(list(all_questions(kit))) == 1
        service.erasure.workflow("asking", reason="asked for")
        assert list(all_questions(kit)) == []


def test_the_last_point_is_after_the_last_event(kit: Kit) -> None:
    assert last_point(kit, "nobody") is None
    found = last_point(kit, "done")
    assert found is not None and found.tree["status"] == "completed"


@pytest.mark.parametrize(
    "fields",
    [{}, {"agent_states": 7}, {"agent_states": {"a": 7}}, {"agent_states": {"a": {"approvals": [7]}}}],
)
def test_a_state_that_is_nobodys_run_has_no_open_questions(fields: dict[str, Any]) -> None:
    assert open_questions(fields) == []
