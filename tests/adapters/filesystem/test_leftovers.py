"""What belongs to nobody: blobs that nothing names, and nothing that anything might still need."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.leftovers import unnamed_blobs
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.record import Commit, Head
from tests.adapters.filesystem import commits

LEFT = b"left by a dead writer " * 10
KEPT = b"part of a state " * 10


@pytest.fixture
def named(store, fill):
    """Keep a blob that two checkpoints name, and answer its name."""
    sha256 = commits.sha256(KEPT)
    store.commit([Commit("seed", Head(), blobs={sha256: KEPT})])
    fill("wf", 2, blobs=(sha256,))
    return sha256


def leave(root, data=LEFT):
    """Leave a blob as a writer does that dies before it appends; answer its name."""
    path = root / layout.blob_path(commits.sha256(data))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path.name


def unnamed(store, going=""):
    committer = store._committer
    return unnamed_blobs(committer.files, committer.views, going)


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_blob_that_nothing_names_is_found_and_no_other(store, root, named, is_settled):
    left = leave(root)
    if is_settled:
        store.settle()
    assert unnamed(store) == (left,)
    # A workflow that goes as a whole names nothing.
    assert unnamed(store, layout.workflow_folder("wf")) == tuple(sorted((left, named)))


@pytest.mark.parametrize("kept_bytes", [None, 0, 20])
def test_a_blob_stays_that_only_records_behind_damage_name(store, root, named, kept_bytes):
    store.close()
    folder = root / layout.workflow_folder("wf")
    manifest, records = folder / layout.MANIFEST, folder / layout.deltas_name(1)
    if kept_bytes is None:
        manifest.unlink()
    else:
        manifest.write_bytes(manifest.read_bytes()[:kept_bytes])
    # No record can be read any more, so a manifest that is made anew lists none.
    records.write_bytes(b"x" + records.read_bytes()[1:])
    with_store = FilesystemStore.open(str(root), background=False)
    left = leave(root)
    assert unnamed(with_store) == (left,)
    with_store.close()


def test_a_blob_stays_that_something_set_aside_names(store, root, named):
    left = leave(root)
    (root / layout.QUARANTINE).mkdir()
    (root / layout.QUARANTINE / "journal-0.bin").write_bytes(b"{" + left.encode() + b"}")
    assert unnamed(store) == ()


def test_leftovers_are_told_with_their_size_and_what_takes_them_away(store, root, named):
    assert list(store.check()) == []
    leave(root)
    for name in ("staged-0.tmp", "staged-0-1.tmp"):
        (root / "journal" / name).write_bytes(b"12345")
    staged, blobs = store.check()
    assert staged.place == "leftovers: journal" and "2 files with 10 bytes" in staged.problem
    assert blobs.place == "leftovers: blobs" and f"1 file with {len(LEFT)} bytes" in blobs.problem
    assert all(not one.harm and "doctor --fix" in one.problem for one in (staged, blobs))
