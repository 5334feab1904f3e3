"""Paused runs: kept, answered and given out once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import partial

import pytest
from agents import Runner, RunState

import holdfast
from holdfast.domain.errors import (
    InvalidStateError,
)
from holdfast.integrations.openai_agents import AskedCall, HoldfastRunVault, HoldfastSession
from tests.integrations.openai_agents_scene import KEY, PAID, STORES, answer, go_on, keep, paused, payer, run

WORKFLOW = "agents-run:r"


@pytest.fixture(params=STORES)
def url(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.param


@pytest.fixture
def service(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store") as opened:
        yield opened


@pytest.fixture
def vault(service):
    return HoldfastRunVault(service, key=KEY)


@pytest.fixture(autouse=True)
def nothing_paid():
    PAID.clear()


def test_a_run_is_kept_answered_taken_and_completed(url):
    async def work():
        agent = payer()
        async with HoldfastRunVault(url, key=KEY) as vault:
            assert await vault.look("r") is None
            kept = await vault.keep("r", await paused(70))
            call = AskedCall("call-1", "pay", '{"to":"Ann","amount":70}', "payer")
            assert (kept.status, kept.calls) == ("waiting", (call,))
            assert await vault.look("r") == kept
            answered = await vault.answer("r", "call-1", granted=True, by="bob", reason="invoice 17")
            assert (answered.calls[0].granted, answered.calls[0].by) == (True, "bob")
            state = await vault.take("r", agent)
            taken = await vault.look("r")
            assert taken is not None and taken.status == "taken"
            result = await Runner.run(agent, state)
            await vault.keep("r", result.to_state())
            over = await vault.look("r")
            assert over is not None
            assert (over.status, over.calls, over.state) == ("completed", (), None)
        assert (result.final_output, PAID) == ("told: 70 to Ann", ["70 to Ann"])

    run(work)


def test_the_state_comes_back_exactly_as_it_was_put_in(vault):
    async def work():
        state = await paused(70, 80)
        await vault.keep("r", state)
        return state.to_json(), (await vault.take("r", payer())).to_json()

    put_in, came_out = run(work)
    assert came_out == put_in


def test_each_call_has_an_answer_of_its_own_and_one_without_stays_open(vault):
    keep(vault, 70, 80, 90)
    answer(vault, "call-1")
    answer(vault, "call-2", granted=False)

    async def work():
        agent = payer()
        result = await Runner.run(agent, await vault.take("r", agent))
        kept = await vault.keep("r", result.to_state())
        assert [call.call_id for call in kept.calls] == ["call-3"]
        await vault.answer("r", "call-3", granted=False, by="bob", reason="too much")
        return (await Runner.run(agent, await vault.take("r", agent))).final_output

    assert run(work) == "told: too much"
    assert PAID == ["70 to Ann"]


def test_the_trail_tells_what_was_asked_and_who_answered_why(service, vault):
    keep(vault, 70, 80)
    answer(vault, "call-1")
    answer(vault, "call-2", granted=False)
    kinds = ["APPROVAL_REQUESTED", "APPROVAL_GRANTED", "APPROVAL_DENIED"]
    told = service.audit.query_events(workflow=WORKFLOW, event_types=kinds)
    assert [(one.type, one.data["call_id"], one.data["by"], one.data["reason"]) for one in told] == [
        ("APPROVAL_REQUESTED", "call-1", None, None),
        ("APPROVAL_REQUESTED", "call-2", None, None),
        ("APPROVAL_GRANTED", "call-1", "bob", "invoice 17"),
        ("APPROVAL_DENIED", "call-2", "bob", "invoice 17"),
    ]
    assert json.loads(told[0].data["arguments"]) == {"to": "Ann", "amount": 70}
    assert service.audit.verify(payloads=True).fault_count == 0


def test_a_run_is_given_out_once_unless_somebody_says_again(vault):
    keep(vault)
    answer(vault)
    run(lambda: vault.take("r", payer()))
    with pytest.raises(holdfast.CheckpointConflictError, match="again=True"):
        run(lambda: vault.take("r", payer()))
    assert go_on(vault, again=True) == "told: 70 to Ann"
    with pytest.raises(InvalidStateError, match="completed"):
        run(lambda: vault.take("r", payer(), again=True))
    assert PAID == ["70 to Ann"]


def test_of_eight_that_take_a_run_at_once_one_gets_it(url):
    async def work(service):
        await HoldfastRunVault(service, key=KEY).keep("r", await paused(70))
        vaults = [HoldfastRunVault(service, key=KEY) for _ in range(8)]
        return await asyncio.gather(*(one.take("r", payer()) for one in vaults), return_exceptions=True)

    with holdfast.open(url) as service:
        found = run(lambda: work(service))
    assert sum(isinstance(one, RunState) for one in found) == 1
    assert sum(isinstance(one, holdfast.CheckpointConflictError) for one in found) == 7


def test_eight_runs_at_once_stay_apart(url):
    async def one_run(vault, number):
        agent = payer()
        await vault.keep(f"r{number}", await paused(number))
        await vault.answer(f"r{number}", "call-1", granted=True, by="bob", reason="ok")
        result = await Runner.run(agent, await vault.take(f"r{number}", agent))
        await vault.keep(f"r{number}", result.to_state())
        return result.final_output

    async def work(vault):
        return await asyncio.gather(*(one_run(vault, number) for number in range(8)))

    with holdfast.open(url) as service:
        told = run(lambda: work(HoldfastRunVault(service, key=KEY)))
    assert told == [f"told: {number} to Ann" for number in range(8)]


def test_what_another_keeps_or_an_earlier_taker_keeps_late_is_a_conflict(service, vault):
    keep(vault)
    with pytest.raises(holdfast.CheckpointConflictError, match="in the vault"):
        keep(HoldfastRunVault(service, key=KEY))
    run(lambda: vault.take("r", payer()))
    run(lambda: HoldfastRunVault(service, key=KEY).take("r", payer(), again=True))
    with pytest.raises(holdfast.CheckpointConflictError, match="in the vault"):
        keep(vault)


@pytest.mark.parametrize("call_id", ["call-1", "call-9"])
def test_an_answer_that_nobody_waits_for_is_refused(vault, call_id):
    keep(vault)
    answer(vault)
    with pytest.raises(InvalidStateError, match="waits for no answer"):
        answer(vault, call_id, granted=False)
    run(lambda: vault.take("r", payer()))
    with pytest.raises(InvalidStateError, match="is taken"):
        answer(vault, call_id)


def test_a_run_that_was_never_kept_is_told(vault):
    with pytest.raises(InvalidStateError, match="never kept"):
        run(lambda: vault.take("r", payer()))


def test_calls_that_cannot_be_told_apart_are_not_kept(vault, monkeypatch):
    async def work():
        state = await paused(70, 80)
        first = state.get_interruptions()[0]
        monkeypatch.setattr(state, "get_interruptions", lambda: [first, first])
        await vault.keep("r", state)

    with pytest.raises(InvalidStateError, match="no ids of their own"):
        run(work)


@dataclass
class Purse:
    left: int


def test_a_context_of_the_application_comes_back_by_its_own_functions(vault):
    async def work():
        state = await paused(70, context=Purse(5))
        await vault.keep("r", state, context_serializer=lambda purse: {"left": purse.left})
        taken = await vault.take("r", payer(), context_deserializer=lambda told: Purse(told["left"]))
        return taken._context.context

    assert run(work) == Purse(5)


def test_a_run_taken_again_finds_its_conversation_as_it_was(service, vault):
    session = HoldfastSession("s", service)

    async def attempt(*, again):
        agent = payer()
        state = await vault.take("r", agent, again=again, session=session)
        await Runner.run(agent, state, session=session)
        return await session.get_items()

    async def begin():
        await vault.keep("r", await paused(70, session=session), session=session)
        await vault.answer("r", "call-1", granted=True, by="bob", reason="ok")

    run(begin)
    first = run(lambda: attempt(again=False))
    assert len(first) == 4
    assert run(lambda: attempt(again=True)) == first


def test_secrets_of_a_run_come_back_and_are_not_on_the_disk(tmp_path, service, vault):
    async def work():
        secret = "DB_PASSWORD=tr0ub4dor"
        await vault.keep("r", await paused(70, to=secret))
        await vault.answer("r", "call-1", granted=True, by="bob", reason="ok")
        agent = payer()
        await Runner.run(agent, await vault.take("r", agent))

    run(work)
    assert PAID == ["70 to DB_PASSWORD=tr0ub4dor"]
    service.flush()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"tr0ub4dor" not in stored


def test_only_a_run_that_was_taken_is_there_to_be_recovered(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store", stale_seconds=0) as service:
        vault = HoldfastRunVault(service, key=KEY)
        run(lambda: HoldfastSession("s", service).add_items([{"role": "user", "content": "a"}]))
        keep(vault)
        assert service.incomplete_workflows() == []
        run(lambda: vault.take("r", payer()))
        assert [one.workflow_id for one in service.incomplete_workflows()] == [WORKFLOW]
        service.recover_workflow(WORKFLOW)
        assert run(lambda: vault.look("r")).status == "taken"


def test_hostile_names_of_runs_work_and_stay_apart(vault):
    names = ["", "..", "a\ud800", "a\x00", "a" * 400, "a@latest", "%"]
    for name in names:
        keep(vault, run_id=name)
        answer(vault, run_id=name)
    assert all(run(partial(vault.look, name)).sequence == 2 for name in names)
