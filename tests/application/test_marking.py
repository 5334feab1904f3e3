"""How the work of a checkpoint ended is recorded, also of one that waits for the disk first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit
from tests.application.shelters import Gated, gated_kit

W = "WF"


class Lasting(MemoryStore):
    """Can be looked at when the service that used it is closed."""

    def close(self) -> None:
        """Stay open."""


def gated() -> tuple[Gated, MemoryStore]:
    store = Lasting()
    return Gated(gated_kit(store)), store


def others(gate: Gated, store: MemoryStore) -> None:
    """Let another process be faster with a checkpoint."""
    CheckpointService(replace(make_kit(store), ids=gate.kit.ids)).create_checkpoint(W, {"n": "other"})


def standing(store: MemoryStore) -> list[str]:
    """Tell how the checkpoints of the workflow stand, the oldest first."""
    return [entry.status for entry in store.entries(W)]


def waiting_and_marked(gate: Gated, error: str | None = None) -> None:
    """Let a second checkpoint wait for the store, and say how it ended."""
    gate.service.create_checkpoint(W, {"n": 1})
    gate.gate.takes = "nothing"
    made = gate.service.create_checkpoint(W, {"n": 2})
    gate.service.recording.mark(made, error)


@pytest.mark.parametrize(("error", "status"), [(None, "completed"), ("it broke", "failed")])
def test_how_a_checkpoint_ended_that_is_written_at_the_close_is_recorded_with_it(
    error: str | None, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate, store = gated()
    waiting_and_marked(gate, error)
    # That it waits is told; that there is no such checkpoint would lead astray.
    assert "stands is not recorded" not in caplog.text
    gate.gate.takes = "everything"
    gate.service.close()
    assert standing(store) == ["active", status] and "stands is not recorded" not in caplog.text


def test_in_a_service_that_stays_open_it_is_recorded_once_the_store_has_it() -> None:
    gate, store = gated()
    waiting_and_marked(gate)
    gate.gate.takes = "everything"
    gate.service.flush()
    assert standing(store) == ["active", "completed"]
    gate.service.close()
    assert sum(b'"CHECKPOINT_STATUS"' in line for line in store.events(W)) == 1


def test_one_that_was_written_under_another_number_is_found() -> None:
    gate, store = gated()
    waiting_and_marked(gate)
    others(gate, store)
    gate.gate.takes = "everything"
    gate.service.close()
    assert standing(store) == ["active", "active", "completed"]


def test_of_one_that_was_refused_nothing_is_recorded() -> None:
    gate, store = gated()
    gate.service.create_checkpoint(W, {"n": 1})
    gate.gate.takes = "nothing"
    made = gate.service.create_checkpoint(W, {"n": 2}, expected_sequence=1)
    gate.service.recording.mark(made)
    others(gate, store)
    gate.gate.takes = "everything"
    gate.service.close()
    assert standing(store) == ["active", "active"]


def test_one_that_is_never_written_is_not_marked(caplog: pytest.LogCaptureFixture) -> None:
    gate, store = gated()
    waiting_and_marked(gate)
    gate.service.close()
    assert standing(store) == ["active"] and "stands is not recorded" not in caplog.text


def test_a_fault_of_the_store_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    gate, _ = gated()
    made = gate.service.create_checkpoint(W, {"n": 1})
    gate.service.recording.mark(made)
    gate.service.recording.mark(made)
    assert f"how {made} stands is not recorded" in caplog.text
    gate.service.close()
