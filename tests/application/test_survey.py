"""A survey names every damaged piece of a workflow, and what can still be reached."""

from __future__ import annotations

import pytest

from holdfast.application.survey import damaged_sequences, survey
from holdfast.domain.recovery_plan import Damage, Piece
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.conftest import place as place
from tests.recovery.places import Place

LONG = "x" * 100_000


def fill(place: Place, count: int = 6) -> None:
    with place.open() as service:
        for number in range(1, count + 1):
            service.create_checkpoint("W", {"n": number})


def seen(place: Place) -> tuple[list[tuple[Piece, int]], list[int]]:
    with place.open() as service:
        found = survey(service._engine.kit.store, "W")
    return [(one.piece, one.sequence) for one in found.damage], [entry.sequence for entry in found.reachable]


def test_an_undamaged_workflow_is_reachable_as_a_whole(place: Place) -> None:
    fill(place)
    assert seen(place) == ([], [6, 5, 4, 3, 2, 1])


def test_a_damaged_record_is_named_and_what_hangs_on_it_is_not_reachable(place: Place) -> None:
    fill(place)
    place.damage_record("W", 4)
    assert seen(place) == ([(Piece.RECORD, 4)], [3, 2, 1])


def test_a_damaged_keyframe_is_named(place: Place) -> None:
    fill(place)
    place.damage_keyframe("W", 1)
    assert seen(place) == ([(Piece.KEYFRAME, 1)], [])


def test_a_damaged_blob_is_named_with_a_checkpoint_that_needs_it(place: Place) -> None:
    with place.open() as service:
        service.create_checkpoint("W", {"n": 1})
        service.create_checkpoint("W", {"n": 2, "long": LONG})
    place.damage_blobs()
    assert seen(place)[0] == [(Piece.BLOB, 2)]


def test_what_was_pruned_is_gone_and_not_damaged(place: Place) -> None:
    with place.open() as service:
        for number in range(1, 61):
            service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
        service.prune_checkpoints("W", retain_count=2, retain_days=0)
        kept = [meta.id.sequence for meta in service.list_checkpoints("W")]
    assert len(kept) < 10
    assert seen(place) == ([], kept)


def test_each_checkpoint_is_named_once() -> None:
    damage = (Damage(Piece.RECORD, 4, "a"), Damage(Piece.BLOB, 2, "b"), Damage(Piece.BLOB, 4, "c"))
    assert damaged_sequences(damage) == [2, 4]


@pytest.mark.parametrize("piece", list(Piece))
def test_pieces_are_named_as_people_call_them(piece: Piece) -> None:
    assert str(piece) in ("record", "keyframe", "blob")
