"""Reading the trail: in bounded portions, from memory where it can, and around what is damaged."""

from __future__ import annotations

from contextlib import closing

import pytest

from holdfast.adapters.filesystem import layout, trails
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointCorruptError
from tests.adapters.filesystem.audits import commit, tell, told
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


@pytest.fixture
def interleaved(store):
    """Twelve entries of three sessions, one after the other."""
    for number in range(12):
        tell(store, told(number, f"s-{number % 3}", why=f"reason {number}"))
    return store


@pytest.fixture
def reader(interleaved, root):
    reader = FilesystemStore.open(str(root), read_only=True)
    yield reader
    reader.close()


def everything(store):
    names = sorted(store.sessions())
    lines = {name: list(store.trail(name)) for name in names}
    payloads = [store.payload(name, seq) for name in names for seq in range(1, 7)]
    places = [store.place(name, seq) for name in names for seq in range(1, 7)]
    heads = [store.trail_head(name) for name in names]
    return names, lines, list(store.leaves()), payloads, places, heads, store.integrate()


def test_pending_settled_and_read_only_all_tell_the_same(interleaved, reader):
    pending = everything(interleaved)
    assert everything(reader) == pending
    interleaved.settle()
    assert everything(interleaved) == pending and everything(reader) == pending
    assert pending[-1] == 15


def test_a_trail_is_read_in_windows_of_whole_lines(interleaved, monkeypatch):
    whole = list(interleaved.trail("s-1"))
    length = max(map(len, whole))
    for window_bytes in (length, 2 * length, 3 * length + 1):
        monkeypatch.setattr(trails, "_WINDOW_BYTES", window_bytes)
        assert list(interleaved.trail("s-1")) == whole
        assert [list(interleaved.trail("s-1", after=n)) for n in range(6)] == [whole[n:] for n in range(6)]


def test_a_line_that_is_longer_than_a_window_is_cut_and_nothing_is_left_out(interleaved, monkeypatch):
    whole = list(interleaved.trail("s-1"))
    monkeypatch.setattr(trails, "_WINDOW_BYTES", 50)
    assert b"".join(interleaved.trail("s-1")) == b"".join(whole)


def test_a_leaf_is_found_some_records_at_a_time(interleaved, root, monkeypatch):
    places = everything(interleaved)[4]
    monkeypatch.setattr(trails, "_SEARCHED_RECORDS", 2)
    with closing(FilesystemStore.open(str(root), read_only=True)) as reader:
        asked = [(f"s-{n}", seq) for n in range(3) for seq in range(1, 7)]
        for name, seq in (*reversed(asked), *asked):
            assert reader.place(name, seq) == places[asked.index((name, seq))]


def test_a_session_that_is_listed_twice_is_told_once(interleaved, root):
    interleaved.settle()
    listed = root / layout.SESSIONS
    listed.write_bytes(2 * listed.read_bytes())
    with closing(FilesystemStore.open(str(root), read_only=True)) as reader:
        assert list(reader.sessions()) == ["s-0", "s-1", "s-2"]


def test_leaves_are_read_in_portions(interleaved, monkeypatch):
    whole = list(interleaved.leaves())
    monkeypatch.setattr(trails, "_LEAVES_AT_ONCE", 4)
    assert list(interleaved.leaves()) == whole and list(interleaved.leaves(after=5)) == whole[5:]
    monkeypatch.setattr(trails, "_LEAF_BYTES_AT_ONCE", 700)
    assert list(interleaved.leaves()) == whole


def test_long_trails_are_read_in_windows(interleaved, monkeypatch):
    whole = list(interleaved.trail("s-1"))
    monkeypatch.setattr(trails, "_WINDOW_BYTES", max(map(len, whole)))
    assert list(interleaved.trail("s-1")) == whole
    monkeypatch.setattr(trails, "_SEARCHED_RECORDS", 2)
    assert interleaved.place("s-2", 4) is not None and interleaved.place("s-2", 99) is None


def test_places_and_payloads_are_found_in_any_order(interleaved):
    places = {seq: interleaved.place("s-0", seq) for seq in (5, 1, 3, 2, 4)}
    assert sorted(places.values()) == [places[seq] for seq in sorted(places)]
    payloads = [interleaved.payload("s-0", seq) for seq in (5, 2, 9, 3, 1)]
    assert [None if p is None else b"reason" in p for p in payloads] == [True, True, None, True, None]


def test_a_second_opening_goes_on_in_the_same_session(interleaved, root):
    other = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    for number in range(3):
        for store in (other, interleaved):
            tell(store, told(number, "s-0"))
    assert interleaved.trail_head("s-0") == other.trail_head("s-0")
    assert interleaved.trail_head("s-0").seq == 11
    other.close()


def test_a_damaged_last_entry_refuses_its_session_only(interleaved, root):
    interleaved.settle()
    path = root / layout.trail_path("s-1")
    path.write_bytes(path.read_bytes()[:-2])
    again = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    with pytest.raises(CheckpointCorruptError, match="last audit entry"):
        again.trail_head("s-1")
    outcomes = again.commit([commit(told(1, "s-1")), commit(told(2, "s-2"))])
    assert isinstance(outcomes[0], CheckpointCorruptError) and outcomes[1] is None
    assert len(list(again.trail("s-1"))) == 5 and len(list(again.leaves())) == 16
    again.close()


def test_the_trail_of_another_session_is_not_taken_for_ones_own(interleaved, root):
    interleaved.settle()
    (root / layout.trail_path("s-1")).write_bytes((root / layout.trail_path("s-2")).read_bytes())
    reader = FilesystemStore.open(str(root), read_only=True)
    with pytest.raises(CheckpointCorruptError, match="s-2"):
        reader.trail_head("s-1")
    reader.close()


def test_a_damaged_order_of_leaves_leaves_the_trails_readable(interleaved, root):
    interleaved.settle()
    path = root / layout.ORDER
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(CheckpointCorruptError, match="leaf 0"):
        list(interleaved.leaves())
    assert len(list(interleaved.leaves(after=1))) == 14
    assert len(list(interleaved.trail("s-0"))) == 5


def test_sessions_are_told_by_their_trails_where_the_list_is_damaged(interleaved, root):
    interleaved.settle()
    path = root / layout.SESSIONS
    path.write_bytes(b"x" + path.read_bytes()[1:])
    reader = FilesystemStore.open(str(root), read_only=True)
    assert sorted(reader.sessions()) == ["s-0", "s-1", "s-2"]
    with pytest.raises(CheckpointCorruptError, match="no session"):
        list(reader.leaves())
    assert reader.place("s-0", 1) is None and reader.place("s-1", 1) == 2
    reader.close()


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(trails, "_REMEMBERED", 2)
    known: trails.Remembered[int] = trails.Remembered()
    for number in range(3):
        known.set(number, number)
    assert [known.get(number) for number in range(3)] == [None, 1, 2]
    known.clear()
    assert known.get(2) is None
