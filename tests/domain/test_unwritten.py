"""What the store does not have is told with where it is, and what to do."""

from __future__ import annotations

from holdfast.domain.unwritten import Unwritten, together

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


def test_what_is_refused_is_not_promised_to_a_store_that_can_be_written() -> None:
    kept = Unwritten(1, "the lease is lost", "file:/second", is_refused=True)
    assert kept.hint.startswith("See to why it refused them, and run it again")
    assert "file:/second" in kept.hint
    assert "emergency_path" in Unwritten(1, "the lease is lost", is_lost=True, is_refused=True).hint


def test_what_fared_alike_is_counted_together_and_the_worst_comes_first() -> None:
    kept, waiting, lost = Unwritten(2, FULL, "file:/s"), Unwritten(1, FULL), Unwritten(3, FULL, is_lost=True)
    told = together(kept, together(waiting, kept), lost)
    assert told.message == (
        "3 commits are not in the store, but LOST (no space left); "
        "1 commit is not in the store, but in memory only (no space left); "
        "4 commits are not in the store, but kept in file:/s (no space left)"
    )
    assert told.is_lost and told.hint == lost.hint
    assert together(Unwritten(), kept) == kept and together() == Unwritten()
