"""Changes outside happen once, or somebody is asked: each policy, in each state of the ledger."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import AgentFailedError, CheckpointService, Retry, Workflow
from holdfast.domain.errors import (
    CheckpointWriteError,
    EffectUnknownError,
    GraphChangedError,
    StateTooLargeError,
    UnsupportedTypeError,
)
from holdfast.domain.reducers import DECISION_EVENT
from holdfast.domain.run_events import EFFECT_DONE, EFFECT_STARTED
from holdfast.execution.approvals import Approval, Question
from holdfast.execution.context import Context
from holdfast.execution.driving import Asking, Driver
from holdfast.execution.effects import Effect, Found, Unknown, perform
from holdfast.execution.journal import Fact, Journal
from tests.application.services import make_service
from tests.execution.journals import PATIENCE_SECONDS, begun, recovered
from tests.execution.narrow_stores import LARGE, NarrowStore
from tests.execution.runs import chain, latest, opened, run, types


class Crashed(BaseException):
    """The process ends here."""


class World:
    """The other side: counts what was done, and can be made to fail."""

    def __init__(self, service: CheckpointService) -> None:
        self.service = service
        self.journal: Journal = begun(service)
        self.calls: list[str] = []
        #: Raised by the next calls; those of a crash after the change was made.
        self.faults: list[BaseException | None] = []
        self.questions: list[Question] = []
        self.answers: list[Approval] = []
        self.found: Found | None = None

    def call(self, key: str, *arguments: Any) -> Any:
        fault = self.faults.pop(0) if self.faults else None
        if not isinstance(fault, ValueError):
            self.calls.append(key)
        if fault is not None:
            raise fault
        return {"n": len(self.calls), "arguments": list(arguments)}

    def ask(self, question: Question) -> Asking:
        self.questions.append(question)
        yield from ()
        return self.answers.pop(0)

    def effect(self, unknown: Unknown | str = Unknown.ASK, name: str = "send", **more: Any) -> Effect:
        check = (lambda key: self.found) if unknown == Unknown.CHECK else None
        return Effect("WF-1", "plan", "plan", name, self.call, (1, "a"), Unknown(unknown), check, **more)

    def perform(self, effect: Effect) -> Any:
        asking = perform(effect, lambda: self.journal.agent_state("plan"), self.ask)
        return Driver(self.journal, None).drive(asking)

    def crash(self, effect: Effect) -> None:
        self.faults.append(Crashed())
        with pytest.raises(Crashed):
            self.perform(effect)

    @property
    def ledger(self) -> Mapping[str, Any]:
        return self.journal.agent_state("plan")["effects"]["send"]


@pytest.fixture
def world() -> Iterator[World]:
    with opened() as service:
        yield World(service)


def facts(world: World) -> list[str]:
    """Tell what of an effect is durable."""
    return [event.type for event in world.service.events("WF-1") if event.type.startswith("EFFECT")]


def test_both_ends_are_recorded_and_the_second_attempt_gets_the_first_result(world: World) -> None:
    effect = world.effect()
    first = world.perform(effect)
    assert first == {"n": 1, "arguments": [1, "a"]}
    assert world.perform(effect) == first
    assert world.calls == [effect.key]
    assert facts(world) == [EFFECT_STARTED, EFFECT_DONE]


def test_it_is_recorded_as_started_before_it_is_tried(world: World) -> None:
    seen: list[Any] = []

    def look(key: str) -> None:
        seen.append(facts(world))

    effect = Effect("WF-1", "plan", "plan", "send", look, (), Unknown.ASK, None)
    world.perform(effect)
    assert seen == [[EFFECT_STARTED]]


def test_a_coroutine_is_awaited(world: World) -> None:
    async def send(key: str) -> str:
        await asyncio.sleep(0)
        return key

    effect = Effect("WF-1", "plan", "plan", "send", send, (), Unknown.ASK, None)
    assert world.perform(effect) == effect.key

    async def on_the_loop() -> Any:
        other = Effect("WF-1", "plan", "plan", "other", send, (), Unknown.ASK, None)
        return await Driver(world.journal, asyncio.get_running_loop()).drive_async(
            perform(other, dict, world.ask)
        )

    assert asyncio.run(on_the_loop()) != effect.key


@pytest.mark.parametrize("unknown", Unknown)
def test_a_refusal_is_an_answer_and_the_next_attempt_may_ask_again(world: World, unknown: Unknown) -> None:
    world.faults = [ValueError("no such account")]
    effect = world.effect(unknown)
    with pytest.raises(ValueError, match="no such account"):
        world.perform(effect)
    assert (world.ledger["status"], world.ledger["error"]) == ("failed", "ValueError: no such account")
    assert world.perform(effect)["n"] == 1
    assert world.questions == [] and world.ledger["status"] == "done"


def test_an_effect_that_finds_nothing_more_says_so_to_whoever_called_it() -> None:
    def agent(ctx: Context) -> str:
        try:
            return str(ctx.effect("take", lambda key: next(iter(()))))
        except StopIteration:
            return "nothing more"

    with opened() as service:
        assert run(chain(agent), service).value == "nothing more"
        [done] = [event for event in service.events("WF-1") if event.type == EFFECT_DONE]
        assert done.data["status"] == "failed" and done.data["error"].startswith("StopIteration")


@pytest.mark.parametrize("fault", [TimeoutError(), ConnectionResetError(), Crashed()])
def test_what_may_have_happened_stays_open(world: World, fault: BaseException) -> None:
    world.faults = [fault]
    with pytest.raises(type(fault)):
        world.perform(world.effect())
    assert world.ledger["status"] == "started"


def test_the_application_says_which_errors_leave_it_open(world: World) -> None:
    world.faults = [KeyError("maybe")]
    with pytest.raises(KeyError):
        world.perform(world.effect(unsure=(KeyError,)))
    assert world.ledger["status"] == "started"
    world.faults = [TimeoutError("certainly not")]
    with pytest.raises(TimeoutError):
        world.perform(world.effect("retry", unsure=(KeyError,)))
    assert world.ledger["status"] == "failed"


def test_unknown_and_retry_does_it_again_with_the_same_key(world: World) -> None:
    effect = world.effect("retry")
    world.crash(effect)
    assert world.perform(effect)["n"] == 2
    assert world.calls == [effect.key] * 2


def test_unknown_and_skip_goes_on_without_a_result(world: World) -> None:
    effect = world.effect("skip")
    world.crash(effect)
    assert world.perform(effect) is None and world.perform(effect) is None
    assert (world.ledger["status"], world.ledger["settled_by"]) == ("skipped", "skip")
    assert len(world.calls) == 1


def test_unknown_and_fail_tells_somebody_to_look(world: World) -> None:
    effect = world.effect("fail")
    world.crash(effect)
    for _ in range(2):
        with pytest.raises(EffectUnknownError, match="may have happened") as failed:
            world.perform(effect)
    assert effect.key in (failed.value.hint or "") and len(world.calls) == 1


@pytest.mark.parametrize("result", [None, "receipt"])
def test_unknown_and_check_takes_what_the_other_side_says(world: World, result: Any) -> None:
    effect = world.effect("check")
    world.crash(effect)
    world.found = Found(result)
    assert world.perform(effect) == result
    assert world.perform(effect) == result
    assert len(world.calls) == 1 and world.ledger["settled_by"] == "check"


def test_unknown_and_check_does_it_where_the_other_side_knows_nothing(world: World) -> None:
    effect = world.effect("check")
    world.crash(effect)
    assert world.perform(effect)["n"] == 2


def test_unknown_and_ask_does_it_again_if_granted(world: World) -> None:
    effect = world.effect()
    world.crash(effect)
    world.answers = [Approval(True, "ann")]
    assert world.perform(effect)["n"] == 2
    [question] = world.questions
    assert question.name == "effect:send" and effect.key in question.text
    assert question.data == {"effect": "send", "key": effect.key}


def test_unknown_and_ask_takes_the_answers_value_if_denied(world: World) -> None:
    effect = world.effect()
    world.crash(effect)
    world.answers = [Approval(False, "ann", value="receipt")]
    assert world.perform(effect) == "receipt"
    assert world.perform(effect) == "receipt"
    assert len(world.calls) == 1 and world.ledger["status"] == "done"


def test_who_allowed_one_more_try_is_asked_again_after_the_next_crash(world: World) -> None:
    effect = world.effect()
    world.crash(effect)
    for _ in range(2):
        world.answers = [Approval(True, "ann")]
        world.crash(effect)
    world.answers = [Approval(False, "ann")]
    world.perform(effect)
    names = [question.name for question in world.questions]
    assert len(set(names)) == len(names) == 3 and len(world.calls) == 3


def test_questions_about_two_effects_of_one_name_are_never_the_same(world: World) -> None:
    first, second = world.effect(), world.effect(name="send#2")
    for effect in (first, second):
        world.crash(effect)
    for effect in itertools.islice(itertools.cycle((first, second)), 6):
        world.answers = [Approval(True, "ann")]
        world.crash(effect)
    names = [question.name for question in world.questions]
    assert len(set(names)) == len(names) == 6


def test_a_result_that_cannot_be_stored_is_said_so(world: World) -> None:
    effect = Effect("WF-1", "plan", "plan", "send", lambda key: object(), (), Unknown.ASK, None)
    with pytest.raises(UnsupportedTypeError, match="result"):
        world.perform(effect)
    assert world.ledger["status"] == "started"


def test_the_key_is_that_of_the_step_and_the_name() -> None:
    def key(workflow_id: str, step_id: str, name: str) -> str:
        return Effect(workflow_id, step_id, "agent", name, print, (), Unknown.ASK, None).key

    names = ("W", "V"), ("s", "s#2", "s[0]"), ("send", "send#2")
    keys = [key(*one) for one in itertools.product(*names)]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key("W", "s", "send") and keys[0].startswith("hf-")


happenings = st.lists(st.sampled_from(["fine", "refused", "unsure", "crash"]), max_size=5)


@settings(max_examples=60)
@given(happenings, st.sampled_from(Unknown), st.lists(st.booleans(), min_size=6, max_size=6), st.booleans())
def test_whatever_happens_nothing_is_done_twice_unless_somebody_said_so(
    happenings: list[str], unknown: Unknown, answers: list[bool], is_found: bool
) -> None:
    faults = {"fine": None, "refused": ValueError(), "unsure": TimeoutError(), "crash": Crashed()}
    with opened() as service:
        world = World(service)
        world.answers = [Approval(one, "ann") for one in answers]
        world.found = Found("found") if is_found else None
        effect = world.effect(unknown)
        for happening in happenings:
            world.faults = [faults[happening]]
            try:
                world.perform(effect)
            except (ValueError, TimeoutError, Crashed, EffectUnknownError):
                continue
        allowed = {
            Unknown.RETRY: len(happenings),
            Unknown.CHECK: 1 if is_found else len(happenings),
            Unknown.ASK: 1 + sum(answers[: len(world.questions)]),
        }.get(unknown, 1)
        assert len(world.calls) <= max(allowed, 1)
        assert set(world.calls) <= {effect.key}
        service.append_event("WF-1", "THE_LAST", {})
        assert recovered(service) == world.journal.fields
        assert types(service).count(EFFECT_STARTED) >= len(world.calls)


def test_an_entry_of_a_ledger_without_a_count_was_started_once(world: World) -> None:
    effect = world.effect()
    world.journal.commit(Fact(EFFECT_STARTED, {"name": "send", "key": effect.key}, "plan", "plan"))
    world.answers = [Approval(True, "ann")]
    world.perform(effect)
    assert [question.name for question in world.questions] == ["effect:send"]


@pytest.mark.parametrize("on_fault", ["raise", "degrade"])
def test_an_effect_is_not_tried_while_its_start_is_not_durable(on_fault: str) -> None:
    store = NarrowStore()
    with make_service(store, on_fault=on_fault) as service:
        world = World(service)
        store.is_full = True
        with pytest.raises(CheckpointWriteError, match="'send' was not tried"):
            world.perform(world.effect(Unknown.FAIL))
        assert world.calls == [] and world.ledger["status"] == "failed"
        store.is_full = False
        service.flush()
        # It never happened: the next attempt need not ask anybody.
        assert world.perform(world.effect(Unknown.FAIL))["n"] == 1


def test_a_start_that_others_took_along_is_recorded_before_the_call() -> None:
    with make_service(NarrowStore()) as service:
        world = World(service)
        world.journal.note(Fact(DECISION_EVENT, {"description": LARGE}, "plan", "plan"))
        world.crash(world.effect())
        assert facts(world)[-1] == EFFECT_STARTED


def test_an_effect_whose_answer_is_refused_is_unknown_and_not_done_again() -> None:
    with make_service(NarrowStore()) as service:
        world = World(service)
        effect = replace(world.effect(Unknown.FAIL), call=lambda key, *_: LARGE)
        with pytest.raises(StateTooLargeError):
            world.perform(effect)
        with pytest.raises(EffectUnknownError):
            world.perform(effect)


def test_an_effect_that_was_recorded_for_other_arguments_is_refused(world: World) -> None:
    world.perform(replace(world.effect(), given="ann"))
    assert world.ledger["given"] == "ann"
    with pytest.raises(GraphChangedError, match="the effect 'send' was recorded for other arguments"):
        world.perform(replace(world.effect(), given="bob"))
    assert len(world.calls) == 1
    # As a journal of before, or a key, has it.
    assert world.perform(world.effect())["n"] == 1


def test_an_effect_that_did_not_happen_may_be_tried_with_other_arguments(world: World) -> None:
    world.faults.append(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        world.perform(replace(world.effect(), given="ann"))
    world.perform(replace(world.effect(), given="bob"))
    assert world.ledger["given"] == "bob"


def fork_of(effect: Effect) -> Effect:
    return replace(effect, workflow_id="WF-2")


@pytest.mark.parametrize("unknown", Unknown)
def test_a_fork_keeps_the_key_of_an_effect_that_was_begun_whatever_follows(
    world: World, unknown: Unknown
) -> None:
    effect, asked = world.effect(unknown), list[str]()
    world.crash(effect)
    world.answers = [Approval(True, "ann")]
    fork = fork_of(effect)
    if unknown is Unknown.CHECK:
        fork = replace(fork, check=asked.append)
    if unknown is Unknown.FAIL:
        with pytest.raises(EffectUnknownError) as failed:
            world.perform(fork)
        assert effect.key in (failed.value.hint or "")
    else:
        world.perform(fork)
    assert set(world.calls) == {effect.key} and world.ledger["key"] == effect.key
    assert [(effect.key in one.text, one.data["key"]) for one in world.questions] == (
        [(True, effect.key)] if unknown is Unknown.ASK else []
    )
    assert asked == ([effect.key] if unknown is Unknown.CHECK else [])


def test_a_fork_that_is_refused_asks_again_with_the_key_that_may_have_been_taken(world: World) -> None:
    effect = world.effect("retry")
    world.crash(effect)
    world.faults = [ValueError("come back later")]
    with pytest.raises(ValueError, match="later"):
        world.perform(fork_of(effect))
    world.perform(fork_of(effect))
    assert world.calls == [effect.key] * 2


def test_an_effect_that_nobody_had_begun_has_a_key_of_the_fork(world: World) -> None:
    fork = fork_of(world.effect())
    world.perform(fork)
    assert world.calls == [fork.key] != [world.effect().key]


def test_a_fork_that_asks_for_something_else_after_a_refusal_has_a_key_of_its_own(world: World) -> None:
    effect = replace(world.effect(), given="500")
    world.faults = [ValueError("declined")]
    with pytest.raises(ValueError, match="declined"):
        world.perform(effect)
    assert world.ledger["status"] == "failed" and world.ledger["given"] == "500"
    other = replace(fork_of(effect), given="50")
    world.perform(other)
    assert world.calls == [other.key] and other.key != effect.key


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_comes_of_an_attempt_that_was_given_up_is_heeded_and_stands_for_no_other(
    is_refused: bool,
) -> None:
    """The first attempt is slow; its end comes once the second one has asked, or has begun anew."""
    calls, may_end, ended = list[str](), threading.Event(), threading.Event()

    def pay(key: str) -> str:
        calls.append(key)
        if len(calls) > 1:
            may_end.set()
            assert ended.wait(PATIENCE_SECONDS)
            raise TimeoutError
        assert may_end.wait(PATIENCE_SECONDS)
        if is_refused:
            raise ValueError("too late")
        return "paid"

    def agent(ctx: Context) -> Any:
        try:
            return ctx.effect("pay", pay)
        finally:
            if ctx.attempt == 1:
                ended.set()

    def subscriber(kind: str, data: Mapping[str, Any]) -> None:
        if kind == "approval_requested":
            if not is_refused:
                may_end.set()
                assert ended.wait(PATIENCE_SECONDS)
            service.requests.put("WF-1", "approval", actor="ann", data={"step": "agent", "granted": True})

    workflow = Workflow("paying")
    workflow.agent(timeout_seconds=0.05, retry=Retry(2, delay_seconds=0))(agent)
    with opened() as service:
        options: dict[str, Any] = {"subscribers": (subscriber,), "poll_seconds": 0.01}
        if is_refused:
            with pytest.raises(AgentFailedError):
                run(workflow, service, **options)
            # Nobody knows what came of the second one.
            assert latest(service).agent_states["agent"]["effects"]["pay"]["status"] == "started"
        else:
            assert run(workflow, service, **options).value == "paid"
            assert len(calls) == 1
