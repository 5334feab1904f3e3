"""Sessions that several write to, files that are compared, and commits whose answer was lost."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial

import pytest
from psycopg import errors

from holdfast.adapters.postgres import trails, turns
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.postgres.turns import Turn
from holdfast.conformance.history import History, blob_name, in_threads
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    StoreClosedError,
)
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import Commit, Head, Removal
from tests.adapters.postgres import server
from tests.adapters.postgres.proxy import Cut, Proxy
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

TAKE_SESSION = "select pg_advisory_xact_lock('audit'::regclass::oid::int, hashtext(%s))"
#: What the statement of a commit with entries holds; and what ends a transaction of several.
MARK, END = b"AGENT_DECISION", b"COMMIT"


@pytest.fixture
def wire():
    proxy = Proxy()
    yield proxy
    proxy.close()


@contextmanager
def through(wire, **query):
    """A store behind a wire that can be cut, and the same store past it."""
    asked = {"reconnect_seconds": "60", "lock_seconds": "30", **query}
    direct = server.url(**asked)
    schema = direct.partition("schema=")[2].partition("&")[0]
    cuttable = PostgresStore.open(server.at(wire.host, schema=schema, **asked))
    store = PostgresStore.open(direct)
    yield cuttable, store, direct
    cuttable.close()
    store.close()


def check_told(store, wanted):
    """The trail holds exactly these, and the tree every entry once."""
    assert numbers(store.trail("s-1")) == wanted
    check_trail(store, "s-1")
    size = store.integrate()
    assert sorted(store.leaves()) == sorted(store.trail("s-1")) and size == len(wanted) + 1
    assert [finding for finding in store.check() if finding.harm] == []


# -- others in the same session -----------------------------------------------------------------------


def test_a_commit_waits_for_its_turn_in_a_session(store, url):
    with transaction(url) as other:
        other.execute(TAKE_SESSION, ["s-1"])
        group = [History(store).draft(audit=(told(1),)), about_the_store(told(2))]
        with beside(lambda: store.commit(group)) as future:
            wait_until_blocked(other)
            assert store.commit([History(store, "V").draft(audit=(told(1, "s-2"),))]) == [None]
            assert not future.done()
            other.execute("rollback")
            assert future.result() == [None, None]
            other.execute("begin")
    check_trail(store, "s-2")
    assert numbers(store.trail("s-1")) == [1, 2]


def test_a_session_that_stays_held_stops_its_own_commits_only(monkeypatch):
    # Who is slow in its turn must not lose it: what is repeated then ends otherwise.
    monkeypatch.setattr(trails, "_idle", lambda lock_seconds: "60s")
    url = server.url(lock_seconds="0.2")
    store = PostgresStore.open(url)
    with transaction(url) as stopped:
        stopped.execute(TAKE_SESSION, ["s-1"])
        group = [History(store, name).draft(audit=(told(1, f"s-{name}"),)) for name in ("0", "1", "2")]
        outcomes = store.commit(group)
        assert outcomes[0] is None and outcomes[2] is None
        assert isinstance(outcomes[1], CheckpointConflictError) and "session" in str(outcomes[1])
        assert store.head("1") == Head()
    assert store.commit([group[1]]) == [None]
    store.close()


def test_a_client_that_stops_in_its_turn_loses_it_before_the_others_lose_their_patience(monkeypatch):
    store = PostgresStore.open(server.url(lock_seconds="6", reconnect_seconds="60"))
    record = Turn._do
    stopped: list[object] = []

    def stop_once(self, connection, heads):
        done = record(self, connection, heads)
        if not stopped:
            stopped.append(connection)
            assert store.commit([about_the_store(told(1))]) == [None]
        return done

    with transaction_of(store, "s-1") as release:
        monkeypatch.setattr(Turn, "_do", stop_once)
        with beside(lambda: store.commit([about_the_store(told(2))])) as future:
            release()
            assert future.result() == [None]
    assert stopped and numbers(store.trail("s-1")) == [1, 2]
    check_trail(store, "s-1")
    store.close()


@contextmanager
def transaction_of(store, session_id):
    """Hold a session until told to let it go."""
    with store._database.connections.connection() as connection, connection.transaction(force_rollback=True):
        connection.execute(TAKE_SESSION, [session_id])

        def release():
            wait_until_blocked(connection)
            connection.execute("rollback")
            connection.execute("begin")

        yield release


def test_many_threads_and_stores_in_one_session_never_conflict(url):
    stores = [PostgresStore.open(url) for _ in range(3)]

    def work(number):
        history = History(stores[number % 3], f"W{number}")
        for at in range(8):
            history.commit(audit=(told(100 * number + at),))
            stores[number % 3].commit([about_the_store(told(100 * number + 50 + at))])

    in_threads([partial(work, number) for number in range(6)])
    found = numbers(stores[0].trail("s-1"))
    assert sorted(found) == sorted(100 * n + 50 * k + at for n in range(6) for k in (0, 1) for at in range(8))
    check_trail(stores[0], "s-1")
    assert stores[0].integrate() == 97
    for store in stores:
        store.close()


def test_of_a_group_in_its_turn_only_what_is_refused_is_left_out(store, url):
    late = History(store, "late").draft(audit=(told(7),))
    History(store, "late").commit(text="faster")
    lacking = History(store, "B").draft(audit=(told(8),), needs=(blob_name(b"gone"),))
    group = [History(store, "A").draft(audit=(told(1),)), late, about_the_store(told(2))]
    with transaction(url) as other:
        other.execute(TAKE_SESSION, ["s-1"])
        with beside(lambda: store.commit([*group, lacking])) as future:
            wait_until_blocked(other)
            other.execute("rollback")
            outcomes = future.result()
            other.execute("begin")
    assert outcomes[0] is None and outcomes[2] is None
    assert isinstance(outcomes[1], CheckpointConflictError)
    assert isinstance(outcomes[3], CheckpointNotFoundError)
    assert sorted(numbers(store.trail("s-1"))) == [1, 2]
    check_trail(store, "s-1")


def test_a_commit_that_tells_and_records_nothing_must_be_where_it_believes(store):
    history = History(store)
    history.commit()
    assert store.commit([Commit("W", history.head, audit=(told(1),))]) == [None]
    [outcome] = store.commit([Commit("W", Head(), audit=(told(2),))])
    assert isinstance(outcome, CheckpointConflictError)
    assert numbers(store.trail("s-1")) == [1]


# -- files --------------------------------------------------------------------------------------------


def test_of_all_who_create_or_replace_a_file_at_once_one_does(url):
    stores = [PostgresStore.open(url) for _ in range(4)]
    counts = [0] * 4

    def work(number):
        for _ in range(10):
            while True:
                before = stores[number].file("keys/count")
                after = b"%d" % (int(before or b"0") + 1)
                commit = about_the_store(
                    told(number), files={"keys/count": after}, expected_files={"keys/count": before}
                )
                [outcome] = stores[number].commit([commit])
                if outcome is None:
                    counts[number] += 1
                    break
                assert isinstance(outcome, CheckpointConflictError)

    in_threads([partial(work, number) for number in range(4)])
    assert counts == [10] * 4 and stores[0].file("keys/count") == b"40"
    assert check_trail(stores[0], "s-1").seq == 41
    for store in stores:
        store.close()


def test_without_the_lock_two_would_replace_the_same(store, url, monkeypatch):
    """The negative control: what was compared is not what is replaced."""
    monkeypatch.setattr(trails, "_LOCK", "select 1")
    other = PostgresStore.open(url)
    outcomes: list[object] = []

    def be_faster(transaction, commit):
        if not outcomes:
            outcomes.append("begun")
            outcomes.extend(other.commit([expecting(None, b"other")]))
        keep(transaction, commit)

    keep = turns._keep_files
    monkeypatch.setattr(turns, "_keep_files", be_faster)
    assert store.commit([expecting(None, b"mine")]) == [None]
    assert outcomes == ["begun", None]
    other.close()


def expecting(before, after):
    return about_the_store(files={"keys/a": after}, expected_files={"keys/a": before})


def test_files_go_in_with_a_workflows_commit_or_not_at_all(store):
    history = History(store)
    late = Commit("W", Head(), audit=(told(1),), files={"keys/w": b"late"})
    draft = history.draft(audit=(told(2),))
    with_file = Commit(
        "W", draft.expected, draft.record, None, draft.events, audit=draft.audit, files={"keys/w": b"1"}
    )
    assert store.commit([with_file]) == [None]
    [outcome] = store.commit([late])
    assert isinstance(outcome, CheckpointConflictError)
    assert store.file("keys/w") == b"1" and numbers(store.trail("s-1")) == [2]


def test_many_files_are_replaced_and_removed_at_once(store):
    files = {f"audit/log/tile/0/{n:03}": b"%d" % n for n in range(300)}
    assert store.commit([about_the_store(files=files)]) == [None]
    changed = {name: None if n % 2 else b"" for n, name in enumerate(files)}
    assert store.commit([about_the_store(files=changed)]) == [None]
    assert list(store.files("audit/")) == sorted(name for name in changed if changed[name] is not None)
    assert store.file("audit/log/tile/0/000") == b""


def test_the_room_of_erased_payloads_is_given_back_at_once(store):
    secret = encode_payload({"why": os.urandom(100_000).hex()}, bytes(32))
    store.commit([about_the_store(told(1, stored=secret))])
    lines = list(store.trail("s-1"))
    before = store.stats()["table_bytes"]["audit"]
    assert store.commit([about_the_store(told(2), erased=(("s-1", 2), ("s-1", 99)))]) == [None]
    assert store.payload("s-1", 2) is None and list(store.trail("s-1"))[:2] == lines
    assert store.stats()["table_bytes"]["audit"] < before / 2
    check_trail(store, "s-1")


# -- answers that were lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_wire_cut_before_the_server_has_all_of_it_loses_and_doubles_no_entry(wire, share):
    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        history.commit(audit=(told(0),))
        wire.arm(Cut(MARK, asked_bytes=10**9))
        history.commit(audit=(told(1),))
        wire.arm(Cut(MARK, asked_bytes=int(wire.asked_bytes * share)))
        history.commit(audit=(told(2),))
        assert wire.was_cut.is_set()
        wire.arm(Cut(MARK, asked_bytes=int(wire.asked_bytes * share)))
        assert cuttable.commit([about_the_store(told(3))]) == [None]
        check_told(store, [0, 1, 2, 3])


@pytest.mark.parametrize("answered_bytes", [0, 1, 40])
def test_a_wire_cut_before_the_answer_is_whole_loses_and_doubles_no_entry(wire, answered_bytes):
    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        history.commit(audit=(told(0),))
        for number, parts in enumerate(({}, {"is_checkpoint": False}, {"keyframe": b"k"}), start=1):
            wire.arm(Cut(MARK, answered_bytes=answered_bytes))
            history.commit(audit=(told(number),), **parts)
            assert wire.was_cut.is_set()
        wire.arm(Cut(MARK, answered_bytes=answered_bytes))
        assert cuttable.commit([about_the_store(told(4)), about_the_store(told(5))]) == [None, None]
        assert wire.was_cut.is_set()
        check_told(store, [0, 1, 2, 3, 4, 5])
        assert store.head("W") == history.head


def test_a_group_whose_answer_is_lost_is_judged_as_a_whole(wire):
    with through(wire) as (cuttable, store, _):
        group = [History(cuttable, name).draft(audit=(told(n),)) for n, name in enumerate("AB")]
        wire.arm(Cut(MARK, answered_bytes=0))
        assert cuttable.commit([*group, about_the_store(told(2))]) == [None] * 3
        assert wire.was_cut.is_set()
        check_told(store, [0, 1, 2])


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("has_workflow", [True, False])
def test_what_others_did_meanwhile_does_not_hide_what_became_of_it(wire, monkeypatch, landed, has_workflow):
    with through(wire) as (cuttable, store, _):
        connections = type(cuttable._database.connections)
        await_server = connections.await_server

        def go_on(self, deadline):
            assert store.commit([about_the_store(told(9))]) == [None]
            await_server(self, deadline)

        history = History(cuttable)
        commit = history.draft(audit=(told(1),)) if has_workflow else about_the_store(told(1))
        monkeypatch.setattr(connections, "await_server", go_on)
        wire.arm(Cut(MARK, answered_bytes=0) if landed else Cut(MARK, asked_bytes=10))
        assert cuttable.commit([commit]) == [None]
        check_told(store, [1, 9] if landed else [9, 1])


def test_without_a_look_at_the_entries_they_would_be_told_twice(wire, monkeypatch):
    """The negative control."""
    monkeypatch.setattr(Turn, "_has_landed", lambda *_: False)
    with through(wire) as (cuttable, store, _):
        wire.arm(Cut(MARK, answered_bytes=0))
        assert cuttable.commit([about_the_store(told(1))]) == [None]
        assert numbers(store.trail("s-1")) == [1, 1]


def test_the_repetition_waits_for_the_statement_whose_outcome_is_unknown(wire):
    with through(wire) as (cuttable, store, direct):
        lease = store.acquire("W", "ann", 60)
        draft = History(cuttable).draft(token=lease.token, audit=(told(1),))
        with transaction(direct) as holder:
            holder.execute("select 1 from leases for update")
            wire.arm(Cut(MARK))
            with beside(lambda: cuttable.commit([draft])) as future:
                wait_until_blocked(holder)
                wire.cut_all()
                holder.execute("rollback")
                assert future.result() == [None]
                holder.execute("begin")
        assert store.head("W") == draft.head
        check_told(store, [1])


@pytest.mark.parametrize(
    "cut", [Cut(END, answered_bytes=0), Cut(END, asked_bytes=0), Cut(b"insert into files", asked_bytes=9)]
)
def test_files_and_their_entries_are_written_once_wherever_the_wire_is_cut(wire, cut):
    with through(wire) as (cuttable, store, _):
        for number in range(3):
            before = None if number == 0 else b"%d" % (number - 1)
            audit = (told(number),) if number != 2 else ()
            commit = about_the_store(
                *audit, files={"keys/a": b"%d" % number}, expected_files={"keys/a": before}
            )
            wire.arm(Cut(cut.marker, cut.asked_bytes, cut.answered_bytes))
            assert cuttable.commit([commit]) == [None]
        assert store.file("keys/a") == b"2"
        check_told(store, [0, 1])


def test_an_event_that_was_removed_since_is_known_by_its_entry(wire, monkeypatch):
    with through(wire) as (cuttable, store, _):
        draft = History(cuttable).draft(is_checkpoint=False, audit=(told(1),))
        await_server = type(cuttable._database.connections).await_server

        def remove(self, deadline):
            History(store).commit()
            store.remove("W", Removal(sequences=(), events_through=1))
            await_server(self, deadline)

        monkeypatch.setattr(type(cuttable._database.connections), "await_server", remove)
        wire.arm(Cut(MARK, answered_bytes=0))
        assert cuttable.commit([draft]) == [None]
        assert numbers(store.trail("s-1")) == [1]


def test_if_the_server_does_not_come_back_the_outcome_is_said_to_be_unknown(wire):
    with through(wire, reconnect_seconds="0.1") as (cuttable, store, _):
        wire._listener.close()
        wire.arm(Cut(MARK, answered_bytes=0))
        with pytest.raises(CheckpointWriteError, match="unknown"):
            cuttable.commit([about_the_store(told(1))])
        assert numbers(store.trail("s-1")) == [1]


def test_if_there_is_no_connection_at_all_nothing_was_recorded(wire):
    with through(wire, reconnect_seconds="0.1") as (cuttable, _, _):
        cuttable._database.connections._discard(cuttable._database.connections._pool)
        wire.close()
        for commit in (about_the_store(told(1)), about_the_store(files={"keys/a": b""})):
            with pytest.raises(CheckpointWriteError, match="nothing was recorded"):
                cuttable.commit([commit])
    with pytest.raises(StoreClosedError):
        cuttable.commit([about_the_store(told(1))])
    with pytest.raises(StoreClosedError):
        cuttable.commit([about_the_store(files={"keys/a": b""})])


def test_a_session_that_stays_held_leaves_a_repeated_commit_unknown(wire):
    patience = {"reconnect_seconds": "0.3", "lock_seconds": "0.1"}
    with through(wire, **patience) as (cuttable, _, direct), transaction(direct) as stopped:
        wire.arm(Cut(MARK, asked_bytes=10))
        stopped.execute(TAKE_SESSION, ["s-1"])
        with pytest.raises(CheckpointWriteError, match="unknown"):
            cuttable.commit([about_the_store(told(1))])


def test_a_victim_of_a_deadlock_takes_its_turn_again(store, monkeypatch):
    record, tries = Turn._do, []

    def victim(self, connection, heads):
        tries.append(self)
        if len(tries) == 1:
            raise errors.DeadlockDetected("somebody had to")
        return record(self, connection, heads)

    monkeypatch.setattr(Turn, "_do", victim)
    assert store.commit([about_the_store(told(1), files={"keys/a": b""})]) == [None]
    assert len(tries) == 2
