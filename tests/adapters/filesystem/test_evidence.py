"""Evidence out of files: raw, cut short or not, also where the manifest is lost."""

from __future__ import annotations

import pytest

from holdfast.conformance.history import History, blob_name


@pytest.fixture
def history(store):
    history = History(store)
    history.commit(keyframe=b"state", blobs={blob_name(b"b"): b"b"})
    for _ in range(3):
        history.commit()
    store.settle()
    return history


@pytest.fixture
def folder(history, root):
    [manifest] = root.glob("checkpoints/*/*/manifest.jsonl")
    return manifest.parent


def test_what_is_not_applied_yet_is_evidence_too(store):
    history = History(store)
    history.commit(keyframe=b"state")
    assert list(store.evidence("W", 1)) == [("record", history.records[1]), ("keyframe", b"state")]


def test_changed_files_are_given_as_they_are(store, history, folder, root):
    (folder / "checkpoint_000001.json").write_bytes(b"spoilt")
    [blob] = root.glob("blobs/*/*")
    blob.write_bytes(b"other")
    assert list(store.evidence("W", 1))[1:] == [
        ("keyframe", b"spoilt"),
        (f"blob-{blob_name(b'b')}", b"other"),
    ]


def test_of_a_record_that_is_cut_short_there_is_the_rest(store, history, folder):
    deltas = folder / "checkpoint_000001.deltas.jsonl"
    deltas.write_bytes(deltas.read_bytes()[:-20])
    assert list(store.evidence("W", 4)) == [("record", history.records[4][:-20])]


def test_of_records_whose_file_is_gone_there_is_nothing(store, history, folder):
    (folder / "checkpoint_000001.deltas.jsonl").unlink()
    assert list(store.evidence("W", 3)) == []


def test_where_the_manifest_is_lost_too_everything_behind_the_last_known_record_is_evidence(
    store, history, folder
):
    deltas = folder / "checkpoint_000001.deltas.jsonl"
    spoilt = deltas.read_bytes().replace(history.records[3], b"?" + history.records[3][1:])
    deltas.write_bytes(spoilt)
    (folder / "manifest.jsonl").unlink()
    rest = b"?" + history.records[3][1:] + history.records[4]
    assert list(store.evidence("W", 3)) == list(store.evidence("W", 4)) == [("record", rest)]
    assert list(store.evidence("W", 2)) == [("record", history.records[2])]
