"""Committing: groups share a sync, lost races cost only themselves, others are followed."""

from __future__ import annotations

import contextlib
import errno

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError, CheckpointWriteError
from holdfast.domain.record import Commit, Head
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


class CountingDisk(Disk):
    syncs = 0

    def sync(self, handle):
        self.syncs += 1
        super().sync(handle)


@pytest.fixture
def disk(root):
    return CountingDisk(str(root))


@pytest.fixture
def counted(disk):
    store = FilesystemStore.open("", disk=disk, journal_bytes=JOURNAL_BYTES, background=False)
    yield store
    store.close()


def test_a_group_costs_one_sync(counted, disk):
    group = [commits.checkpoint(f"w{n}", Head()) for n in range(4)]
    before = disk.syncs
    assert counted.commit(group) == [None] * 4
    assert disk.syncs == before + 1


def test_a_group_too_large_for_one_frame_takes_several(counted, disk):
    group = [commits.checkpoint(f"w{n}", Head(), pad="x" * 2000) for n in range(40)]
    before = disk.syncs
    assert counted.commit(group) == [None] * 40
    assert disk.syncs > before + 1
    assert sorted(counted.workflows()) == sorted(f"w{n}" for n in range(40))


def test_one_lost_race_costs_only_itself(counted):
    good, late = commits.checkpoint("wf", Head()), commits.checkpoint("wf", Head())
    other = commits.checkpoint("other", Head())
    outcomes = counted.commit([good, late, other])
    assert [type(outcome) for outcome in outcomes] == [type(None), CheckpointConflictError, type(None)]


def test_a_collected_blob_fails_the_commit_that_needs_it(counted):
    (outcome,) = counted.commit([Commit("wf", Head(), needs=("f" * 64,))])
    assert isinstance(outcome, CheckpointNotFoundError)


def test_two_openings_follow_each_other(store, fill, root):
    fill("wf", 1)
    other = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    assert other.commit([commits.checkpoint("wf", other.head("wf"))]) == [None]
    assert store.head("wf").sequence == 2
    assert fill("wf", 1).sequence == 3
    assert [entry.sequence for entry in other.entries("wf")] == [1, 2, 3]
    other.close()


def test_a_keyframe_is_put_once_and_seals_the_groups_before(store, fill, root):
    fill("wf", 3)
    keyframe = commits.keyframe(3, b'{"state": 3}\n')
    store.put_keyframe("wf", keyframe)
    fill("wf", 2, group=3)
    store.put_keyframe("wf", keyframe)
    store.put_keyframe("wf", commits.keyframe(5, b'{"state": 5}\n'))
    store.put_keyframe("wf", commits.keyframe(99, b'{"state": 99}\n'))
    assert [entry.sequence for entry in store.keyframes("wf")] == [1, 3, 5]
    store.settle()
    (sums,) = root.glob("checkpoints/*/wf/SHA256SUMS")
    names = [line.split()[1] for line in sums.read_text().splitlines()]
    assert names.count("checkpoint_000001.deltas.jsonl") == 1
    assert "checkpoint_000003.deltas.jsonl" not in names


def test_a_large_keyframe_is_written_beside_the_journal(store, fill):
    fill("wf", 2)
    keyframe = commits.keyframe(2, b"k" * JOURNAL_BYTES)
    store.put_keyframe("wf", keyframe)
    assert store.keyframe("wf", 2) == keyframe.data


def test_a_manifest_that_is_made_anew_costs_no_other_workflow_its_commits(store, fill, root, monkeypatch):
    fill("a", 2)
    fill("b", 2)
    store.settle()
    store.close()
    (root / layout.manifest_path(layout.workflow_folder("a"))).write_bytes(b"no line")
    one, other = (FilesystemStore.open(str(root), background=False) for _ in range(2))
    settler = one._writer().settler
    settle = settler.settle
    late: list[list[Exception | None]] = []

    def overtaken():
        settle()
        if not late:
            late.append(other.commit([commits.checkpoint("b", other.head("b"))]))

    monkeypatch.setattr(settler, "settle", overtaken)
    assert one.commit([commits.checkpoint("a", one.head("a"))]) == [None]
    assert late == [[None]] and one.head("b").sequence == 3
    one.settle()
    one.close()
    other.close()
    with contextlib.closing(FilesystemStore.open(str(root), read_only=True)) as again:
        assert [again.head(name).sequence for name in ("a", "b")] == [3, 3]


@pytest.mark.parametrize("call", ["append", "sync"])
def test_who_reads_while_a_commit_fails_misses_nothing(store, fill, monkeypatch, call):
    fill("wf", 3)
    committer = store._writer()

    def failing(*_):
        raise OSError(errno.ENOSPC, "no room")

    reading = store._fresh()
    with monkeypatch.context() as patch:
        patch.setattr(committer.journal, call, failing)
        with pytest.raises(CheckpointWriteError):
            store.commit([commits.checkpoint("other", Head())])
    assert reading.manifest("wf").last.sequence == 3
    assert store.head("wf").sequence == 3
    assert store.commit([commits.checkpoint("wf", store.head("wf"))]) == [None]
    assert store.head("wf").sequence == 4
