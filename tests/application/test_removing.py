"""What removes checkpoints heeds holds, and counts what went."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.application.draft import Drafting
from holdfast.application.resolve import living
from holdfast.application.retain import plan_delete
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointConflictError, LegalHoldError
from holdfast.domain.record import KeyframeEntry, Removal
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


def delete(service: CheckpointService) -> None:
    assert service.delete("W@1")


def erase(service: CheckpointService) -> None:
    service.erasure.workflow("W", reason="request 31")


def racing(service: CheckpointService, other: CheckpointService, call: int) -> None:
    """Let somebody else go on with the workflow between a removal's event and what it does."""
    store, calls = service._engine.kit.store, count(1)
    remove = store.remove

    def overtaken(workflow_id: str, removal: Removal) -> int:
        if next(calls) == call:
            with suppress(CheckpointConflictError):
                other.create_checkpoint("W", {"n": 2, "text": "y" * 500})
            other.create_checkpoint("W", {"n": 3, "text": "y" * 500})
        return remove(workflow_id, removal)

    store.remove = overtaken  # type: ignore[method-assign]


@pytest.mark.parametrize("removing", [delete, erase])
@pytest.mark.parametrize("call", [1, 2])
def test_what_others_add_while_the_last_checkpoint_goes_is_kept_whole(
    removing: Callable[[CheckpointService], None], call: int, tmp_path: Path
) -> None:
    with (
        bootstrap.open(tmp_path / "store", retain=False, background=False) as service,
        bootstrap.open(tmp_path / "store", retain=False, background=False) as other,
    ):
        other.create_checkpoint("W", {"n": 1, "text": "y" * 500})
        racing(service, other, call)
        with suppress(CheckpointConflictError):
            removing(service)
        made = other.list_checkpoints("W")
        assert made and other.restore_checkpoint(made[0].id).context["n"] == 3
        assert all(other.validate_checkpoint(one.id).valid for one in made)
        assert not list(other._engine.kit.store.check())


def test_what_others_wrote_since_it_was_planned_makes_a_removal_a_conflict(tmp_path: Path) -> None:
    with bootstrap.open(tmp_path / "store", retain=False) as other:
        for step in range(9):
            other.create_checkpoint("W", {"n": step})
        with bootstrap.open(tmp_path / "store", retain=False) as service:
            planned = service._engine.kit.store.keyframes

            def pinned_meanwhile(workflow_id: str) -> list[KeyframeEntry]:
                other.pin("W@2")
                return planned(workflow_id)

            service._engine.kit.store.keyframes = pinned_meanwhile  # type: ignore[method-assign]
            plan = partial(plan_delete, service._engine.kit, "W", 2)
            with pytest.raises(CheckpointConflictError):
                service._engine.writer.remove("W", plan)
            assert other.restore_checkpoint("W@2").context == {"n": 1}


@pytest.mark.parametrize("removing", [delete, erase])
def test_what_follows_on_nothing_but_tombstones_needs_no_listing(
    removing: Callable[[CheckpointService], None], tmp_path: Path
) -> None:
    with bootstrap.open(tmp_path / "store", retain=False) as service:
        service.create_checkpoint("W", {"n": 1})
        removing(service)
        for step in (2, 3):
            service.create_checkpoint("W", {"n": step})
    [manifest] = (tmp_path / "store" / "checkpoints").rglob("manifest.jsonl")
    manifest.unlink()
    with bootstrap.open(tmp_path / "store", retain=False) as service:
        for step in (2, 3):
            assert service.restore_checkpoint(f"W@{step}").context == {"n": step}
            assert service.validate_checkpoint(f"W@{step}").problems == ()
        assert service.create_checkpoint("W", {"n": 4}).sequence == 4


def test_nor_does_what_was_written_before_whole_records_told_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Drafting._names
    monkeypatch.setattr(Drafting, "_names", lambda self, *, is_whole: names(self, is_whole=False))
    with bootstrap.open(tmp_path / "store", retain=False) as service:
        service.create_checkpoint("W", {"n": 1})
        delete(service)
        for step in (2, 3):
            service.create_checkpoint("W", {"n": step})
    [manifest] = (tmp_path / "store" / "checkpoints").rglob("manifest.jsonl")
    manifest.unlink()
    with bootstrap.open(tmp_path / "store", retain=False) as service:
        assert [service.restore_checkpoint(f"W@{step}").context["n"] for step in (2, 3)] == [2, 3]
