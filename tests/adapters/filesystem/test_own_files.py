"""Files of the store itself: only where they may be, and of a key that goes nothing is left."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointConflictError, InvalidIdError
from tests.adapters.filesystem.audits import commit, tell, told

OURS = [
    "holdfast.json",
    "journal/ring-000001",
    "checkpoints/aa/wf/manifest.jsonl",
    "audit/ab/s-1/audit_trail.jsonl",
    "audit/log/order.txt",
    "audit/log/sessions.jsonl",
    "keys",
    "keys/a.tmp",
]


@pytest.mark.parametrize("name", OURS)
def test_what_is_the_stores_alone_has_no_name(store, name):
    [outcome] = store.commit([commit(told(1), files={name: b""})])
    assert isinstance(outcome, InvalidIdError)
    with pytest.raises(InvalidIdError):
        store.file(name)
    assert list(store.leaves()) == []


def test_files_lie_at_their_names(store, root):
    tell(store, files={"audit/log/tile/0/000.p/5": b"tile", "keys/k.json": b"k", "holds/h": b""})
    store.settle()
    assert (root / "audit/log/tile/0/000.p/5").read_bytes() == b"tile"
    assert list(store.files("")) == ["audit/log/tile/0/000.p/5", "holds/h", "keys/k.json"]
    assert list(store.files("audit/log/t")) == ["audit/log/tile/0/000.p/5"]
    tell(store, files={"holds/h": None, "holds/i": b"i", "keys/none": None})
    assert list(store.files("holds/")) == ["holds/i"] and store.file("holds/h") is None


@pytest.mark.parametrize("settled", [True, False])
def test_no_name_is_that_of_a_file_and_of_a_folder(store, settled):
    tell(store, files={"keys/a/b": b"1"})
    if settled:
        store.settle()
    group = [
        commit(files={"keys/a": b""}),
        commit(files={"keys/a/b/c": b""}),
        commit(files={"keys/d": b"", "keys/d/e": b""}),
        commit(files={"keys/f": b""}),
        commit(files={"keys/f/g": b""}),
    ]
    outcomes = [type(outcome) for outcome in store.commit(group)]
    assert outcomes == [InvalidIdError] * 3 + [type(None), InvalidIdError]
    assert (store.file("keys/a"), store.file("keys/a/b/c")) == (None, None)
    store.settle()
    tell(store, files={"keys/a/b": None})
    store.settle()
    assert isinstance(store.commit([commit(files={"keys/a": b""})])[0], InvalidIdError)


def test_commits_of_one_group_see_each_others_files(store):
    first = commit(files={"holds/h": b"1"}, expected_files={"holds/h": None})
    second = commit(files={"holds/h": b"2"}, expected_files={"holds/h": b"1"})
    outcomes = store.commit([first, second, first, commit(files={"holds/h": None, "holds/i": b""})])
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 2 + [CheckpointConflictError, type(None)]
    assert list(store.files("holds/")) == ["holds/i"]


@pytest.mark.parametrize("after", [None, b"another"])
def test_of_a_key_that_goes_nothing_is_left(store, root, after):
    tell(store, files={"keys/k.json": b"key-material"})
    tell(store, files={"keys/k.json": after})
    assert not any(b"key-material" in path.read_bytes() for path in root.rglob("*") if path.is_file())
    assert store.file("keys/k.json") == after


@pytest.mark.parametrize("settled", [True, False])
def test_of_an_answer_that_is_emptied_nothing_is_left(store, root, settled):
    name = "access/answers/20261118/ab.json"
    tell(store, files={name: b'{"answer":{"body":"what was said"}}'})
    if settled:
        store.settle()
    tell(store, files={name: b'{"answer":{"code":"answer_not_kept"}}'})
    store.settle()
    assert not any(b"what was said" in path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_a_reader_sees_files_at_once(store, root):
    reader = FilesystemStore.open(str(root), read_only=True)
    tell(store, files={"holds/h": b"1"})
    assert reader.file("holds/h") == b"1" and list(reader.files("holds/")) == ["holds/h"]
    tell(store, files={"holds/h": None})
    assert reader.file("holds/h") is None and list(reader.files("holds/")) == []
    reader.close()


def test_a_file_that_another_process_made_between_two_looks_is_no_folder(store, monkeypatch):
    tell(store, files={"keys/a": b"1"})
    store.settle()
    monkeypatch.setattr(Files, "size", lambda files, path: None)
    assert store.commit([commit(told(2), files={"keys/a": b"2"})]) == [None]
