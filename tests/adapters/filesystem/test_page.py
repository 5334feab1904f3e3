"""The shared page: a process may die between any two of its bytes."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.page import PAGE_BYTES, Page


class Memory(bytearray):
    def close(self) -> None:
        self.clear()


@pytest.fixture
def memory():
    return Memory(PAGE_BYTES)


def test_an_empty_page_says_nothing(memory):
    page = Page(memory)
    assert page.tail() is None and page.durable(1) == 0


def test_the_last_published_tail_is_seen(memory):
    page = Page(memory)
    for end in (8, 16, 24):
        page.publish(1, end, bytes([end]) * 32)
    tail = page.tail()
    assert tail is not None and (tail.generation, tail.end, tail.chain) == (1, 24, b"\x18" * 32)


def test_a_half_written_tail_leaves_the_one_before(memory):
    page = Page(memory)
    page.publish(1, 8, b"a" * 32)
    before = bytes(memory)
    page.publish(1, 16, b"b" * 32)
    for cut in range(PAGE_BYTES):
        torn = Memory(memory[:cut] + before[cut:])
        tail = Page(torn).tail()
        assert tail is not None and tail.end in (8, 16)


def test_marks_only_move_forward_and_belong_to_a_generation(memory):
    page = Page(memory)
    page.raise_mark(Page.APPLIED, 1, 80)
    page.raise_mark(Page.APPLIED, 1, 40)
    assert page.mark(Page.APPLIED, 1) == 80
    assert page.mark(Page.APPLIED, 2) == 0
    page.clear()
    assert page.mark(Page.APPLIED, 1) == 0


def test_a_damaged_mark_counts_as_unset(memory):
    page = Page(memory)
    page.raise_mark(Page.APPLIED, 1, 80)
    start = bytes(memory).find((80).to_bytes(8, "little"))
    memory[start] ^= 1
    assert page.mark(Page.APPLIED, 1) == 0


def test_a_slow_writer_cannot_take_back_what_another_made_durable(memory):
    slow, quick = Page(memory), Page(memory)
    stale = bytes(memory)
    quick.raise_durable(1, 200, token=2)
    assert slow.durable(1) == 200
    # The slow one compared before the quick one wrote, and writes now: only its own cell.
    written = Memory(stale)
    Page(written).raise_durable(1, 100, token=1)
    for at, byte in enumerate(written):
        if byte != stale[at]:
            memory[at] = byte
    assert slow.durable(1) == quick.durable(1) == 200
    assert slow.durable(2) == 0
