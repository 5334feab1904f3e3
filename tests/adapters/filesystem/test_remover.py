"""Removals that take along what killed writers left, and those that do not look for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.leftovers import unnamed_blobs
from holdfast.adapters.filesystem.staging import Staging, staged_files
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.record import Removal
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.test_leftovers import LEFT, leave

EVERYTHING = Removal((1, 2), groups=(1,), erases=True)


def leave_staged(root: Path) -> None:
    dead = Staging(Disk(str(root)))
    dead.add(1, "blobs/aa/never", LEFT)
    dead.let_go()


def test_an_erasure_takes_along_what_killed_writers_left(store, fill, root):
    fill("wf", 2)
    left = leave(root)
    leave_staged(root)
    assert store.remove("wf", EVERYTHING) > 2 * len(LEFT)
    assert not store.has_blob(left) and staged_files(Disk(str(root))) == []
    store.settle()
    assert not any(LEFT in path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("has_key", [False, True])
def test_another_removal_looks_for_it_only_where_a_writer_left_its_key(store, fill, root, has_key):
    fill("wf", 2)
    store.put_keyframe("wf", commits.keyframe(2, b'{"state": 2}\n'))
    left = leave(root)
    if has_key:
        leave_staged(root)
    store.remove("wf", Removal((1,), groups=(1,)))
    assert store.has_blob(left) is not has_key
    assert staged_files(Disk(str(root))) == []


def test_a_sweep_takes_away_what_is_left_and_nothing_else(store, fill, root):
    data = b"part of a state " * 10
    sha256 = commits.sha256(data)
    fill("wf", 1, blobs=(sha256,))
    leave(root, data)
    assert store.sweep() == 0
    left = leave(root)
    leave_staged(root)
    assert store.sweep() == 2 * len(LEFT)
    assert store.has_blob(sha256) and not store.has_blob(left)
    assert list(store.check()) == []


def test_a_blob_that_is_named_at_the_last_moment_stays(store, fill, root, monkeypatch):
    left = leave(root)

    def named_since(*arguments):
        found = unnamed_blobs(*arguments)
        fill("late", 1, blobs=(left,))
        return found

    monkeypatch.setattr("holdfast.adapters.filesystem.remover.unnamed_blobs", named_since)
    assert store.sweep() == 0
    assert store.has_blob(left)


def test_who_refers_to_a_blob_that_was_swept_meanwhile_is_told(store, fill, root):
    head = fill("wf", 1)
    left = leave(root)
    assert store.has_blob(left)
    store.sweep()
    [refused] = store.commit([replace(commits.checkpoint("wf", head, blobs=(left,)), needs=(left,))])
    assert isinstance(refused, CheckpointNotFoundError) and "was collected" in str(refused)
