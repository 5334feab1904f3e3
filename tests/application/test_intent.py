"""A commit made again on top of something else says the same."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage
from holdfast.application.intent import EventIntent, make
from holdfast.application.loading import load_base
from holdfast.application.service import CheckpointService
from holdfast.domain.event import Event, decode_event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.ladder import Mode
from holdfast.domain.record import Head
from tests.application.services import make_kit

NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def test_an_event_is_chained_to_whatever_it_is_put_on():
    with CheckpointService(make_kit()) as service:
        event = service.append_event("WF", "TICK", {"n": 1})
        head = Head(0, "GENESIS", 7, "sha256:seven")
        made = make(service._engine.kit, EventIntent(event), Base(head, Lineage()), None, token=3)
        assert isinstance(made.result, Event)
        assert made.result.seq == 8 and made.base.head == made.commit.head
        assert decode_event(made.commit.events[0].data, "sha256:seven").data == {"n": 1}
        assert made.commit.audit == () and made.commit.token == 3


def test_an_event_changes_nothing_of_a_base_but_where_it_stands():
    with CheckpointService(make_kit()) as service:
        given = {field.name: object() for field in fields(Base)}
        base = Base(**given | {"head": Head(), "lineage": Lineage()})
        event = Event(1, NOW, "TICK", "WF", "a", "s", "p", 4, {"usd": 1}, {"n": 1}, mode=Mode.FULL)
        made = make(service._engine.kit, EventIntent(event), base, None)
        assert made.base == replace(base, head=made.commit.head)
        assert made.result == replace(event, hash=made.commit.events[0].hash)
        twin = replace(event, erased=True, durable=False)
        again = make(service._engine.kit, EventIntent(twin), base, None).result
        assert isinstance(again, Event) and again.erased and not again.durable


def test_a_checkpoint_keeps_its_uuid_and_its_time_wherever_it_is_put():
    kit = make_kit()
    with CheckpointService(kit) as service:
        engine = service._engine
        service.create_checkpoint("WF", {"n": 0})
        ticket = engine.writer.create(engine.checkpoint_command("WF", {"n": 1}, {}))
        intent, told = ticket.intent, ticket.result
        promised = replace(intent.subject, uuid=told.uuid, taken_at=told.timestamp)
        service.flush()
        service.create_checkpoint("WF", {"n": 2})
        base = load_base(kit, "WF").base
        made = make(kit, replace(intent, subject=promised), base, None)
        assert isinstance(made.result, CheckpointID)
        assert (made.result.sequence, told.sequence) == (4, 2)
        assert (made.result.uuid, made.result.timestamp) == (told.uuid, told.timestamp)


def test_a_state_that_says_nothing_new_is_written_all_the_same():
    kit = make_kit()
    with CheckpointService(kit) as service:
        engine = service._engine
        ticket = engine.writer.create(engine.checkpoint_command("WF", {"n": 1}, {}))
        intent = ticket.intent
        service.flush()
        made = make(kit, intent, load_base(kit, "WF").base, None)
        assert isinstance(made.result, CheckpointID)
        assert made.result.sequence == 2 and made.commit.record is not None
