"""Derived keyframes: stored once, only where the checkpoint is, with the sums of what they seal."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.follower import Follower
from holdfast.adapters.filesystem.keyframing import add_keyframe, damaged_keyframe, sums_of_sealed
from holdfast.adapters.filesystem.writer import Draft, Ends
from holdfast.conformance.history import History, make_keyframe
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.record import Keyframe
from tests.adapters.filesystem import commits


@pytest.fixture
def seen(store, fill, root):
    fill("wf", 3)
    fill("wf", 2, group=3)
    follower = Follower(Disk(str(root)))
    follower.refresh()
    yield follower
    follower.close()


def test_a_keyframe_seals_the_groups_before_the_newest(seen):
    sums = sums_of_sealed(seen.files, seen.views.manifest("wf"))
    assert list(sums) == [1]
    draft = Draft(seen.files, Ends(seen.files))
    add_keyframe(draft, seen.views, "wf", commits.keyframe(5), sums)
    written = {operation.path.rpartition("/")[2]: operation.data for operation in draft.operations}
    assert list(written) == ["checkpoint_000005.json", "SHA256SUMS", "manifest.jsonl"]
    sealed = written["SHA256SUMS"].splitlines()
    assert len(sealed) == 2 and sealed[-1] == f"{sums[1]}  checkpoint_000001.deltas.jsonl".encode()


@pytest.mark.parametrize("sequence", [1, 99])
def test_one_that_is_there_or_has_no_checkpoint_is_left_out(seen, sequence):
    draft = Draft(seen.files, Ends(seen.files))
    add_keyframe(draft, seen.views, "wf", commits.keyframe(sequence), {})
    assert draft.operations == []


def test_a_keyframe_whose_blob_went_meanwhile_is_not_stored(store, fill, root):
    fill("wf", 3)
    data = b"large " * 10
    sha256 = commits.sha256(data)
    blob = root / layout.blob_path(sha256)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(data)
    assert store.has_blob(sha256)
    store.sweep()
    with pytest.raises(CheckpointNotFoundError, match="was collected"):
        store.put_keyframe("wf", commits.keyframe(3, blobs=(sha256,)))
    assert [one.sequence for one in store.keyframes("wf")] == [1]


def folder_of(root):
    [manifest] = root.glob("checkpoints/*/*/manifest.jsonl")
    return manifest.parent


@pytest.fixture
def spoilt(store, root):
    """A store with two keyframes, of which the second was changed."""
    history = History(store)
    history.commit(keyframe=b"one")
    history.commit()
    store.put_keyframe("W", make_keyframe(2, b"two"))
    history.commit(group=2)
    store.settle()
    (folder_of(root) / "checkpoint_000002.json").write_bytes(b"tw0")
    return store


def test_a_damaged_keyframe_is_told_from_a_whole_one(spoilt):
    views = spoilt._fresh()
    listed = views.manifest("W")
    assert damaged_keyframe(views, listed, 1) is None and damaged_keyframe(views, listed, 9) is None
    assert damaged_keyframe(views, listed, 2) == spoilt.keyframes("W")[1]


@pytest.mark.parametrize("data", [b"two", b"another two", b"large" * 20_000])
@pytest.mark.parametrize("suffix", ["json", "msgpack.zst"])
def test_a_damaged_keyframe_gives_way_and_the_sums_are_right_again(spoilt, root, data, suffix):
    new = make_keyframe(2, data)
    spoilt.put_keyframe("W", Keyframe(replace(new.entry, suffix=suffix), data))
    assert spoilt.keyframe("W", 2) == data
    spoilt.settle()
    folder = folder_of(root)
    assert [path.name for path in folder.glob("checkpoint_000002.*") if "deltas" not in path.name] == [
        f"checkpoint_000002.{suffix}"
    ]
    subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=True)
    sums = (folder / "SHA256SUMS").read_text()
    assert sums.count("checkpoint_000002.") == 1 and "checkpoint_000001.json" in sums
    assert [finding for finding in spoilt.check() if finding.harm] == []


@pytest.mark.parametrize("data", [b"another", b"large" * 20_000])
def test_a_whole_keyframe_stays_whatever_its_size(spoilt, root, data):
    spoilt.put_keyframe("W", make_keyframe(1, data))
    spoilt.settle()
    assert spoilt.keyframe("W", 1) == b"one"
    assert (folder_of(root) / "checkpoint_000001.json").read_bytes() == b"one"


def test_a_keyframe_whose_file_is_gone_is_written_again(spoilt, root):
    (folder_of(root) / "checkpoint_000002.json").unlink()
    spoilt.put_keyframe("W", make_keyframe(2, b"two"))
    assert spoilt.keyframe("W", 2) == b"two"


def test_sealed_files_are_summed_once_and_those_that_were_are_not_read_again(store, fill, root, monkeypatch):
    for group in range(1, 13, 3):
        fill("wf", 3, group=group)
    store.put_keyframe("wf", commits.keyframe(12))
    fill("wf", 3, group=13)
    store.put_keyframe("wf", commits.keyframe(15))
    follower = Follower(Disk(str(root)))
    follower.refresh()
    read, looked = follower.files.read, list[str]()

    def noting(path, *span):
        looked.append(path)
        return read(path, *span)

    monkeypatch.setattr(follower.files, "read", noting)
    assert sums_of_sealed(follower.files, follower.views.manifest("wf")) == {}
    follower.close()
    assert [path for path in looked if path.endswith(".deltas.jsonl")] == []
    store.settle()
    subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder_of(root), capture_output=True, check=True)
    named = [line.split()[1] for line in (folder_of(root) / "SHA256SUMS").read_text().splitlines()]
    assert [name for name in named if "deltas" in name] == [
        f"checkpoint_{group:06d}.deltas.jsonl" for group in (1, 4, 7, 10)
    ]
