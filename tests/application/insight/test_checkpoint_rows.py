from __future__ import annotations

from dataclasses import asdict

from holdfast.application.insight.checkpoint_rows import checkpoint_row
from tests.application.services import make_service


def test_a_row_tells_what_a_listing_knows() -> None:
    service = make_service()
    for number in range(2):
        service.create_checkpoint("W", {"n": number}, agent_id="a", stage_id="s", session_id="S")
    store = service._engine.kit.store
    first, second = (checkpoint_row("W", entry) for entry in store.entries("W"))
    assert (first.id, first.parent, second.id, second.parent) == ("W@1", None, "W@2", "W@1")
    told = asdict(second)
    assert (told["agent_id"], told["stage_id"], told["session_id"]) == ("a", "s", "S")
    assert told["size_bytes"] > 0 and told["stored_bytes"] > 0 and told["checksum"].startswith("sha256:")
