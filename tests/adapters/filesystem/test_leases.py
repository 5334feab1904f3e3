"""Leases on disk: readable files, seen by every process, and never believed when damaged."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.leases import LeaseFile, parse
from holdfast.adapters.filesystem.manifest import summed_line
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import (
    CheckpointCorruptError,
    InvalidIdError,
    LeaseHeldError,
    LeaseLostError,
    StoreReadOnlyError,
)
from holdfast.domain.record import Head, Lease
from holdfast.testing import FixedClock
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.conftest import JOURNAL_BYTES

LINE = (
    b'{"lease":1,"wf":"wf","owner":"ann","token":1,"expires_at":"2026-01-11T12:01:00.000000Z",'
    b'"released":false,"sum":"e9c3936fd82df124"}\n'
)


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def open_store(root, clock):
    opened = []

    def open_store(**options):
        options = {"journal_bytes": JOURNAL_BYTES, "background": False, "clock": clock, **options}
        opened.append(FilesystemStore.open(str(root), **options))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


def file_of(root, workflow_id="wf"):
    return root / layout.lease_path(workflow_id)


def a_commit(store, token=0, workflow_id="wf"):
    return replace(commits.checkpoint(workflow_id, store.head(workflow_id)), token=token)


def outcome(store, token=0, workflow_id="wf"):
    return store.commit([a_commit(store, token, workflow_id)])[0]


def test_a_lease_is_one_line_that_a_person_can_read(store, root):
    store.acquire("wf", "ann", 60)
    store.settle()
    assert file_of(root).read_bytes() == LINE
    store.release(store.lease("wf"))
    store.settle()
    assert b'"token":1' in file_of(root).read_bytes()
    assert b'"released":true' in file_of(root).read_bytes()


def test_a_lease_expires_by_the_clock_of_the_store(store, clock):
    lease = store.acquire("wf", "ann", 60)
    clock.advance(timedelta(seconds=59))
    assert store.lease("wf") == lease
    assert isinstance(outcome(store), LeaseHeldError)
    clock.advance(timedelta(seconds=1))
    assert not store.lease("wf").is_live
    assert outcome(store) is None
    assert store.acquire("wf", "bob", 60).token == 2


def test_openings_of_one_folder_see_each_others_leases_at_once(store, open_store):
    other = open_store()
    assert outcome(other) is None
    lease = store.acquire("wf", "ann", 60)
    assert isinstance(outcome(other), LeaseHeldError)
    assert other.lease("wf") == lease
    assert outcome(other, lease.token) is None
    taken = other.acquire("wf", "ann", 60)
    assert isinstance(outcome(store, lease.token), LeaseLostError)
    store.release(taken)
    assert isinstance(outcome(other, taken.token), LeaseLostError)
    assert outcome(other) is None


def test_a_reader_without_permission_to_write_is_told_the_lease_and_gives_none(store, open_store, clock):
    lease = store.acquire("wf", "ann", 60)
    reader = open_store(read_only=True)
    assert reader.lease("wf") == lease
    store.settle()
    assert reader.lease("wf") == lease
    clock.advance(timedelta(seconds=60))
    assert not reader.lease("wf").is_live
    for call in (
        lambda: reader.acquire("wf", "bob", 60),
        lambda: reader.renew(lease, 60),
        lambda: reader.release(lease),
    ):
        with pytest.raises(StoreReadOnlyError):
            call()


def test_many_renewals_go_through_a_small_journal(store):
    lease = store.acquire("wf", "ann", 60)
    for _ in range(JOURNAL_BYTES // 250):
        store.renew(lease, 60)
    assert store.lease("wf") == lease


def test_an_id_that_is_none_is_refused(store):
    for call in (lambda: store.lease("a\0b"), lambda: store.acquire("x" * 500, "ann", 60)):
        with pytest.raises(InvalidIdError):
            call()


# -- damage --------------------------------------------------------------------------------------


def test_no_flipped_bit_and_no_cut_passes_for_a_lease():
    assert parse(LINE) == LeaseFile(Lease("wf", "ann", 1, "2026-01-11T12:01:00.000000Z"))
    for bit in range(8 * len(LINE)):
        changed = bytearray(LINE)
        changed[bit // 8] ^= 1 << bit % 8
        assert parse(bytes(changed)).lease is None, bit
    for size in range(len(LINE)):
        assert parse(LINE[:size]).lease is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"wf": "wf", "owner": "ann", "token": 1, "released": False},
        {"wf": "wf", "owner": "ann", "token": "one", "expires_at": "2026-01-11T12:01:00Z", "released": False},
        {"wf": "wf", "owner": "ann", "token": 1, "expires_at": "tomorrow", "released": False},
        {"wf": "wf", "owner": "ann", "token": None, "expires_at": 5, "released": False},
    ],
)
def test_a_line_that_is_whole_but_no_lease_is_damage_too(fields):
    assert parse(summed_line(fields)).lease is None


@pytest.fixture
def damaged(store, open_store, root):
    """A store whose lease file has a flipped bit, opened after that; and the lease that was there."""
    lease = store.acquire("wf", "ann", 60)
    assert outcome(store, lease.token) is None
    store.close()
    changed = bytearray(file_of(root).read_bytes())
    changed[40] ^= 4
    file_of(root).write_bytes(changed)
    return open_store(), lease


def test_a_damaged_lease_refuses_commits_of_its_workflow_only(damaged):
    store, lease = damaged
    group = [a_commit(store, lease.token), a_commit(store), a_commit(store, workflow_id="other")]
    outcomes = store.commit(group)
    assert [type(found) for found in outcomes] == [CheckpointCorruptError, CheckpointCorruptError, type(None)]
    assert "Acquire a lease" in str(outcomes[0])
    assert store.head("wf").sequence == 1
    assert store.head("other") == group[2].head
    for call in (
        lambda: store.lease("wf"),
        lambda: store.renew(lease, 60),
        lambda: store.release(lease),
    ):
        with pytest.raises(CheckpointCorruptError, match="lease file is damaged"):
            call()


def test_acquiring_replaces_a_damaged_lease_and_fences_off_everybody_before_it(damaged, root):
    store, lease = damaged
    wrong = file_of(root).read_bytes()
    taken = store.acquire("wf", "bob", 60)
    assert taken.token > lease.token + 1_000_000_000
    assert isinstance(outcome(store, lease.token), LeaseLostError)
    assert outcome(store, taken.token) is None
    assert store.acquire("wf", "bob", 60).token == taken.token + 1
    (kept,) = root.glob("quarantine/*.bin")
    assert kept.read_bytes() == wrong


def test_the_lease_of_another_workflow_is_damage(store, open_store, root):
    for workflow_id in ("wf", "other"):
        store.acquire(workflow_id, "ann", 60)
    store.close()
    file_of(root).write_bytes(file_of(root, "other").read_bytes())
    store = open_store()
    with pytest.raises(CheckpointCorruptError):
        store.lease("wf")
    assert [finding.place for finding in store.check()] == [layout.lease_path("wf")]


def test_a_check_names_a_damaged_lease(damaged):
    store, _ = damaged
    [finding] = store.check()
    assert finding.place == layout.lease_path("wf") and finding.harm
    assert "acquiring a lease" in finding.problem


def test_a_lease_takes_space_that_is_told(store):
    store.acquire("wf", "ann", 60)
    store.settle()
    assert store.stats()["kinds"]["leases"] == {"files": 1, "bytes": len(LINE)}
    assert store.head("wf") == Head()
