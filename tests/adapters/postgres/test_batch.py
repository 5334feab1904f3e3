"""Commits of a call are cut into chains that get in together, and what builds on something else waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.postgres import batch
from holdfast.adapters.postgres.batch import Unit
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.conformance.trailing import about_the_store, told
from holdfast.domain.record import Commit, Head, Transition


def history(workflow_id="W"):
    return History(MemoryStore(), workflow_id)


def drafts(count, workflow_id="W", **parts):
    """Commits each on top of the one before."""
    made = history(workflow_id)
    found = []
    for number in range(count):
        found.append(made.draft(text=str(number), **parts))
        made.follow(found[-1])
    return found


def one(commit):
    return Unit((commit,), (0,))


def test_commits_on_top_of_each_other_are_one_unit():
    a, b = drafts(3, "A"), drafts(2, "B")
    units, later = batch.next_round(list(enumerate([a[0], b[0], a[1], b[1], a[2]])))
    assert later == []
    assert [(unit.workflow_id, unit.places) for unit in units] == [("A", (0, 2, 4)), ("B", (1, 3))]
    assert units[0].expected == Head() and units[0].head == a[2].head


def test_a_commit_that_builds_on_something_else_waits_and_so_do_those_after_it():
    first, second, third = drafts(3)
    stray = history().draft(text="stray")
    units, later = batch.next_round(list(enumerate([first, stray, second, third])))
    assert [unit.places for unit in units] == [(0,)]
    assert [place for place, _ in later] == [1, 2, 3]
    units, later = batch.next_round(later)
    assert [unit.places for unit in units] == [(1,)]


def test_another_token_is_another_unit():
    first, second = drafts(2)
    units, later = batch.next_round([(0, first), (1, replace(second, token=3))])
    assert [unit.places for unit in units] == [(0,)] and [place for place, _ in later] == [1]


def test_an_empty_commit_rides_along():
    first, second = drafts(2)
    units, later = batch.next_round([(0, first), (1, Commit("W", first.head)), (2, second)])
    assert [unit.places for unit in units] == [(0, 1, 2)] and later == []
    assert not units[0].is_empty
    assert one(Commit("W", Head())).is_empty


def test_needs_that_no_record_refers_to_are_looked_at_alone():
    first, second = drafts(2)
    bare = replace(second, record=None, needs=("0" * 64,))
    _, later = batch.next_round([(0, first), (1, bare)])
    assert [place for place, _ in later] == [1]
    assert one(bare).has_bare_needs and not one(replace(second, needs=("0" * 64,))).has_bare_needs


def test_a_status_that_changes_in_the_same_unit_is_the_records_own():
    first, second = drafts(2)
    moved = replace(second, transitions=(Transition(1, "failed", 2, True), Transition(9, "active")))
    unit = Unit((first, moved), (0, 1))
    assert [r.entry.status for r in unit.records()] == ["failed", "active"]
    assert unit.records()[0].data == first.record.data
    assert unit.transitions() == [Transition(9, "active")]


def test_of_several_changes_of_a_checkpoint_the_last_one_counts():
    [first] = drafts(1)
    changes = (Transition(7, "recovering"), Transition(7, "completed"))
    assert one(replace(first, transitions=changes)).transitions() == [changes[1]]


def test_records_and_keyframes_tell_which_blobs_they_use():
    data = {blob_name(b"x"): b"x"}
    [first] = drafts(1, blobs=data)
    first = replace(first, keyframe=make_keyframe(1, b"k", blobs=tuple(data)), needs=("f" * 64,))
    assert sorted(one(first).uses(), key=str) == sorted(
        [(blob_name(b"x"), 1, "record"), ("f" * 64, 1, "record"), (blob_name(b"x"), 1, "keyframe")], key=str
    )
    assert one(first).blobs == data
    bare = replace(first, record=replace(first.record, data=b""))
    assert list(one(bare).uses()) == [(blob_name(b"x"), 1, "keyframe")] and one(bare).has_bare_needs


def test_statements_go_by_id_and_are_cut_by_count_and_size(monkeypatch):
    units = [one(drafts(1, name)[0]) for name in ("c", "a", "b")]
    assert [u.workflow_id for piece in batch.statements(units) for u in piece] == ["a", "b", "c"]
    monkeypatch.setattr(batch, "STATEMENT_UNITS_MAX", 2)
    assert [len(piece) for piece in batch.statements(units)] == [2, 1]
    monkeypatch.setattr(batch, "STATEMENT_BYTES_MAX", 1)
    assert [len(piece) for piece in batch.statements(units)] == [1, 1, 1]
    assert list(batch.statements([])) == []


def test_a_unit_can_be_taken_apart():
    commits = drafts(3)
    unit = Unit(tuple(commits), (4, 5, 6))
    assert [(u.commits, u.places) for u in unit.alone()] == [((c,), (4 + n,)) for n, c in enumerate(commits)]
    assert unit.size_bytes > sum(len(commit.record.data) for commit in commits)


def test_commits_of_no_workflow_stand_in_one_unit_and_those_with_files_alone():
    entry = told(1)
    plain, filing = about_the_store(entry), about_the_store(entry, files={"keys/a": b""})
    units, later = batch.next_round(list(enumerate([plain, plain, filing, plain])))
    assert [unit.places for unit in units] == [(0, 1)]
    assert units[0].is_of_no_workflow and units[0].is_told and not units[0].needs_a_turn
    assert [place for place, _ in later] == [2, 3]
    [alone], _ = batch.next_round(later)
    assert alone.places == (2,) and alone.needs_a_turn


@pytest.mark.parametrize(
    "parts", [{"files": {"keys/a": None}}, {"expected_files": {"keys/a": None}}, {"erased": (("s", 1),)}]
)
def test_who_changes_more_than_a_workflow_needs_a_turn(parts):
    assert Unit((about_the_store(**parts),), (0,)).needs_a_turn


def test_who_tells_and_records_nothing_needs_a_turn_in_its_workflow():
    telling = Commit("W", Head(), audit=(told(1),))
    assert Unit((telling,), (0,)).needs_a_turn
    assert not Unit((Commit("W", Head()),), (0,)).needs_a_turn


def test_entries_count_as_bytes():
    bare, heavy = (Unit((about_the_store(told(1, stored=b"x" * size)),), (0,)) for size in (0, 5000))
    assert heavy.size_bytes - bare.size_bytes == 5000 and bare.size_bytes > 0
