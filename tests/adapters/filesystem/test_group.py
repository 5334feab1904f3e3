"""A group of commits: each follows on those before it, and of one that is refused nothing is kept."""

from __future__ import annotations

from dataclasses import replace

from holdfast.domain.errors import CheckpointConflictError, StateTooLargeError, UnstorableValueError
from holdfast.domain.record import Head
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.audits import commit, tell, told
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


def test_what_is_refused_for_any_reason_leaves_nothing(store):
    checkpoint = commits.checkpoint("wf", Head())
    late = replace(checkpoint, expected=Head(sequence=3), audit=(told(1),), files={"holds/a": b""})
    untold = replace(checkpoint, audit=(replace(told(2), facts={"n": "x" * 600}),), files={"holds/b": b""})
    behind = replace(checkpoint, audit=(told(3),), expected_files={"holds/c": b"?"})
    good = replace(checkpoint, audit=(told(4),), files={"holds/d": b""})
    outcomes = store.commit([late, untold, behind, good])
    kinds = [CheckpointConflictError, UnstorableValueError, CheckpointConflictError, type(None)]
    assert [type(outcome) for outcome in outcomes] == kinds
    assert store.integrate() == 2 and list(store.files("")) == ["holds/d"]
    assert store.head("wf") == checkpoint.head


def test_a_conflict_is_told_before_what_cannot_be_told(store):
    checkpoint = commits.checkpoint("wf", Head(sequence=3))
    bad = replace(checkpoint, audit=(replace(told(2), facts={"n": "x" * 600}),))
    assert isinstance(store.commit([bad])[0], CheckpointConflictError)


def test_more_payloads_than_the_journal_takes_are_not_erased_at_once(store):
    for number in range(8):
        tell(store, told(number, why="x" * (JOURNAL_BYTES // 10)))
    erased = tuple(("s-1", seq) for seq in range(2, 10))
    [outcome] = store.commit([commit(erased=erased)])
    assert isinstance(outcome, StateTooLargeError)
    tell(store, erased=erased[:4])
    assert [store.payload("s-1", seq) is None for seq in (2, 5, 6)] == [True, True, False]
