"""The truth about each commit, whatever happens between client and server."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import errors

from holdfast.adapters.postgres import batch, statement
from holdfast.adapters.postgres.attempt import Attempt
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.committer import Committer
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    InvalidIdError,
    LeaseHeldError,
    LeaseLostError,
    StoreClosedError,
    StoreNotFoundError,
    StoreReadOnlyError,
    UnstorableValueError,
)
from holdfast.domain.record import Commit, Head, Removal, Transition
from tests.adapters.postgres import server
from tests.adapters.postgres.proxy import Cut, Proxy
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

INSERT_EVENT = "insert into events (workflow_id, seq, timestamp, hash, data) values (%s, %s, '', 'x', '')"


def chain(history, count, **parts):
    """Drafts each on top of the one before."""
    made = []
    for number in range(count):
        made.append(history.draft(text=f"text {number}", **parts))
        history.follow(made[-1])
    return made


def kept(store, workflow_id="W"):
    """What is there of a workflow, as the store tells it."""
    entries = list(store.entries(workflow_id))
    return store.head(workflow_id), [e.sequence for e in entries], len(list(store.events(workflow_id)))


# -- groups -------------------------------------------------------------------------------------------


def test_a_group_is_one_transaction(store, url):
    blob = {blob_name(b"b"): b"b"}
    drafts = [*chain(History(store), 3, keyframe=b"k"), *chain(History(store, "V"), 2, blobs=blob)]
    assert store.commit(drafts) == [None] * 5
    tables = ("events", "checkpoints", "keyframes", "blobs", "blob_uses")
    with server.connected(url) as administrator:
        found = {
            transaction
            for table in tables
            for transaction in administrator.execute(f"select xmin::text from {table}").fetchall()
        }
    assert len(found) == 1


def test_a_group_of_many_workflows_and_shapes_is_kept_whole(store):
    data = b"shared" * 100
    blob = {blob_name(data): data}
    drafts = []
    for number in range(20):
        history = History(store, f"W{number}")
        drafts += chain(history, 1 + number % 3, keyframe=b"k", blobs=blob if number % 2 else None)
    assert store.commit(drafts) == [None] * len(drafts)
    for number in range(20):
        count = 1 + number % 3
        assert kept(store, f"W{number}")[1:] == (list(range(1, count + 1)), count)
        assert len(store.keyframes(f"W{number}")) == count
    assert store.blob(blob_name(data)) == data
    assert [finding for finding in store.check() if finding.harm] == []


def test_a_later_commit_may_fit_after_an_earlier_one_was_refused(store):
    history = History(store)
    wrong = replace(history.draft(text="wrong"), expected=Head(7, "sha256:x", 9, "sha256:y"))
    first, second = chain(history, 2)
    outcomes = store.commit([wrong, first, wrong, second])
    assert isinstance(outcomes[0], CheckpointConflictError) and isinstance(
        outcomes[2], CheckpointConflictError
    )
    assert outcomes[1] is None and outcomes[3] is None
    assert store.head("W") == second.head


def test_errors_of_a_chain_are_objects_of_their_own(store):
    late = chain(History(store), 3)
    History(store).commit()
    outcomes = store.commit(late)
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert all(isinstance(outcome, CheckpointConflictError) for outcome in outcomes)


def test_a_status_may_change_with_and_after_its_checkpoint(store):
    history = History(store)
    history.commit(transitions=(Transition(1, "failed", 3, True),))
    history.commit(transitions=(Transition(1, "completed"),))
    first, second = store.entries("W")
    assert (first.status, first.retry_count, first.pinned) == ("completed", 0, False)
    assert second.status == "active"


def test_a_commit_that_records_something_without_a_row_to_race_for_is_refused(store):
    draft = History(store).draft(keyframe=b"k")
    [outcome] = store.commit([replace(draft, record=None, events=())])
    assert isinstance(outcome, CheckpointWriteError) and "event" in str(outcome)


def test_needs_without_a_record_are_checked_too(store):
    history = History(store)
    draft = replace(history.draft(is_checkpoint=False), needs=(blob_name(b"x"),))
    assert isinstance(store.commit([draft])[0], CheckpointNotFoundError)
    empty = Commit("W", Head(), needs=(blob_name(b"x"),))
    assert isinstance(store.commit([empty])[0], CheckpointNotFoundError)
    History(store, "V").commit(blobs={blob_name(b"x"): b"x"})
    assert store.commit([empty, draft]) == [None, None]


def tombstone(draft):
    """The same checkpoint as it comes from another store that has removed its bytes."""
    entry = replace(draft.record.entry, pruned=True, group=0, length=0, blobs=())
    return replace(draft, record=replace(draft.record, entry=entry, data=b""))


def test_what_a_tombstone_without_bytes_needs_is_checked_too(store):
    history = History(store)
    draft = tombstone(history.draft(needs=(blob_name(b"gone"),)))
    for commits in ([draft], [draft, History(store, "V").draft()]):
        assert isinstance(store.commit(commits)[0], CheckpointNotFoundError)
    assert store.head("W") == Head()


def test_a_tombstone_without_bytes_does_not_keep_blobs_alive(store):
    name = blob_name(b"shared")
    History(store, "V").commit(blobs={name: b"shared"})
    history = History(store)
    draft = tombstone(history.draft(needs=(name,)))
    draft = replace(draft, keyframe=make_keyframe(1, b"k", (name,)), events=())
    assert store.commit([draft]) == [None]
    history.follow(draft)
    history.commit()
    store.remove("V", Removal(sequences=(1,), groups=(1,), blobs=(name,)))
    assert store.blob(name) == b"shared"
    store.remove("W", Removal(sequences=(2,), groups=(1,), blobs=(name,)))
    assert not store.has_blob(name)


def test_an_empty_commit_is_fenced_off_too(store):
    lease = store.acquire("W", "ann", 60)
    assert isinstance(store.commit([Commit("W", Head())])[0], LeaseHeldError)
    assert isinstance(store.commit([Commit("W", Head(), token=lease.token + 1)])[0], LeaseLostError)
    assert store.commit([Commit("W", Head(), token=lease.token)]) == [None]


def test_of_a_chain_only_what_lacks_a_blob_is_refused(store):
    history = History(store)
    first = history.draft()
    history.follow(first)
    second = history.draft(needs=(blob_name(b"gone"),))
    history.follow(second)
    outcomes = store.commit([first, second, history.draft(), History(store, "V").draft()])
    assert outcomes[0] is None and outcomes[3] is None
    assert isinstance(outcomes[1], CheckpointNotFoundError)
    assert isinstance(outcomes[2], CheckpointConflictError)
    assert store.head("W") == first.head


def test_a_chain_that_is_cut_may_hold_commits_that_record_nothing(store):
    history = History(store)
    first = history.draft()
    history.follow(first)
    second = history.draft(needs=(blob_name(b"gone"),))
    outcomes = store.commit([first, Commit("W", first.head), second, Commit("W", second.head)])
    assert outcomes[:2] == [None, None]
    assert isinstance(outcomes[2], CheckpointNotFoundError)
    assert isinstance(outcomes[3], CheckpointConflictError)


def test_of_a_chain_only_what_cannot_be_written_is_refused(store):
    history = History(store)
    first = history.draft()
    history.follow(first)
    outcomes = store.commit([first, history.draft(label="lone \ud800")])
    assert outcomes[0] is None and isinstance(outcomes[1], InvalidIdError)


def test_one_name_that_cannot_be_kept_does_not_harm_the_others(store):
    good = History(store, "good")
    for bad in ("nul\0", "lone \ud800"):
        draft = good.draft()
        stray = replace(History(store, "x").draft(), workflow_id=bad)
        label = History(store, "y").draft(label=bad)
        outcomes = store.commit([stray, draft, label])
        assert isinstance(outcomes[0], InvalidIdError) and isinstance(outcomes[2], InvalidIdError)
        assert outcomes[1] is None
        good.follow(draft)
        assert isinstance(store.commit([stray])[0], InvalidIdError)


def test_what_concerns_all_is_raised(store, url):
    with server.connected(url) as administrator:
        administrator.execute("drop table leases cascade")
    with pytest.raises(StoreNotFoundError, match="leases"):
        store.commit([History(store).draft(), History(store, "V").draft()])


def test_a_store_opened_for_reading_writes_nothing(store, url):
    reader = PostgresStore.open(url, read_only=True)
    draft = History(store).draft()
    with pytest.raises(StoreReadOnlyError):
        reader.commit([draft])
    with pytest.raises(StoreReadOnlyError):
        Committer(reader._database).commit([draft])
    reader.close()


# -- blobs that come and go ---------------------------------------------------------------------------


def test_a_blob_that_goes_while_a_commit_begins_to_use_it_is_sent_again(store, url):
    data = b"wanted twice" * 50
    sha256 = blob_name(data)
    History(store, "V").commit(blobs={sha256: data})
    draft = History(store).draft(blobs={sha256: data})
    with server.connected(url) as other, other.transaction():
        other.execute("delete from blob_uses")
        other.execute("delete from blobs")
        with beside(lambda: store.commit([draft])) as future:
            wait_until_blocked(other)
            other.execute("commit")
            assert future.result() == [None]
            other.execute("begin")
    assert store.blob(sha256) == data


def test_a_blob_that_goes_before_a_commit_that_only_needs_it_is_told(store):
    data = b"needed"
    sha256 = blob_name(data)
    other = History(store, "V")
    other.commit(blobs={sha256: data})
    assert store.has_blob(sha256)
    other.commit(group=2)
    store.remove("V", Removal(sequences=(1,), groups=(1,), blobs=(sha256,)))
    outcomes = store.commit([History(store).draft(needs=(sha256,)), History(store, "U").draft()])
    assert isinstance(outcomes[0], CheckpointNotFoundError) and outcomes[1] is None


def test_a_blob_that_comes_back_or_goes_in_with_the_commit_is_no_hindrance(store, monkeypatch):
    sha256 = blob_name(b"x")
    send, tries = Attempt.send, []

    def fail_first(self, units):
        tries.append(units)
        if len(tries) < 3:
            raise errors.ForeignKeyViolation("gone at this moment")
        return send(self, units)

    monkeypatch.setattr(Attempt, "send", fail_first)
    History(store).commit(blobs={sha256: b"x"})
    assert len(tries) == 3 and store.has_blob(sha256)


def test_blobs_that_never_stay_are_given_up(store, monkeypatch):
    def fail(self, units):
        raise errors.ForeignKeyViolation("gone again")

    monkeypatch.setattr(Attempt, "send", fail)
    [outcome] = store.commit([History(store).draft(blobs={blob_name(b"x"): b"x"})])
    assert isinstance(outcome, CheckpointConflictError) and "come and go" in str(outcome)


def test_a_removal_leaves_a_blob_that_a_commit_begins_to_use_at_that_moment(store, url):
    data = b"kept"
    sha256 = blob_name(data)
    other = History(store, "V")
    other.commit(blobs={sha256: data})
    other.commit(group=2)
    query, values = statement.build([Unit((History(store).draft(needs=(sha256,)),), (0,))])
    removal = Removal(sequences=(1,), groups=(1,), blobs=(sha256,))
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(query, values)
        with beside(lambda: store.remove("V", removal)) as future:
            wait_until_blocked(connection)
            connection.execute("commit")
            future.result()
            connection.execute("begin")
    assert store.blob(sha256) == data


# -- others in the way --------------------------------------------------------------------------------


def test_a_row_that_a_stopped_client_holds_stops_only_its_own_commit():
    url = server.url(lock_seconds="0.2")
    store = PostgresStore.open(url)
    with transaction(url) as stopped:
        stopped.execute(INSERT_EVENT, ["B", 1])
        outcomes = store.commit([History(store, name).draft() for name in ("A", "B", "C")])
        assert outcomes[0] is None and outcomes[2] is None
        assert isinstance(outcomes[1], CheckpointConflictError)
        assert "in the middle of a commit" in str(outcomes[1])
        assert store.head("B") == Head()
    History(store, "B").commit()
    store.close()


def test_two_groups_in_opposite_order_do_not_wait_in_a_circle(store, url):
    with transaction(url) as other:
        other.execute(INSERT_EVENT, ["A", 1])
        with beside(lambda: store.commit([History(store, name).draft() for name in ("B", "A")])) as future:
            wait_until_blocked(other)
            # Were B taken by now, both would wait for each other.
            other.execute("set local lock_timeout = 0; set local deadlock_timeout = '5ms'")
            other.execute(INSERT_EVENT, ["B", 1])
            other.execute("rollback")
            assert future.result() == [None, None]
            other.execute("begin")


def test_without_order_they_do(store, url, monkeypatch):
    """The negative control; what then happens is repeated, so that no caller sees it either."""
    text = statement.text
    monkeypatch.setattr(statement, "text", lambda shape: text(shape).replace("order by workflow_id on", "on"))
    monkeypatch.setattr(batch, "statements", lambda units: [found] if (found := list(units)) else [])
    with transaction(url) as other:
        other.execute(INSERT_EVENT, ["A", 1])
        with beside(lambda: store.commit([History(store, name).draft() for name in ("B", "A")])) as future:
            wait_until_blocked(other)
            other.execute("set local lock_timeout = 0; set local deadlock_timeout = '5ms'")
            with pytest.raises(errors.DeadlockDetected):
                other.execute(INSERT_EVENT, ["B", 1])
            other.execute("rollback")
            assert future.result() == [None, None]
            other.execute("begin")


def test_transactions_that_commit_in_another_order_than_they_began_hide_nothing(store):
    """No reader goes by the order of ids: what becomes visible later is found all the same."""
    late = History(store, "late").draft()
    query, values = statement.build([Unit((late,), (0,))])
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(query, values)
        early = History(store, "early")
        early.commit()
        early.commit()
        assert list(store.workflows()) == ["early"]
    assert sorted(store.workflows()) == ["early", "late"]
    assert store.head("late") == late.head
    assert late.record is not None
    assert [e.sequence for _, e in store.find(late.record.entry.uuid)] == [1]


def test_a_victim_of_a_deadlock_is_sent_again(store, monkeypatch):
    connections = type(store._database.connections)
    connection, tries = connections.connection, []

    @contextmanager
    def victim(self):
        tries.append(self)
        with connection(self) as found:
            if len(tries) == 2:
                raise errors.DeadlockDetected("somebody had to")
            yield found

    drafts = [History(store).draft(), History(store, "V").draft()]
    tries.clear()
    tries.append(None)
    monkeypatch.setattr(connections, "connection", victim)
    assert store.commit(drafts) == [None, None]
    assert len(tries) == 3


def test_a_key_that_is_there_against_all_reason_is_a_conflict(store, monkeypatch):
    def fail(self, units):
        raise errors.UniqueViolation("there already")

    monkeypatch.setattr(Attempt, "send", fail)
    assert isinstance(store.commit([History(store).draft()])[0], CheckpointConflictError)


def test_a_value_that_the_server_refuses_is_told_by_its_commit(store, monkeypatch):
    def fail(self, units):
        raise errors.NumericValueOutOfRange("too large")

    monkeypatch.setattr(Attempt, "send", fail)
    [outcome] = store.commit([History(store).draft()])
    assert isinstance(outcome, UnstorableValueError) and "too large" in str(outcome)


@pytest.mark.parametrize(
    "parts",
    [
        {"phase": 2**70},
        {"token": 2**63},
        {"transitions": (Transition(1, "failed", 2**63), Transition(7, "failed", -(2**70)))},
        {"keyframe": b"k", "state_bytes": 2**63},
    ],
)
def test_a_number_too_large_is_told_by_its_commit_and_harms_no_other(store, parts):
    guilty, good = History(store, "guilty").draft(**parts), chain(History(store, "good"), 2)
    for commits in ([guilty], [good[0], guilty, good[1]]):
        outcomes = store.commit(commits)
        [told] = [outcome for outcome in outcomes if outcome is not None]
        assert outcomes.index(told) == commits.index(guilty)
        assert isinstance(told, UnstorableValueError) and "guilty" in str(told)
    assert store.head("good") == good[1].head and store.head("guilty") == Head()


def test_of_a_chain_only_the_number_too_large_is_refused(store):
    history = History(store)
    first = history.draft()
    history.follow(first)
    outcomes = store.commit([first, history.draft(phase=2**70)])
    assert outcomes[0] is None and isinstance(outcomes[1], UnstorableValueError)
    assert store.head("W") == first.head


# -- a connection that is cut -------------------------------------------------------------------------

MARK = b"sha256:"


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


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_wire_cut_before_the_server_has_all_of_it_loses_nothing_and_doubles_nothing(wire, share):
    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        history.commit()
        wire.arm(Cut(MARK, asked_bytes=10**9))
        history.commit()
        wire.arm(Cut(MARK, asked_bytes=int(wire.asked_bytes * share)))
        history.commit()
        assert wire.was_cut.is_set()
        history.commit()
        assert kept(store) == (history.head, [1, 2, 3, 4], 4)


@pytest.mark.parametrize("answered_bytes", [0, 1, 40])
def test_a_wire_cut_before_the_answer_is_whole_loses_nothing_and_doubles_nothing(wire, answered_bytes):
    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        history.commit()
        for parts in ({}, {"is_checkpoint": False}, {"keyframe": b"k", "blobs": {blob_name(b"b"): b"b"}}):
            wire.arm(Cut(MARK, answered_bytes=answered_bytes))
            history.commit(**parts)
            assert wire.was_cut.is_set()
        assert kept(store) == (history.head, [1, 2, 3], 4)


def test_a_group_whose_answer_is_lost_is_judged_one_by_one(wire):
    with through(wire) as (cuttable, store, _):
        late = History(cuttable, "late").draft(text="late")
        History(store, "late").commit(text="first")
        wire.arm(Cut(MARK, answered_bytes=0))
        outcomes = cuttable.commit(
            [*chain(History(cuttable, "A"), 2), late, *chain(History(cuttable, "B"), 1)]
        )
        assert wire.was_cut.is_set()
        assert outcomes[:2] == [None, None] and outcomes[3] is None
        assert isinstance(outcomes[2], CheckpointConflictError)
        assert kept(store, "A")[1:] == ([1, 2], 2) and kept(store, "B")[1:] == ([1], 1)


def test_the_repeated_rows_wait_for_the_transaction_whose_outcome_is_unknown(wire):
    """The old statement is still under way when its client repeats it: exactly one of them gets in."""
    with through(wire) as (cuttable, store, direct):
        lease = store.acquire("W", "ann", 60)
        history = History(cuttable)
        draft = history.draft(token=lease.token)
        with transaction(direct) as holder:
            holder.execute("select 1 from leases for update")
            wire.arm(Cut(MARK))
            with beside(lambda: cuttable.commit([draft])) as future:
                wait_until_blocked(holder)
                wire.cut_all()
                wait_until_blocked(holder, 2)
                holder.execute("rollback")
                assert future.result() == [None]
                holder.execute("begin")
        assert kept(store) == (draft.head, [1], 1)


def test_without_a_look_at_the_rows_a_lost_answer_would_be_taken_for_a_conflict(wire, monkeypatch):
    """The negative control: whoever is told so commits the same again, on top of itself."""
    monkeypatch.setattr(Committer, "_has_landed", lambda *_: False)
    with through(wire) as (cuttable, store, _):
        wire.arm(Cut(MARK, answered_bytes=0))
        [outcome] = cuttable.commit([History(cuttable).draft(text="once")])
        assert isinstance(outcome, CheckpointConflictError)
        History(cuttable).commit(text="once")
        assert kept(store)[1:] == ([1, 2], 2)


def test_what_others_did_meanwhile_does_not_hide_that_it_had_landed(wire, monkeypatch):
    with through(wire) as (cuttable, store, _):
        history = History(cuttable)
        draft = history.draft()
        await_server = type(cuttable._database.connections).await_server

        def go_on(self, deadline):
            History(store).commit(text="of another")
            await_server(self, deadline)

        monkeypatch.setattr(type(cuttable._database.connections), "await_server", go_on)
        wire.arm(Cut(MARK, answered_bytes=0))
        assert cuttable.commit([draft]) == [None]
        assert kept(store)[1:] == ([1, 2], 2)


def test_another_writer_that_was_faster_is_told_after_a_cut_too(wire, monkeypatch):
    with through(wire) as (cuttable, store, _):
        draft = History(cuttable).draft(text="mine")
        await_server = type(cuttable._database.connections).await_server

        def be_faster(self, deadline):
            History(store).commit(text="of another")
            await_server(self, deadline)

        monkeypatch.setattr(type(cuttable._database.connections), "await_server", be_faster)
        wire.arm(Cut(MARK, asked_bytes=10))
        assert isinstance(cuttable.commit([draft])[0], CheckpointConflictError)
        assert kept(store)[1:] == ([1], 1)


def test_if_the_server_does_not_come_back_the_outcome_is_said_to_be_unknown(wire):
    with through(wire, reconnect_seconds="0.1") as (cuttable, store, _):
        draft = History(cuttable).draft()
        wire._listener.close()
        wire.arm(Cut(MARK, answered_bytes=0))
        with pytest.raises(CheckpointWriteError, match="unknown"):
            cuttable.commit([draft])
        assert store.head("W") == draft.head


def test_if_there_is_no_connection_at_all_nothing_was_recorded(wire):
    with through(wire, reconnect_seconds="0.1") as (cuttable, _, _):
        draft = History(cuttable).draft()
        cuttable._database.connections._discard(cuttable._database.connections._pool)
        wire.close()
        with pytest.raises(CheckpointWriteError, match="nothing was recorded"):
            cuttable.commit([draft])


def test_an_event_removed_before_it_could_be_seen_again_leaves_the_outcome_unknown(wire, monkeypatch):
    with through(wire) as (cuttable, store, _):
        draft = History(cuttable).draft(is_checkpoint=False)
        await_server = type(cuttable._database.connections).await_server

        def remove(self, deadline):
            History(store).commit()
            store.remove("W", Removal(sequences=(), events_through=1))
            await_server(self, deadline)

        monkeypatch.setattr(type(cuttable._database.connections), "await_server", remove)
        wire.arm(Cut(MARK, answered_bytes=0))
        with pytest.raises(CheckpointWriteError, match="unknown"):
            cuttable.commit([draft])


def test_a_place_that_stays_held_leaves_a_repeated_commit_unknown(wire, monkeypatch):
    with through(wire, reconnect_seconds="0.3", lock_seconds="0.1") as (cuttable, _, direct):
        draft = History(cuttable).draft()
        wire.arm(Cut(MARK, asked_bytes=10))
        with transaction(direct) as stopped:
            stopped.execute(INSERT_EVENT, ["W", 1])
            with pytest.raises(CheckpointWriteError, match="unknown"):
                cuttable.commit([draft])


def test_closing_in_the_middle_of_a_repetition_leaves_the_outcome_unknown(wire, monkeypatch):
    with through(wire) as (cuttable, _, _):
        draft = History(cuttable).draft()
        monkeypatch.setattr(type(cuttable._database.connections), "await_server", lambda *_: cuttable.close())
        wire.arm(Cut(MARK, answered_bytes=0))
        with pytest.raises(CheckpointWriteError, match="unknown"):
            cuttable.commit([draft])
        with pytest.raises(StoreClosedError):
            cuttable.commit([draft])


def test_a_backend_that_is_terminated_is_like_a_cut(store, url):
    history = History(store)
    for _ in range(3):
        with store._database.connections.connection() as connection:
            pid = connection.info.backend_pid
        with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
            administrator.execute("select pg_terminate_backend(%s)", [pid])
        history.commit()
    assert kept(store) == (history.head, [1, 2, 3], 3)


def test_a_value_of_a_kind_that_cannot_be_sent_stands_in_nobodys_way(store):
    wrong = History(store, "A").draft(phase="a name")
    drafts = [wrong, *(History(store, name).draft() for name in ("B", "C"))]
    refused, *others = store.commit(drafts)
    assert isinstance(refused, CheckpointWriteError | UnstorableValueError) and others == [None, None]
