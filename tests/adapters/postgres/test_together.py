"""Leases and removals are told with what they do, and once, also if the answer was lost."""

from __future__ import annotations

import pytest

from holdfast.adapters.postgres import together, trails
from holdfast.adapters.postgres.leasing import Leases
from holdfast.conformance.history import History
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.errors import LeaseHeldError, UnstorableValueError
from holdfast.domain.record import Removal
from tests.adapters.postgres.proxy import Cut
from tests.adapters.postgres.test_trails import WRONG
from tests.adapters.postgres.test_turns import END, TAKE_SESSION, through, wire
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

__all__ = ["wire"]

#: Marks the statement before the end of the transaction, so that exactly this transaction is cut.
APPEND = b"insert into audit"


@pytest.mark.parametrize(
    "cut", [Cut(END, answered_bytes=0), Cut(END, asked_bytes=0), Cut(APPEND, asked_bytes=9)]
)
def test_what_was_done_is_told_once_wherever_the_wire_is_cut(wire, cut, monkeypatch):
    def arm():
        wire.arm(Cut(cut.marker, cut.asked_bytes, cut.answered_bytes))

    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        history.commit(keyframe=b"one")
        store.release(store.acquire("W", "eve", 60))
        # The row to lock is there: no transaction but the one that is to be cut.
        monkeypatch.setattr(Leases, "_place", lambda *_: None)
        arm()
        lease = cuttable.acquire("W", "ann", 60, (told(1),))
        assert wire.was_cut.is_set() and store.lease("W") == lease
        arm()
        cuttable.release(lease, (told(2),))
        assert wire.was_cut.is_set() and store.lease("W") is None
        history.commit(group=2)
        arm()
        assert cuttable.remove("W", Removal(sequences=(1,), groups=(1,), audit=(told(3),))) > 0
        assert wire.was_cut.is_set()
        assert numbers(store.trail("s-1")) == [1, 2, 3]
        check_trail(store, "s-1")


def test_without_a_look_at_the_entries_it_would_be_told_twice(wire, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(trails, "have_landed", lambda *_: False)
    with through(wire) as (cuttable, store, _):
        store.release(store.acquire("W", "eve", 60))
        monkeypatch.setattr(Leases, "_place", lambda *_: None)
        wire.arm(Cut(END, answered_bytes=0))
        cuttable.acquire("W", "ann", 60, (told(1),))
        assert numbers(store.trail("s-1")) == [1, 1]


def test_what_fails_is_not_told_and_what_cannot_be_told_is_not_done(store):
    lease = store.acquire("W", "ann", 60)
    with pytest.raises(LeaseHeldError):
        store.acquire("W", "bob", 60, (told(1),))
    with pytest.raises(UnstorableValueError):
        store.release(lease, (WRONG,))
    assert store.lease("W") is not None and list(store.sessions()) == []
    store.release(lease, (told(2),))
    store.release(lease, (told(3),))
    assert numbers(store.trail("s-1")) == [2]


def test_work_waits_for_its_turn_in_the_session(store, url):
    store.release(store.acquire("W", "ann", 60))
    with transaction(url) as other:
        other.execute(TAKE_SESSION, ["s-1"])
        with beside(lambda: store.acquire("W", "ann", 60, (told(1),))) as future:
            wait_until_blocked(other)
            other.execute("rollback")
            future.result()
            other.execute("begin")
    assert store.commit([about_the_store(told(2))]) == [None]
    assert numbers(store.trail("s-1")) == [1, 2]


def test_work_without_entries_is_just_done(store):
    assert together.atomically(store._database, (), lambda transaction: transaction.rows("select 7")) == [
        (7,)
    ]
    assert list(store.sessions()) == []
