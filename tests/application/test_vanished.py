"""What the journal says was made, and is stored nowhere, is missed and not forgotten."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.application.history import look, read_events
from holdfast.application.vanished import told_by, vanished
from holdfast.domain.errors import CheckpointCorruptError, NoValidCheckpointError
from holdfast.domain.event import Event
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.places import Place


def event(kind: str, cp_seq: int | None, **data: str) -> Event:
    return Event(1, datetime(2026, 1, 1, tzinfo=UTC), kind, "W", data=data, cp_seq=cp_seq)


def filled(folder: Path, count: int = 6, **settings: Any) -> Place:
    place = Place("file", folder, settings)
    with place.open() as service:
        for number in range(1, count + 1):
            service.create_checkpoint("W", {"number": number})
        service.record_decision("W", "go on")
    return place


def own_folder(place: Place) -> Path:
    [found] = (place.folder / "store" / "checkpoints").glob("*/w*")
    return found


def cut(place: Place, lines: int) -> None:
    """Take the last records off their file, and the listing that knew of them."""
    [path] = own_folder(place).glob("*.deltas.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
    (own_folder(place) / "manifest.jsonl").unlink()


def test_the_newest_that_was_made_is_remembered_until_a_recovery_told_of_it() -> None:
    assert told_by(event("CHECKPOINT_CREATED", 4), 3) == 4
    assert told_by(event("CHECKPOINT_CREATED", 2), 3) == 3
    assert told_by(event("CHECKPOINT_STATUS", 9), 3) == 3
    assert told_by(event("WORKFLOW_RECOVERED", 2), 3) == 2
    assert told_by(event("WORKFLOW_RECOVERED", None), 3) == 0
    assert told_by(event("WORKFLOW_RECOVERED", 2, mode="point_in_time"), 3) == 3


@pytest.mark.parametrize("mode", ["latest", "full", "point_in_time"])
def test_an_undisturbed_recovery_does_not_hide_what_is_lost_later(fast_folder: Path, mode: str) -> None:
    place = filled(fast_folder)
    with place.open() as service:
        target = 2 if mode == "point_in_time" else None
        service.recover_workflow("W", mode, target, checkpoint=False)
    cut(place, 1)
    with place.open() as service:
        with pytest.raises(CheckpointCorruptError, match="tell of checkpoint 6"):
            list(read_events(service._engine.kit.store, look(service._engine.kit.store, "W")))
        result = service.recover_workflow("W")
        assert result.passed_over == (6,) and "checkpoints up to 6" in result.warnings[0]
        assert service.create_checkpoint("W", {"number": 7}).sequence > 6
    with place.open() as service:
        assert service.recover_workflow("W").passed_over == ()


@pytest.mark.parametrize("mode", ["latest", "point_in_time"])
def test_nor_does_one_whose_event_is_sealed(
    fast_folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("TEST_KEY", "00" * 32)
    place = filled(fast_folder, encrypt=True, encryption_key="env:TEST_KEY")
    with place.open() as service:
        target = 2 if mode == "point_in_time" else None
        service.recover_workflow("W", mode, target, checkpoint=False)
    cut(place, 1)
    with place.open() as service:
        assert service.recover_workflow("W").passed_over == (6,)
        assert service.create_checkpoint("W", {"number": 7}).sequence > 6
    with place.open() as service:
        assert service.recover_workflow("W").passed_over == ()


def test_records_that_are_cut_off_with_their_listing_are_passed_over_and_named(fast_folder: Path) -> None:
    place = filled(fast_folder)
    cut(place, 2)
    with place.open() as service:
        store = service._engine.kit.store
        assert vanished(store, "W", 0) == (6, 5)
        with pytest.raises(CheckpointCorruptError, match=r"tell of checkpoint 6, and the last .* is 4"):
            list(read_events(store, look(store, "W")))
        result = service.recover_workflow("W")
        assert result.state is not None and result.state.context == {"number": 4}
        assert result.passed_over == (6, 5) and result.checkpoint_made is not None
        assert any("5 and later are stored nowhere" in warning for warning in result.warnings)
        # From here on the gap is in the journal, and the workflow is whole again.
        assert list(read_events(store, look(store, "W")))
        assert service.recover_workflow("W").passed_over == ()


def test_no_older_one_stands_in_for_them_where_that_is_forbidden(fast_folder: Path) -> None:
    place = filled(fast_folder)
    cut(place, 1)
    with (
        place.open(fallback_to_previous=False) as service,
        pytest.raises(CheckpointCorruptError, match="checkpoints up to 6"),
    ):
        service.recover_workflow("W")


def test_one_that_is_asked_for_by_its_number_is_answered(fast_folder: Path) -> None:
    place = filled(fast_folder)
    cut(place, 1)
    with place.open() as service:
        result = service.recover_workflow("W", "point_in_time", target_sequence=3)
        assert result.passed_over == () and result.checkpoint_used is not None


def test_a_workflow_whose_folder_is_gone_is_not_taken_for_a_new_one(fast_folder: Path) -> None:
    place = filled(fast_folder)
    shutil.rmtree(own_folder(place))
    with place.open() as service:
        with pytest.raises(NoValidCheckpointError, match="6 checkpoints were made, and nothing") as refusal:
            service.recover_workflow("W")
        assert "--fresh" in refusal.value.hint
        assert service.plan_recovery("W").refusals
    with place.open(on_no_valid="fresh") as service:
        result = service.recover_workflow("W")
        assert result.state is not None and len(result.state.decisions) == 1
        assert any("fresh start" in warning for warning in result.warnings)


def test_damaged_events_are_left_to_those_who_replay_them(fast_folder: Path) -> None:
    place = filled(fast_folder)
    place.damage_event("W", 3)
    with place.open() as service:
        assert vanished(service._engine.kit.store, "W", 0) == ()
