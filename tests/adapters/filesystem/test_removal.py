"""Removing: tombstones stay, space comes back, what others need is kept."""

from __future__ import annotations

import secrets

import pytest

import holdfast
from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.frame import Kind
from holdfast.adapters.filesystem.manifest import parse
from holdfast.adapters.filesystem.removal import plan_removal
from holdfast.domain.record import Commit, Head, Removal
from tests.adapters.filesystem import commits


def grouped(store, fill, blobs=()):
    """Three checkpoints in group 1, two in group 3."""
    fill("wf", 3, blobs=blobs)
    store.put_keyframe("wf", commits.keyframe(3, b'{"state": 3}\n'))
    fill("wf", 2, group=3)


def test_a_group_goes_and_its_tombstones_stay(store, fill, root):
    grouped(store, fill)
    freed = store.remove("wf", Removal((1, 2), groups=(1,)))
    assert freed > 0
    assert [(e.sequence, e.pruned) for e in store.entries("wf")][:3] == [(1, True), (2, True), (3, False)]
    assert all(e.checksum for e in store.entries("wf"))
    store.settle()
    folder = root / layout.workflow_folder("wf")
    assert not (folder / layout.deltas_name(1)).exists()
    assert not (folder / layout.keyframe_name(1, "json")).exists()
    assert "checkpoint_000001" not in (folder / "SHA256SUMS").read_text()


def test_a_manifest_too_long_to_rewrite_gets_a_line(store, fill, root):
    grouped(store, fill)
    whole = list(store.entries("wf"))
    plan = plan_removal(
        store._committer.files,
        store._committer.views,
        "wf",
        Removal((1, 2), groups=(1,)),
        rewrite_bytes_max=0,
    )
    path = layout.manifest_path(layout.workflow_folder("wf"))
    (told,) = (op for op in plan.operations if op.path == path)
    assert told.kind is Kind.WRITE
    manifest = parse((store._committer.files.read(path) or b"") + told.data)
    assert [entry.pruned for entry in manifest.entries.values()] == [True, True, False, False, False]
    assert list(manifest.keyframes) == [3] and len(whole) == len(manifest.entries)


def test_removing_nothing_does_nothing(store, fill):
    grouped(store, fill)
    assert store.remove("wf", Removal(())) == 0


def test_a_blob_goes_only_when_nobody_names_it(store, fill):
    data = b"shared" * 10
    sha256 = commits.sha256(data)
    store.commit([Commit("seed", Head(), blobs={sha256: data})])
    grouped(store, fill, blobs=(sha256,))
    fill("other", 1, blobs=(sha256,))
    store.remove("wf", Removal((1, 2, 3), groups=(1,), blobs=(sha256,)))
    assert store.has_blob(sha256)
    store.remove("other", Removal((1,), groups=(1,), blobs=(sha256,)))
    assert not store.has_blob(sha256)


def test_a_removed_record_and_its_blob_stay_while_others_build_on_them(store, fill):
    data = b"needed" * 10
    sha256 = commits.sha256(data)
    store.commit([Commit("seed", Head(), blobs={sha256: data})])
    grouped(store, fill, blobs=(sha256,))
    fill("other", 1, blobs=(sha256,))
    store.remove("wf", Removal((1, 2)))
    assert len(list(store.records("wf", 1, 5))) == 5
    store.remove("other", Removal((1,), groups=(1,), blobs=(sha256,)))
    assert store.has_blob(sha256)


def test_old_event_files_go_the_newest_stays(store, root):
    head = Head()
    for seq, day in enumerate(("10", "11", "12"), 1):
        event = commits.event("wf", seq, f"2026-01-{day}T00:00:00Z")
        commit = commits.checkpoint("wf", head)
        commit = Commit("wf", head, commit.record, commit.keyframe, (event,))
        assert store.commit([commit]) == [None]
        head = commit.head
    store.remove("wf", Removal((1,), events_through=99))
    store.settle()
    assert [p.name for p in root.glob("events/*/wf/*")] == ["events_2026-01-12.jsonl"]
    assert store.head("wf") == head


@pytest.mark.parametrize("erases", [False, True])
def test_a_state_that_was_placed_and_never_listed_goes_with_what_is_erased(store, fill, root, erases):
    grouped(store, fill)
    store.settle()
    folder = root / layout.workflow_folder("wf")
    stray = folder / layout.keyframe_name(9, "json")
    stray.write_bytes(b"placed by a writer that was killed")
    store.remove("wf", Removal((1, 2), groups=(1,), erases=erases))
    store.settle()
    assert stray.exists() is not erases
    assert (folder / layout.keyframe_name(3, "json")).exists() and (folder / layout.deltas_name(3)).exists()


@pytest.mark.parametrize("kept_lines", [0, 2])
def test_a_blob_stays_that_a_workflow_needs_whose_manifest_is_cut_or_gone(tmp_path, kept_lines):
    large = secrets.token_hex(50_000)
    with holdfast.open(str(tmp_path)) as service:
        service.create_checkpoint("A", {"large": large})
        service.create_checkpoint("B", {"n": 0})
        service.create_checkpoint("B", {"n": 1, "large": large})
    manifest = tmp_path / layout.workflow_folder("B") / "manifest.jsonl"
    manifest.write_bytes(b"".join(manifest.read_bytes().splitlines(keepends=True)[:kept_lines]))
    if not kept_lines:
        manifest.unlink()
    with holdfast.open(str(tmp_path)) as service:
        service.erasure.workflow("A", reason="asked for")
        state = service.load_latest("B")
        assert state is not None and state.context == {"n": 1, "large": large}
