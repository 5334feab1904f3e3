"""Entries get in with everything they tell of, or nothing does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from psycopg import errors

from holdfast.adapters.postgres import statement, telling, trails
from holdfast.adapters.postgres.batch import Unit
from holdfast.conformance.copying import without_events
from holdfast.conformance.history import History, blob_name
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError, LeaseHeldError
from holdfast.domain.record import Head
from tests.adapters.postgres import server
from tests.adapters.postgres.test_statement import planned, units
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked


def chained(made, head_of=TrailHead):
    return trails.chain_units(made, head_of)


def started(name):
    return TrailHead(name, 1, "sha256:" + "0" * 64, "2026-01-11T12:00:00.000000Z")


def test_one_entry_is_sent_as_values_and_several_as_arrays(store):
    made = units(store, 1, audit=(told(1),))
    assert "unnest" not in statement.build(made, chained(made, started))[0]
    assert "unnest" in statement.build(made, chained(made))[0]


@pytest.mark.parametrize("count", [0, 1, 8])
@pytest.mark.parametrize("head_of", [TrailHead, started])
def test_no_commit_with_entries_reads_a_table_from_end_to_end(store, count, head_of):
    made = units(store, count, audit=(told(1),), blobs={blob_name(b"b"): b"b"})
    entries = chained(made or [Unit((about_the_store(told(1)),), (0,))], head_of)
    bare = [replace(u, commits=tuple(without_events(c) for c in u.commits)) for u in made]
    for built in (statement.build(made, entries), statement.build(bare, entries)):
        assert {table for kind, table in planned(store, built) if kind == "Seq Scan"} == set()


def test_entries_may_go_with_checkpoints_that_bring_no_events(store):
    history = History(store)
    draft = without_events(history.draft(audit=(told(1),)))
    assert store.commit([draft, History(store, "V").draft(audit=(told(2),))]) == [None, None]
    assert sorted(numbers(store.trail("s-1"))) == [1, 2]
    check_trail(store, "s-1")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_commit_that_lost_its_race_leaves_no_entry_and_no_gap(store, place):
    late = History(store, "late").draft(audit=(told(7),))
    History(store, "late").commit(text="faster")
    group = [History(store, name).draft(audit=(told(n),)) for n, name in enumerate(("A", "B"))]
    group.insert(place, late)
    outcomes = store.commit(group)
    assert isinstance(outcomes[place], CheckpointConflictError)
    assert [outcome for outcome in outcomes if outcome is not None] == [outcomes[place]]
    assert numbers(store.trail("s-1")) == [0, 1]
    check_trail(store, "s-1")


def test_a_commit_that_loses_its_race_at_the_last_moment_leaves_no_entry_either(store, url):
    """It believed right, and met another's row when it got to its own: the table refuses its entries."""
    drafts = [History(store, name).draft(audit=(told(n),)) for n, name in enumerate(("A", "B"))]
    with server.connected(url) as faster, faster.transaction():
        faster.execute(
            "insert into events (workflow_id, seq, timestamp, hash, data) values ('A', 1, '', 'x', '')"
        )
        with beside(lambda: store.commit(drafts)) as future:
            wait_until_blocked(faster)
            faster.execute("commit")
            outcomes = future.result()
            faster.execute("begin")
    assert isinstance(outcomes[0], CheckpointConflictError) and outcomes[1] is None
    assert numbers(store.trail("s-1")) == [1]
    assert (store.head("A").sequence, store.head("B").sequence) == (0, 1)
    check_trail(store, "s-1")


def test_without_that_line_its_entries_would_be_there(store, url, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(telling, "_ALL_IN", "true")
    statement.text.cache_clear()
    draft = History(store, "A").draft(audit=(told(1),))
    with server.connected(url) as faster, faster.transaction():
        faster.execute(
            "insert into events (workflow_id, seq, timestamp, hash, data) values ('A', 1, '', 'x', '')"
        )
        with beside(lambda: store.commit([draft])) as future:
            wait_until_blocked(faster)
            faster.execute("commit")
            future.result()
            faster.execute("begin")
    statement.text.cache_clear()
    assert store.head("A").sequence == 0 and numbers(store.trail("s-1")) == [1]


def test_a_trail_that_moved_between_snapshot_and_lock_is_met_by_its_key(store):
    """Nothing but the key of the table stands between two lines in one place."""
    store.commit([about_the_store(told(1))])
    stale = chained([Unit((about_the_store(told(2)),), (0,))], started)
    query, values = statement.build([], stale)
    query = query.replace(telling._STALE.split("where ")[1], "false")
    with store._database.connections.connection() as connection, pytest.raises(errors.UniqueViolation):
        connection.send(query, values)


def test_who_meets_a_key_takes_a_turn(store, monkeypatch):
    sent, tries = type(store._committer)._sent, []

    def unlucky(self, made, entries):
        tries.append(made)
        raise errors.UniqueViolation("another was faster")

    monkeypatch.setattr(type(store._committer), "_sent", unlucky)
    History(store).commit(audit=(told(1),))
    monkeypatch.setattr(type(store._committer), "_sent", sent)
    assert len(tries) == 1 and numbers(store.trail("s-1")) == [1]


def test_what_is_fenced_off_or_lacks_a_blob_leaves_no_entry(store):
    store.acquire("W", "ann", 60)
    held = History(store).draft(audit=(told(1),))
    lacking = History(store, "V").draft(audit=(told(2),), needs=(blob_name(b"gone"),))
    for commits in ([held], [lacking], [held, lacking, about_the_store(told(3))]):
        outcomes = store.commit(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            wanted = {"W": LeaseHeldError, "V": CheckpointNotFoundError, "": type(None)}
            assert isinstance(outcome, wanted[commit.workflow_id])
    assert numbers(store.trail("s-1")) == [3]
    assert store.head("W") == store.head("V") == Head()


def test_an_answer_says_who_does_not_fit_and_where_trails_stand(store):
    history = History(store)
    late = history.draft(audit=(told(1),))
    history.commit(audit=(told(2),))
    made = [Unit((late,), (0,)), Unit((History(store, "V").draft(),), (1,))]
    with store._database.connections.connection() as connection:
        rows = statement.send(connection, made, chained(made))
    answer = telling.read_answer(rows)
    assert answer.misfits == {"W"} and {row[0] for row in answer.met} == {"V", "W"}
    assert answer.heads == [store.trail_head("s-1")] and not answer.is_busy


def test_an_answer_says_that_somebody_is_at_a_trail(store, url):
    made = [Unit((about_the_store(told(1)),), (0,))]
    with transaction(url) as other:
        other.execute("select pg_advisory_xact_lock('audit'::regclass::oid::int, hashtext('s-1'))")
        with store._database.connections.connection() as connection:
            rows = statement.send(connection, [], chained(made))
    answer = telling.read_answer(rows)
    assert answer.is_busy and answer.heads == [TrailHead("s-1")]
