"""The second store gives back what it was given, and holds no plaintext of an encrypted one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from holdfast.application.faults.spare import Spare
from holdfast.application.faults.waiting import Spilled, hold
from holdfast.application.intent import EventIntent, StateIntent
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.ladder import Mode
from holdfast.domain.record import Transition
from holdfast.testing import FixedClock
from tests.application.services import make_kit
from tests.application.shelters import QUICK, GatedStore

NOW = FixedClock().now()


@pytest.fixture
def spare():
    opened = Spare(make_kit)
    yield opened
    opened.close()


def held_of(service, ticket):
    return hold(ticket, ticket.intent, NOW, None)


def test_states_and_events_come_back_as_they_were(spare):
    with CheckpointService(make_kit()) as service:
        writer, engine = service._engine.writer, service._engine
        state = writer.create(engine.checkpoint_command("WF", {"n": 1, "items": [1, 2]}, {}))
        places = [spare.place]
        held = held_of(service, state)
        kept = spare.save(held)
        back = spare.load("WF", kept)
        assert isinstance(back, StateIntent)
        assert back.snapshot.plain(service._engine.kit.packer)["context"] == {"n": 1, "items": [1, 2]}
        assert back.subject.uuid == state.result.uuid
        assert [*places, spare.place] == [None, "memory:"]
        event = service.append_event("WF", "TICK", {"n": 2}, agent_id="a")
        held.intent = EventIntent(event, (Transition(1, "failed"),), is_told=False)
        again = spare.load("WF", spare.save(held))
        assert isinstance(again, EventIntent)
        assert (again.event.type, again.event.data, again.event.agent) == ("TICK", {"n": 2}, "a")
        assert again.transitions == (Transition(1, "failed"),) and not again.is_told


def test_where_there_is_none_that_is_said():
    with CheckpointService(make_kit()) as service:
        engine = service._engine
        ticket = engine.writer.create(engine.checkpoint_command("WF", {"n": 1}, {}))
        with pytest.raises(CheckpointWriteError, match="no second store"):
            Spare(None).save(held_of(service, ticket))


def test_the_second_store_of_an_encrypted_one_is_encrypted_with_the_same_key(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARE_KEY", "11" * 32)
    secret = "the plan of the harbour"
    settings = {
        "encryption_key": "env:SPARE_KEY",
        "on_fault": "degrade",
        "memory_budget_bytes": 10_000,
        "emergency_path": str(tmp_path / "emergency"),
        "retain": False,
    }
    service = holdfast.open(f"{tmp_path}/store", encrypt=True, **settings)
    engine = service._engine
    gate = GatedStore(engine.kit.store)
    engine.kit = replace(engine.kit, store=gate, faults=replace(engine.kit.faults, climb=QUICK))
    engine.begin()
    service.create_checkpoint("WF", {"n": 0})
    gate.takes = "nothing"
    for n in range(1, 4):
        assert not service.create_checkpoint("WF", {"n": n, "plan": f"{secret} {n} " * 200}).durable
    service.append_event("WF", "TICK", {"plan": secret})
    place = service.health().emergency_place
    assert service.health().mode is Mode.EMERGENCY and place is not None
    held = [path.read_bytes() for path in (tmp_path / "emergency").rglob("*") if path.is_file()]
    assert held and not any(secret.encode() in data for data in held)
    with holdfast.open(place.removeprefix("file:"), create=False, **settings) as saved:
        latest = saved.load_latest("WF")
        assert latest is not None and latest.context["n"] == 3
    gate.takes = "everything"
    for _ in range(4):
        service.flush()
    assert service.health().mode is Mode.FULL
    latest = service.load_latest("WF")
    assert latest is not None and latest.context["n"] == 3
    assert [event.data["plan"] for event in service.events("WF", type="TICK")] == [secret]
    service.close()
    assert not any(
        secret.encode() in path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()
    )


def test_little_is_remembered_of_the_states_of_many_workflows(spare):
    with CheckpointService(make_kit()) as service:
        engine = service._engine
        for n in range(16):
            text = str(n % 10) * 500_000
            ticket = engine.writer.create(engine.checkpoint_command(f"WF-{n}", {"text": text}, {}))
            kept = spare.save(held_of(service, ticket))
            assert kept.bytes >= 500_000
        assert 0 < len(spare._bases.recent(16)) < 10
        back = spare.load("WF-0", Spilled(1, kept.subject))
        assert back.snapshot.plain(engine.kit.packer)["context"]["text"] == "0" * 500_000
