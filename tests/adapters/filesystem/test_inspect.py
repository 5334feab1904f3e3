"""Checking a store: nothing said about a sound one, the place named in another."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.domain.record import Commit, Head
from tests.adapters.filesystem import commits


@pytest.fixture
def folder(store, fill, root):
    data = b"blob" * 10
    store.commit([Commit("other", Head(), blobs={commits.sha256(data): data})])
    fill("wf", 3, blobs=(commits.sha256(data),))
    store.settle()
    return root / layout.workflow_folder("wf")


def places(store):
    return [finding.place.rpartition("/")[2] for finding in store.check()]


def test_a_sound_store_has_no_findings(store, folder):
    assert list(store.check()) == []


@pytest.mark.parametrize(
    "name", ["checkpoint_000001.json", "checkpoint_000001.deltas.jsonl", "manifest.jsonl"]
)
def test_a_cut_file_is_named(store, folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-2])
    assert name in places(store)


def test_a_missing_keyframe_is_named(store, folder):
    (folder / "checkpoint_000001.json").unlink()
    assert "checkpoint_000001.json" in places(store)


def test_a_damaged_manifest_harms_nothing(store, folder):
    (folder / "manifest.jsonl").write_bytes(b"x")
    assert [finding.harm for finding in store.check()] == [False]


def test_a_wrong_blob_is_named(store, folder, root):
    (blob,) = root.glob("blobs/*/*")
    blob.write_bytes(b"other")
    assert places(store) == [blob.name]


def test_a_blob_that_a_checkpoint_needs_and_is_gone_is_named(store, folder, fill, root):
    data = b"needed" * 10
    fill("wf", 1, blobs=(commits.sha256(data),))
    store.commit([Commit("other", Head(), blobs={commits.sha256(data): data})])
    store.settle()
    assert places(store) == []
    (root / layout.blob_path(commits.sha256(data))).unlink()
    assert places(store) == [commits.sha256(data)]


def test_what_is_in_quarantine_is_told(store, folder, root):
    quarantine.set_aside(Disk(str(root)), "journal", "flipped", b"x")
    assert [finding.problem for finding in store.check()] == ["flipped"]


def test_stats_tell_what_takes_the_space(store, folder):
    stats = store.stats()
    assert stats["kinds"]["checkpoints"]["files"] == 4 and stats["kinds"]["blobs"]["bytes"] == 40
    assert stats["bytes"] > 0


def test_a_manifest_that_was_made_anew_harms_nothing_either(store, folder, root):
    path = str((folder / "manifest.jsonl").relative_to(root))
    quarantine.set_aside(Disk(str(root)), path, "flipped", b"x")
    [finding] = store.check()
    assert not finding.harm and finding.problem.startswith("flipped; it is a view and was made anew")
