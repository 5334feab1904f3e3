"""What removes checkpoints heeds holds, and counts what went."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.resolve import living
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointConflictError, LegalHoldError
from holdfast.domain.retention import RetentionPolicy
from tests.application.services import make_kit

ONE = RetentionPolicy(retain_count=1, retain_days=0)


@pytest.fixture
def service() -> CheckpointService:
    made = CheckpointService(make_kit(retain=False))
    for step in range(30):
        made.create_checkpoint("W", {"n": step})
    return made


def kept(service: CheckpointService) -> list[int]:
    return sorted(entry.sequence for entry in living(service._engine.kit.store, "W"))


def test_pruning_keeps_what_the_policy_keeps(service: CheckpointService) -> None:
    planned = service._engine.removing.prune("W", ONE, dry_run=True)
    assert len(kept(service)) == 30 and planned.dry_run
    assert int(service._engine.removing.prune("W", ONE)) == int(planned) > 0
    assert kept(service)[-1] == 30 and len(kept(service)) == 30 - int(planned)


def test_only_what_is_named_stays(service: CheckpointService) -> None:
    service._engine.removing.keep_only("W", [5, 10], through=28)
    assert kept(service) == [5, 10, 29, 30]
    assert service.restore_checkpoint("W@5").context == {"n": 4}


def test_what_was_shown_goes_and_nothing_that_came_since(service: CheckpointService) -> None:
    shown = service._engine.removing.prune("W", ONE, dry_run=True).removed
    for step in range(5):
        service.create_checkpoint("W", {"later": step})
    done = service._engine.removing.prune_shown("W", ONE, shown)
    assert done.removed == shown
    assert kept(service) == sorted({*range(1, 36)} - {*shown})
    assert all(service.validate_checkpoint(f"W@{sequence}").valid for sequence in kept(service))


def test_what_was_shown_and_may_not_go_any_more_stays_with_the_rest(service: CheckpointService) -> None:
    shown = service._engine.removing.prune("W", ONE, dry_run=True).removed
    service.pin(f"W@{shown[0]}")
    with pytest.raises(CheckpointConflictError, match="not what was shown"):
        service._engine.removing.prune_shown("W", ONE, shown)
    assert len(kept(service)) == 30


def test_one_is_deleted_once(service: CheckpointService) -> None:
    removing = service._engine.removing
    assert (removing.delete("W@3"), removing.delete("W@3")) == (True, False)
    assert 3 not in kept(service)


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("prune", ("W", ONE)),
        ("prune_shown", ("W", ONE, [3])),
        ("keep_only", ("W", [30])),
        ("delete", ("W@3",)),
    ],
)
def test_a_hold_stands_against_all_of_it(
    service: CheckpointService, call: str, given: tuple[Any, ...]
) -> None:
    service.holds.place(workflow_id="W", reason="a lawsuit")
    with pytest.raises(LegalHoldError):
        getattr(service._engine.removing, call)(*given)
    assert len(kept(service)) == 30
