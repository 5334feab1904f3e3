"""The statement of a plain commit writes what the general one would, and nothing where that would not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from psycopg import errors

from holdfast.adapters.postgres import plain, statement, trails
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History, blob_name
from holdfast.conformance.trailing import check_trail, numbers, told
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointConflictError, LeaseHeldError, LeaseLostError
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import Head, Transition
from tests.adapters.postgres import server
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

TABLES = ("events", "checkpoints", "audit")


def sent(store, draft, head=None):
    """Send a commit whose entry is chained on top of where the trail stands, or on something else."""
    unit = Unit((draft,), (0,))
    chained = trails.chain_units([unit], store.trail_head if head is None else lambda _: head)
    assert plain.is_plain([unit], chained)
    with store._database.connections.connection() as connection:
        return plain.send(connection, unit, chained)


def begun(store):
    """A workflow of one checkpoint, in a session that has begun."""
    history = History(store)
    history.commit(audit=(told(1),))
    return history


def count(store):
    return [store._database.rows(f"select count(*) from {table}")[0][0] for table in TABLES]


@pytest.mark.parametrize("parts", [{}, {"phase": 3, "stage": "s", "label": "l"}, {"is_checkpoint": False}])
def test_rows_are_those_that_the_general_statement_writes(store, parts):
    other = PostgresStore.open(server.url())
    drafts = {one: begun(one).draft(audit=(told(2),), **parts) for one in (store, other)}
    assert sent(store, drafts[store])
    draft = Unit((drafts[store],), (0,))
    with other._database.connections.connection() as connection:
        chained = trails.chain_units([draft], other.trail_head)
        assert statement.send(connection, [draft], chained) == []
    for table in TABLES:
        query = f"select * from {table} order by {'timestamp, seq' if table != 'checkpoints' else 'sequence'}"
        assert store._database.rows(query) == other._database.rows(query)
    other.close()


def test_what_is_not_where_it_believes_leaves_nothing(store):
    history = begun(store)
    draft, before = history.draft(audit=(told(2),)), count(store)
    away = Head(7, "x", 7, "x")
    for expected in (
        replace(draft.expected, sequence=0),
        replace(draft.expected, checksum="x"),
        replace(draft.expected, event_seq=9),
        replace(draft.expected, event_hash="x"),
        *(Head(), away),
    ):
        assert not sent(store, replace(draft, expected=expected))
    head = store.trail_head("s-1")
    for wrong in (
        replace(head, seq=head.seq + 3),
        replace(head, seq=1),
        replace(head, hash="sha256:" + "0" * 64),
    ):
        assert not sent(store, draft, wrong)
    assert count(store) == before
    assert sent(store, draft)


def test_a_lease_keeps_out_whoever_does_not_hold_it(store):
    history = begun(store)
    lease = store.acquire("W", "ann", 60)
    draft, before = history.draft(audit=(told(2),)), count(store)
    assert not sent(store, draft) and not sent(store, replace(draft, token=lease.token + 1))
    assert isinstance(store.commit([draft])[0], LeaseHeldError)
    assert isinstance(store.commit([replace(draft, token=lease.token + 1)])[0], LeaseLostError)
    assert count(store) == before
    assert sent(store, replace(draft, token=lease.token))
    store.release(lease)
    history.follow(draft)
    late = history.draft(audit=(told(3),))
    assert not sent(store, replace(late, token=lease.token)) and sent(store, late)


def test_a_lease_that_has_expired_keeps_nobody_out(store):
    history = begun(store)
    lease = store.acquire("W", "ann", 0.001)
    while store.lease("W") is not None and store.lease("W").is_live:
        pass
    assert sent(store, history.draft(audit=(told(2),)))
    assert lease.token == 1


def test_who_is_at_the_trail_keeps_others_out(store, url):
    draft = begun(store).draft(audit=(told(2),))
    with transaction(url) as other:
        other.execute("select pg_advisory_xact_lock('audit'::regclass::oid::int, hashtext('s-1'))")
        assert not sent(store, draft)
    assert sent(store, draft)


def test_who_loses_the_race_for_the_event_leaves_no_entry(store, url):
    history = begun(store)
    draft, before = history.draft(audit=(told(2),)), count(store)
    with server.connected(url) as faster, faster.transaction():
        faster.execute(
            "insert into events (workflow_id, seq, timestamp, hash, data) values ('W', %s, '', 'x', '')",
            [draft.events[0].seq],
        )
        with beside(lambda: store.commit([draft])) as future:
            wait_until_blocked(faster)
            faster.execute("commit")
            assert isinstance(future.result()[0], CheckpointConflictError)
            faster.execute("begin")
    assert count(store) == [before[0] + 1, *before[1:]]
    check_trail(store, "s-1")


def test_an_entry_in_its_place_is_met_by_its_key(store, monkeypatch):
    """Nothing but the key of the table stands between two lines in one place, if the look came too early."""
    history = begun(store)
    stands = plain._TEXTS[True].partition("coalesce((select (seq, hash)")
    blind = stands[0] + "true or " + stands[1] + stands[2]
    monkeypatch.setitem(plain._TEXTS, True, blind)
    stale = replace(store.trail_head("s-1"), seq=1)
    with pytest.raises(errors.UniqueViolation):
        sent(store, history.draft(audit=(told(2),)), stale)
    assert numbers(store.trail("s-1")) == [1]


def test_it_reads_no_table_from_end_to_end(store):
    for text in plain._TEXTS.values():
        nulls = ", ".join(["null"] * (max(n for n in range(1, 60) if f"${n}:" in text)))
        with store._database.connections.connection() as connection:
            connection.execute(f"prepare plainly as {text}")
            [(plan,)] = connection.execute(f"explain (format json) execute plainly ({nulls})").fetchall()
            connection.execute("deallocate plainly")
        assert "Seq Scan" not in json.dumps(plan) and "Index" in json.dumps(plan)


def test_a_new_session_is_none_of_its_business(store):
    unit = Unit((History(store).draft(audit=(told(1),)),), (0,))
    assert not plain.is_plain([unit], trails.chain_units([unit], TrailHead))


def test_what_has_more_than_that_goes_the_long_way_whole(store):
    """All that a commit may bring besides is kept, also by who takes its turn."""
    history, said = begun(store), encode_payload({"text": "what was said"}, bytes(32))
    blob = {blob_name(b"b"): b"b"}
    for number, (drawn, added) in enumerate(
        (
            ({"blobs": blob}, {}),
            ({"keyframe": b"k"}, {}),
            ({"transitions": (Transition(1, "failed"),)}, {}),
            ({"needs": tuple(blob)}, {}),
            ({}, {"files": {"keys/a": b"a"}}),
            ({}, {"expected_files": {"keys/a": b"a"}}),
            ({}, {"erased": (("s-1", 3),)}),
        )
    ):
        draft = replace(history.draft(audit=(told(number + 2, stored=said),), **drawn), **added)
        assert not Unit((draft,), (0,)).is_plain
        assert store.commit([draft]) == [None]
        history.follow(draft)
    assert store.file("keys/a") == b"a" and store.blob(blob_name(b"b")) == b"b"
    assert store.payload("s-1", 3) is None and store.payload("s-1", 4) == said
    assert [entry.status for entry in store.entries("W")][:1] == ["failed"]
    check_trail(store, "s-1")


def test_who_meets_others_in_its_session_takes_turns_until_it_is_alone(store, url, monkeypatch):
    """Guessing where a trail stands that others write to costs a round trip, and most often fails."""
    other = PostgresStore.open(url)
    mine, theirs = History(store, "A"), History(other, "B")
    mine.commit(audit=(told(0),))
    guesses, send = [], type(store._committer)._sent

    def noted(self, units, chained):
        guesses.append(units)
        return send(self, units, chained)

    monkeypatch.setattr(type(store._committer), "_sent", noted)
    expected = []
    for is_shared in (True, True, True, False, False, False):
        if is_shared:
            other._committer._heads.compare({"s-1": store.trail_head("s-1")})
            theirs.commit(audit=(told(1),))
        guesses.clear()
        mine.commit(audit=(told(2),))
        expected.append(len(guesses))
    # It guesses wrong once; then it takes turns, the last time to find that nobody was there.
    assert expected == [1, 0, 0, 0, 1, 1]
    check_trail(store, "s-1")
    other.close()


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_takeover_waits_for_it_and_without_the_lock_it_would_not(store, url, monkeypatch, is_locked):
    history = begun(store)
    lease = store.acquire("W", "ann", 60)
    unit = Unit((history.draft(audit=(told(2),), token=lease.token),), (0,))
    if not is_locked:
        monkeypatch.setitem(plain._TEXTS, True, plain._TEXTS[True].replace("for share", ""))
    chained = trails.chain_units([unit], store.trail_head)
    with store._database.connections.connection() as connection, connection.transaction():
        assert plain.send(connection, unit, chained)
        with transaction(url) as other:
            free = other.execute("select 1 from leases for update skip locked").fetchall()
    assert bool(free) is not is_locked
