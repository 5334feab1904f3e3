"""Why a checkpoint cannot be restored is named by the pieces in its way, and by nothing else."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery.unusable import in_the_way, starts, why_unusable
from holdfast.application.survey import Survey
from holdfast.conformance.history import History
from holdfast.domain.errors import CheckpointError
from holdfast.domain.recovery_plan import Damage, Piece
from tests.application.services import make_service
from tests.damage import derived_keyframes, flip, replace_data


def seen(*pieces: tuple[Piece, int]) -> Survey:
    return Survey(tuple(Damage(piece, sequence, "wrong") for piece, sequence in pieces), ())


def way(survey: Survey, sequence: int) -> list[tuple[Piece, int]]:
    broken = {one.sequence for one in survey.damage if one.piece is Piece.KEYFRAME}
    whole = [one for one in (1, 10) if one not in broken]
    return [(one.piece, one.sequence) for one in in_the_way(survey, whole, sequence)]


def test_without_damage_nothing_is_in_the_way():
    assert way(seen(), 5) == []


def test_a_record_is_in_the_way_of_what_follows_it_until_the_next_keyframe():
    survey = seen((Piece.RECORD, 5))
    assert [n for n in range(1, 15) if way(survey, n)] == [5, 6, 7, 8, 9]


def test_a_keyframe_alone_is_in_nobodys_way_where_an_older_one_leads_past_it():
    assert [n for n in range(1, 15) if way(seen((Piece.KEYFRAME, 10)), n)] == []


def test_the_oldest_keyframe_is_in_the_way_of_everything_before_the_next():
    assert [n for n in range(1, 15) if way(seen((Piece.KEYFRAME, 1)), n)] == list(range(1, 10))


def test_where_both_ways_are_blocked_both_are_named():
    assert way(seen((Piece.RECORD, 5), (Piece.KEYFRAME, 10)), 12) == [(Piece.RECORD, 5), (Piece.KEYFRAME, 10)]


def test_the_record_beside_a_whole_keyframe_is_not_needed():
    assert [n for n in range(1, 15) if way(seen((Piece.RECORD, 10)), n)] == []


@pytest.mark.parametrize("settings", [{}, {"mode": "performance"}, {"compression": "none"}])
def test_a_keyframe_that_its_record_vouches_for_is_no_start_without_it(settings):
    service = make_service(**settings)
    for n in range(80):
        service.create_checkpoint("WF", {"n": n, "text": "some words " * 20})
    store = service._engine.kit.store
    second = derived_keyframes(service)[0]
    for damaged, is_start in ((1, False), (second, True)):
        survey = seen((Piece.RECORD, damaged))
        assert (damaged in starts(store, "WF", survey)) is is_start
    assert set(starts(store, "WF", seen())) >= {1, second}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{\n", b"{\n1\n2", b'{"header": {}}', b'{"header": 7}'])
def test_what_has_no_header_of_a_keyframe_is_no_start_by_itself(data):
    store = MemoryStore()
    History(store, "WF").commit(keyframe=data)
    assert starts(store, "WF", seen((Piece.RECORD, 1))) == []
    assert starts(store, "WF", seen()) == [1]


@pytest.mark.parametrize("piece", ["record", "keyframe"])
def test_what_is_told_is_what_restoring_finds(piece):
    store = MemoryStore()
    service = make_service(store)
    for n in range(80):
        service.create_checkpoint("WF", {"n": n})
    workflow = store._workflows["WF"]
    second = derived_keyframes(service)[0]
    for sequence in (1, second) if piece == "record" else (1,):
        if piece == "record":
            workflow.records[sequence] = flip(workflow.records[sequence])
        else:
            workflow.keyframes[sequence] = replace_data(workflow.keyframes[sequence], b"other")
    for sequence in range(1, 81, 3):
        try:
            service._engine.reader.restored(_found(service, sequence))
            is_usable = True
        except CheckpointError:
            is_usable = False
        assert is_usable == (why_unusable(service._engine.kit.store, "WF", sequence) == ()), sequence


def _found(service, sequence):
    from holdfast.application.resolve import resolve

    return resolve(service._engine.kit.store, f"WF@{sequence}")
