"""Sequences are aligned by what they share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.align import Splice, align

items = st.lists(st.integers(0, 12).map(lambda number: bytes([number])), max_size=40)


def apply(splices: list[Splice], old: list[bytes], new: list[bytes]) -> list[bytes]:
    result = list(old)
    for splice in splices:
        result[splice.at : splice.at + splice.remove] = new[splice.start : splice.stop]
    return result


def numbers(first: int, last: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, last)]


@given(items, items)
def test_splices_turn_one_sequence_into_the_other(old: list[bytes], new: list[bytes]) -> None:
    assert apply(align(old, new), old, new) == new


@given(st.permutations(numbers(0, 30)), st.permutations(numbers(5, 40)))
def test_unique_items_in_any_order_are_aligned(old: list[bytes], new: list[bytes]) -> None:
    assert apply(align(old, new), old, new) == new


@given(items)
def test_equal_sequences_need_nothing(sequence: list[bytes]) -> None:
    assert align(sequence, list(sequence)) == []


def test_an_insertion_at_the_head_is_one_splice() -> None:
    assert align(numbers(1, 500), numbers(0, 500)) == [Splice(0, 0, 0, 1)]


def test_a_sliding_window_is_two_splices() -> None:
    assert align(numbers(0, 500), numbers(3, 502)) == [Splice(0, 3, 0, 0), Splice(497, 0, 497, 499)]


def test_an_edit_between_repeated_items_touches_only_itself() -> None:
    old = [b"x"] * 5 + [b"a"] + [b"x"] * 5
    new = [b"x"] * 5 + [b"b"] + [b"x"] * 5
    assert align(old, new) == [Splice(5, 1, 5, 6)]


def test_an_item_that_moved_is_two_splices() -> None:
    old = numbers(0, 100)
    assert len(align(old, [*old[:10], *old[11:60], old[10], *old[60:]])) == 2


def test_repeated_neighbours_of_a_match_are_kept() -> None:
    old = [b"r", b"r", b"u", b"r", b"r", b"gone", b"w"]
    new = [b"new", b"r", b"u", b"r", b"r", b"w", b"end"]
    assert apply(align(old, new), old, new) == new
    assert sum(splice.remove for splice in align(old, new)) == 2
