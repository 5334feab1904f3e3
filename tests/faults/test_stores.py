"""The ladder over every store: the same receipts, the same order, the same bytes afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import bootstrap
from holdfast.domain.ladder import Climb, Mode
from tests.adapters.postgres import server
from tests.application.shelters import QUICK, GatedStore, waiter

WAIT_SECONDS = 60


@pytest.fixture(params=["memory", "file", "sqlite", "postgres"])
def service(request, tmp_path):
    urls = {"memory": "memory:", "file": f"{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/store.db"}
    url = urls.get(request.param) or server.url()
    with bootstrap.open(url, retain=False, background=False, on_fault="degrade") as opened:
        yield opened


def gate_of(service):
    """Put a gate before the store of a service."""
    engine = service._engine
    gate = GatedStore(engine.kit.store)
    engine.kit = replace(engine.kit, store=gate, faults=replace(engine.kit.faults, climb=QUICK))
    engine.begin()
    return gate


def test_what_waited_is_written_in_order_under_the_numbers_that_were_told(service):
    gate = gate_of(service)
    service.create_checkpoint("WF", {"n": 1})
    gate.takes = "events"
    told = [service.create_checkpoint("WF", {"n": 2, "text": "x" * 9000})]
    assert service.append_event("WF", "FACT", {"n": 2}).durable
    gate.takes = "nothing"
    told.append(service.create_checkpoint("WF", {"n": 3, "text": "y" * 9000}))
    assert not service.append_event("WF", "FACT", {"n": 3}).durable
    assert service.health().mode is Mode.MEMORY_ONLY
    gate.takes = "everything"
    for _ in range(3):
        service.flush()
    assert service.health().mode is Mode.FULL
    assert [made.durable for made in told] == [False, False]
    for number, made in enumerate(told, start=2):
        assert service.restore_checkpoint(str(made)).context["n"] == number
        assert service.validate_checkpoint(str(made)).problems == ()
    assert [event.data["n"] for event in service.events("WF", type="FACT")] == [2, 3]
    assert service.audit.verify(payloads=True).faults == ()


def test_a_server_that_has_no_room_for_states_still_takes_events():
    url = server.url()
    told, put = waiter()
    with bootstrap.open(url, retain=False, background=False, on_fault="degrade") as service:
        engine = service._engine
        faults = replace(engine.kit.faults, climb=Climb(1, 0.01, 0.05))
        engine.kit = replace(engine.kit, faults=faults)
        engine.begin()
        service.on_mode_change(put)
        service.create_checkpoint("WF", {"n": 1})
        with server.connected(url) as connection:
            connection.execute(
                "create function full_disk() returns trigger language plpgsql as "
                "$$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$"
            )
            connection.execute(
                "create trigger full_disk before insert on checkpoints execute function full_disk()"
            )
            made = service.create_checkpoint("WF", {"n": 2})
            event = service.append_event("WF", "FACT")
            assert (made.durable, event.durable, event.mode) == (False, True, Mode.EVENT_ONLY)
            connection.execute("drop trigger full_disk on checkpoints")
        assert told.get(timeout=WAIT_SECONDS).after is Mode.EVENT_ONLY
        assert told.get(timeout=WAIT_SECONDS).after is Mode.FULL
        assert service.restore_checkpoint(str(made)).context == {"n": 2}
