"""A reader that does not know a type leaves its values as they are stored; all else is as ever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from holdfast.application.lenient import Unknown
from holdfast.application.resolve import resolve
from holdfast.application.service import CheckpointService
from holdfast.application.sessions.lenient_reading import LenientReader
from holdfast.domain.errors import CheckpointSchemaError
from holdfast.domain.plain import TypeRegistry
from tests.application.services import make_kit, make_service

WHEN = datetime(2026, 2, 1, tzinfo=UTC)


@dataclass
class Offer:
    price: int


def filled(**more: object) -> CheckpointService:
    registry = TypeRegistry()
    registry.register(Offer)
    service = make_service(registry=registry, **more)
    service.create_checkpoint("W", {"offer": Offer(7), "due": WHEN, "text": "x" * 100})
    service.append_event("W", "NOTED", {"offer": Offer(8), "due": WHEN})
    return service


def test_what_is_not_known_stays_as_stored():
    service = filled(blob_threshold_bytes=50)
    kit = make_kit(service._engine.kit.store)
    reader = LenientReader(kit)
    found = resolve(kit.store, "W")
    fields, _ = reader.revived(found, reader.restored(found))
    offer = fields["context"]["offer"]
    assert isinstance(offer, Unknown) and offer.tree["t"] == "Offer"
    assert (fields["context"]["due"], fields["context"]["text"]) == (WHEN, "x" * 100)
    [event] = reader.events("W", 1, None, None)
    assert isinstance(event.data["offer"], Unknown) and event.data["due"] == WHEN


def test_a_state_of_another_version_is_left_to_the_program_that_knows_the_way(monkeypatch):
    service = filled()
    kit = make_kit(service._engine.kit.store)
    monkeypatch.setattr(kit.app, "schema_version", "2.0.0")
    reader = LenientReader(kit)
    found = resolve(kit.store, "W")
    with pytest.raises(CheckpointSchemaError):
        reader.revived(found, reader.restored(found))
