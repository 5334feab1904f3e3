"""What others ask of a run is carried out once: checkpoints, pauses, ends and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import CheckpointService, RunOptions, Triggers
from holdfast.domain.request import Request, RequestKind
from holdfast.domain.run_events import AGENT_STARTED, APPROVAL_REQUESTED, REQUEST_SETTLED, open_questions
from holdfast.execution.approvals import Approval, Suspended
from holdfast.execution.asked import Asked, meant
from holdfast.execution.engines.local import LocalEngine
from holdfast.execution.journal import Fact
from holdfast.execution.outcome import RunStatus
from holdfast.execution.plan import make_plan
from holdfast.execution.running import Runner
from holdfast.execution.triggers import TriggerWatch
from tests.execution.journals import W, begun
from tests.execution.runs import Told, chain, kinds, opened, run, told_to, types


def one(ctx: Any) -> int:
    return 1


class Scene:
    """A run that is asked things, without any agent."""

    def __init__(self, service: CheckpointService, triggers: Triggers | None = None) -> None:
        self.service = service
        self.told: Told
        self.told, subscriber = told_to()
        self.journal = begun(service, subscriber)
        watch = TriggerWatch(triggers or Triggers(), lambda: 0.0, lambda: None)
        engine = LocalEngine()
        self.runner = Runner(make_plan("w", {}), self.journal, RunOptions(), watch, lambda name: engine, 0.8)
        self.cancelled = 0
        self.asked = Asked(self.runner, self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1

    def put(self, kind: str, **more: Any) -> Request:
        return self.service.requests.put(W, kind, actor="ann", **more)

    def carry_out(self, request: Request) -> bool:
        return asyncio.run(self.asked.carry_out(request))

    def question(self, name: str, step_id: str = "plan") -> None:
        self.journal.note(Fact(AGENT_STARTED, {"attempt": 1}, step_id, "plan"))
        self.journal.note(Fact(APPROVAL_REQUESTED, {"name": name, "question": "?"}, step_id, "plan"))

    @property
    def settled(self) -> list[str]:
        return self.journal.fields.get("metadata", {}).get("settled_requests", [])


@pytest.fixture
def scene() -> Iterator[Scene]:
    with opened() as service:
        yield Scene(service)


def answer(scene: Scene, granted: bool = True, **data: Any) -> Request:
    return scene.put("approval", reason="fine", data={"granted": granted, **data})


def test_a_checkpoint_is_made_and_the_request_is_in_it(scene: Scene) -> None:
    request = scene.put("checkpoint")
    assert scene.carry_out(request) is True
    assert len(kinds(scene.service)) == 2 and scene.settled == [request.id]
    assert scene.told[-1][1]["reason"] == "user_requested"


def test_no_checkpoint_is_made_where_nobody_may_ask_for_one() -> None:
    with opened() as service:
        scene = Scene(service, Triggers(user_requested=False))
        assert scene.carry_out(scene.put("checkpoint")) is True
        assert len(kinds(service)) == 1


@pytest.mark.parametrize(
    ("kind", "status", "cancels"), [("pause", RunStatus.PAUSED, 0), ("cancel", RunStatus.CANCELLED, 1)]
)
def test_a_run_is_stopped(scene: Scene, kind: str, status: RunStatus, cancels: int) -> None:
    async def work() -> None:
        waiting = asyncio.ensure_future(scene.runner.desk.answer("plan", "go"))
        await asyncio.sleep(0)
        assert await scene.asked.carry_out(scene.put(kind)) is True
        with pytest.raises(Suspended):
            await waiting

    asyncio.run(work())
    assert scene.runner.stop.status is status and scene.cancelled == cancels
    [stopping] = [data for kind, data in scene.told if kind == "stopping"]
    assert (stopping["status"], stopping["by"]) == (str(status), "ann")


def test_a_cancelled_run_stays_so_though_its_process_dies_before_that_is_recorded(scene: Scene) -> None:
    assert scene.carry_out(scene.put("cancel"))
    # Nothing more was recorded: another process finds this.
    found = scene.service.recording.recover(W).state
    assert found is not None and found.metadata["ends_as"] == "cancelled"
    result = run(chain(one), scene.service)
    assert result.status == "cancelled" and result.ran == 0
    assert run(chain(one), scene.service).status == "cancelled"


def test_a_paused_run_goes_on_though_its_process_dies_before_that_is_recorded(scene: Scene) -> None:
    assert scene.carry_out(scene.put("pause"))
    assert run(chain(one), scene.service).status == "completed"


@pytest.mark.parametrize("kind", ["checkpoint", "pause", "cancel"])
def test_what_was_carried_out_is_not_when_it_comes_again(scene: Scene, kind: str) -> None:
    request = scene.put(kind)
    assert scene.carry_out(request) and scene.carry_out(request)
    assert types(scene.service).count(REQUEST_SETTLED) == 1 and scene.cancelled <= 1


@pytest.mark.parametrize("granted", [True, False])
def test_an_answer_is_recorded_and_brought_to_whoever_waits(scene: Scene, granted: bool) -> None:
    scene.question("go")

    async def work() -> Approval:
        waiting = asyncio.ensure_future(scene.runner.desk.answer("plan", "go"))
        await asyncio.sleep(0)
        assert await scene.asked.carry_out(answer(scene, granted, name="go", value=[1]))
        return await waiting

    approval = asyncio.run(work())
    assert approval == Approval(granted, "ann", "fine", [1])
    assert Approval.of(scene.journal.agent_state("plan")["approvals"]["go"]) == approval
    assert open_questions(scene.journal.fields) == []
    assert scene.told[-1][0] == "approval_answered"


def test_an_answer_for_which_nobody_waits_is_recorded_all_the_same(scene: Scene) -> None:
    scene.question("go")
    request = answer(scene)
    assert scene.carry_out(request)
    assert scene.journal.agent_state("plan")["approvals"]["go"]["request"] == request.id


def is_discarded(scene: Scene, request: Request) -> bool:
    """Tell whether an answer was taken for none, and whether that was told."""
    assert scene.carry_out(request) is True
    settled = [event.data for event in scene.service.events(W, type=REQUEST_SETTLED)]
    [told] = [data for data in settled if data["id"] == request.id]
    warned = any("discarded" in text for text in scene.journal.warnings)
    assert ("discarded" in told) == warned
    return warned


def test_an_answer_that_was_given_before_a_question_was_asked_never_answers_it(scene: Scene) -> None:
    early = answer(scene, name="go")
    scene.question("go")
    assert is_discarded(scene, early)
    assert [name for _, name, _ in open_questions(scene.journal.fields)] == ["go"]


def test_an_answer_to_nothing_that_is_open_is_discarded(scene: Scene) -> None:
    assert is_discarded(scene, answer(scene, name="go"))


def test_an_answer_that_may_be_for_several_questions_is_discarded(scene: Scene) -> None:
    scene.question("go", "plan[a]")
    scene.question("go", "plan[b]")
    request = answer(scene, name="go")
    assert is_discarded(scene, request)
    assert scene.carry_out(answer(scene, name="go", step="plan[a]"))
    # It comes again, and there is one question left.
    assert scene.carry_out(request)
    assert [step for step, _, _ in open_questions(scene.journal.fields)] == ["plan[b]"]


def test_a_second_answer_changes_nothing_and_waits_for_no_other_question(scene: Scene) -> None:
    scene.question("go")
    first, second = answer(scene, name="go"), answer(scene, False, name="go")
    assert scene.carry_out(first) and is_discarded(scene, second)
    assert scene.journal.agent_state("plan")["approvals"]["go"]["status"] == "granted"


def test_questions_of_which_nobody_knows_when_they_were_asked_are_answered(scene: Scene) -> None:
    request = answer(scene)
    waiting = {"plan": {"approvals": {"go": {"status": "waiting"}}}}
    assert meant({"agent_states": waiting}, "go", None, request.requested_at) == [("plan", "go")]


def test_an_answer_without_an_actor_is_nobodys(scene: Scene) -> None:
    scene.question("go")
    request = answer(scene)
    unnamed = Request(request.id, W, RequestKind.APPROVAL, None, request.requested_at, data={"granted": True})
    assert scene.carry_out(unnamed)
    assert scene.journal.agent_state("plan")["approvals"]["go"]["by"] == ""


def test_the_question_is_found_by_what_was_said_of_it(scene: Scene) -> None:
    def found(name: str | None, step: str | None) -> list[tuple[str, str]]:
        return meant(scene.journal.fields, name, step, answer(scene).requested_at)

    assert found(None, None) == []
    scene.question("go", "plan[a]")
    assert found(None, None) == [("plan[a]", "go")]
    scene.question("go", "plan[b]")
    assert len(found(None, None)) == len(found("go", None)) == 2
    assert found("go", "plan[b]") == [("plan[b]", "go")]
    scene.question("stop", "plan[b]")
    assert found("stop", None) == [("plan[b]", "stop")]
    assert found(None, "plan[a]") == [("plan[a]", "go")]
    assert len(found(None, "plan[b]")) == 2
    assert found("other", None) == []


def test_states_of_agents_in_another_shape_hold_no_questions() -> None:
    assert open_questions({"agent_states": {"own": "text", "plan": {"status": "running"}}}) == []
    assert open_questions({}) == []
