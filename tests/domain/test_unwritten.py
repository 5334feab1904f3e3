"""What the store does not have is told with where it is, and what to do."""

from __future__ import annotations

from holdfast.domain.unwritten import Unwritten

FULL = "no space left"


def test_nothing_is_told_of_nothing() -> None:
    assert (Unwritten().message, Unwritten().hint, Unwritten().text) == ("", "", "")


def test_what_waits_in_memory_is_to_be_written_before_the_end() -> None:
    waiting = Unwritten(1, FULL)
    assert waiting.message == "1 commit is not in the store, but in memory only (no space left)"
    assert "flush()" in waiting.hint


def test_what_is_kept_elsewhere_is_told_with_the_place() -> None:
    kept = Unwritten(1_200, FULL, "file:/second")
    assert kept.message == "1,200 commits are not in the store, but kept in file:/second (no space left)"
    assert kept.hint.endswith("`holdfast list --store file:/second` shows what was kept.")


def test_what_is_lost_is_called_so_and_can_be_done_again() -> None:
    lost = Unwritten(5, FULL, is_lost=True)
    assert lost.message == "5 commits are not in the store, but LOST (no space left)"
    assert "run it again" in lost.hint and "emergency_path" in lost.hint
    assert lost.text == f"{lost.message}. {lost.hint}"
