"""Which checkpoints can be reached past what is damaged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.record import Entry
from holdfast.domain.recovery_plan import Damage, Piece, reachable


def entries(count: int, pruned: frozenset[int] = frozenset()) -> list[Entry]:
    return [
        Entry(number, f"uuid-{number}", "", "stage_complete", "", pruned=number in pruned)
        for number in range(1, count + 1)
    ]


def sequences(count: int, keyframes: list[int], broken: set[int], pruned: frozenset[int]) -> list[int]:
    return [entry.sequence for entry in reachable(entries(count, pruned), keyframes, broken)]


def test_a_broken_record_ends_the_way_until_the_next_keyframe() -> None:
    assert sequences(8, [1, 6], {3}, frozenset()) == [8, 7, 6, 2, 1]


def test_without_a_keyframe_there_is_no_way() -> None:
    assert sequences(3, [], set(), frozenset()) == []


def test_a_keyframe_leads_past_its_own_broken_record() -> None:
    assert sequences(3, [2], {2}, frozenset()) == [3, 2]


def test_pruned_checkpoints_are_no_answer_but_may_be_on_the_way() -> None:
    assert sequences(4, [1], set(), frozenset({1, 3})) == [4, 2]


def test_damage_is_told_in_words() -> None:
    assert str(Damage(Piece.RECORD, 4, "it was changed")) == "the record of checkpoint 4: it was changed"


@given(
    st.integers(0, 30),
    st.sets(st.integers(1, 30)),
    st.sets(st.integers(1, 30)),
    st.frozensets(st.integers(1, 30)),
)
def test_each_answer_has_a_keyframe_before_it_and_nothing_broken_in_between(
    count: int, keyframes: set[int], broken: set[int], pruned: frozenset[int]
) -> None:
    answers = sequences(count, sorted(keyframes), broken, pruned)
    expected = [
        number
        for number in range(count, 0, -1)
        if number not in pruned
        and any(one <= number and not broken & set(range(one + 1, number + 1)) for one in keyframes)
    ]
    assert answers == expected
