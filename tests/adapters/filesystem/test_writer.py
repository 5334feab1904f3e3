"""Drafts: offsets continue where the files will end, conflicts name both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.adapters.filesystem import layout, manifest, removal, writer
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.filesystem.writer import Draft, Ends, Standing
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError
from holdfast.domain.record import Commit, Head, Record, Removal
from tests.adapters.filesystem import commits


@pytest.fixture
def files(tmp_path):
    return Files(Disk(str(tmp_path)), Overlay())


@pytest.fixture
def draft(files):
    return Draft(files, Ends(files))


def test_two_commits_of_one_group_follow_each_other(draft):
    first = commits.checkpoint("wf", Head())
    standing = draft.add(first, Standing(Head()))
    second = commits.checkpoint("wf", standing.head)
    draft.add(second, standing)
    assert first.record is not None and second.record is not None
    [deltas] = [op for op in draft.operations if op.path.endswith(".deltas.jsonl")]
    assert (deltas.offset, deltas.data) == (0, first.record.data + second.record.data)


def test_a_tombstone_without_bytes_has_a_line_and_no_file(draft):
    commit = commits.checkpoint("wf", Head())
    assert commit.record is not None
    entry = replace(commit.record.entry, pruned=True, group=0, length=0)
    draft.add(replace(commit, record=Record(entry, b"")), Standing(Head()))
    [lines] = [op.data for op in draft.operations if op.path.endswith("manifest.jsonl")]
    assert not any(op.path.endswith(".deltas.jsonl") for op in draft.operations)
    assert list(manifest.parse(lines).entries.values()) == [entry]


def test_another_head_is_a_conflict_that_names_both(draft):
    with pytest.raises(CheckpointConflictError, match=r"expected checkpoint 0 and event 0.*found 7 and 0"):
        draft.check(commits.checkpoint("wf", Head()), Standing(Head(sequence=7)))


def test_events_never_go_back_to_an_older_file(draft):
    late = Commit("wf", Head(), events=(commits.event("wf", 1, "2026-01-12T00:00:00Z"),))
    standing = draft.add(late, Standing(Head()))
    early = Commit("wf", standing.head, events=(commits.event("wf", 2, "2026-01-11T00:00:00Z"),))
    assert draft.add(early, standing).events_name == "events_2026-01-12.jsonl"


def test_a_blob_is_written_once_and_a_missing_one_is_told(draft):
    data = b"b" * 100
    sha256 = commits.sha256(data)
    for n in range(2):
        commit = Commit(f"w{n}", Head(), blobs={sha256: data}, needs=(sha256,))
        draft.check(commit, Standing(Head()))
        draft.add(commit, Standing(Head()))
    assert sum(op.data == data for op in draft.operations) == 1
    with pytest.raises(CheckpointNotFoundError):
        draft.check(Commit("w", Head(), needs=("f" * 64,)), Standing(Head()))


def test_ends_follow_operations_and_are_bounded(files, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_REMEMBERED_FILES_MAX", 2)
    ends = Ends(files)
    (tmp_path / "a").write_bytes(b"12345")
    assert ends["a"] == 5
    ends.follow([Operation(Kind.WRITE, "a", 5, b"xyz"), Operation(Kind.WRITE, "a", 0, b"x")])
    assert ends["a"] == 8
    for kind in (Kind.REPLACE, Kind.UNLINK):
        ends.follow([Operation(kind, "a", 0, b"x")])
        assert ends["a"] == 5
    ends.follow([Operation(Kind.WRITE, "a", 5, b"x")])
    assert (ends["b"], ends["c"], ends["a"]) == (0, 0, 5)
    ends.follow([Operation(Kind.WRITE, "a", 5, b"x")])
    ends.clear()
    assert ends["a"] == 5


def test_a_write_into_a_file_whose_end_nobody_asked_for_does_not_tell_where_it_ends(files, tmp_path):
    ends = Ends(files)
    (tmp_path / "a").write_bytes(b"12345")
    ends.follow([Operation(Kind.WRITE, "a", 0, b"x")])
    assert ends["a"] == 5


def listed_by_others(root):
    """The manifest as somebody reads it who was not there when it was written."""
    return list(FilesystemStore.open(str(root), read_only=True).entries("wf"))


def test_a_line_leaves_out_what_the_line_before_it_says(store, fill, root):
    fill("wf", 3)
    store.settle()
    lines = (root / layout.workflow_folder("wf") / "manifest.jsonl").read_bytes().splitlines()
    assert [b'"type"' in line for line in lines if b'"seq"' in line] == [True, False, False]
    assert listed_by_others(root) == list(store.entries("wf"))


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_after_a_removal_a_line_says_everything(store, fill, root, limit, monkeypatch):
    """The last checkpoint may be a tombstone then, and says less than it did."""
    planned = removal._manifest_operation
    monkeypatch.setattr(
        removal,
        "_manifest_operation",
        lambda files, folder, kept, gone, _: planned(files, folder, kept, gone, limit),
    )
    fill("wf", 3, session="s-1")
    store.remove("wf", Removal((3,)))
    fill("wf", 2, session="s-1")
    store.settle()
    found = listed_by_others(root)
    assert [entry.session for entry in found] == ["s-1", "s-1", None, "s-1", "s-1"]
    assert found == list(store.entries("wf"))


def test_what_another_store_wrote_is_not_taken_for_our_last_line(store, fill, root):
    fill("wf", 2, session="s-1")
    other = FilesystemStore.open(str(root), background=False)
    commit = commits.checkpoint("wf", other.head("wf"), session="s-2")
    assert other.commit([commit]) == [None]
    other.close()
    fill("wf", 2, session="s-1")
    store.settle()
    assert [entry.session for entry in listed_by_others(root)] == ["s-1", "s-1", "s-2", "s-1", "s-1"]
