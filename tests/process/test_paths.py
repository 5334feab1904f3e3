"""Ids are never paths, modes ignore the umask, links are not followed, foreign stores are refused."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast.bootstrap
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    InvalidIdError,
    StoreNotFoundError,
    UnsupportedVersionError,
)
from holdfast.domain.record import Head
from tests.process import commits

#: Texts that can be no id at all.
NO_IDS = ["", ".", "..", "a\0b", "x" * 500, " padded ", "line\nbreak", "\ud800"]
#: Ids that look like paths, options or devices; they are ids like any other.
ODD_IDS = [
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "..\\..\\b",
    "C:\\x",
    "~root",
    "-rf",
    "con",
    "NUL.txt",
    "$(id)",
    "a" * 255,
]
#: Pairs that some file system takes for the same name.
TWINS = [
    ("workflow", "WORKFLOW"),
    ("caf\u00e9", "cafe\u0301"),
    ("paypal", "p\u0430ypal"),
    ("a", "\uff41"),
    ("x.", "x"),
    ("stra\u00dfe", "strasse"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "inside" / "store"


def commit_one(store: FilesystemStore, workflow_id: str = "WF-0") -> None:
    assert store.commit([commits.make_commit(store.head(workflow_id), workflow_id)]) == [None]


def settled_store(root: Path) -> None:
    """A closed store with every kind of file."""
    store = FilesystemStore.open(str(root), background=False)
    for _ in range(12):
        commit_one(store)
    store.put_keyframe("WF-0", commits.make_keyframe(11))
    store.close()
    with holdfast.bootstrap.open(str(root), blob_threshold_bytes=1000) as service:
        service.create_checkpoint("WF-1", {"text": "b" * 5000})


def everything_below(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        yield from (Path(folder, name) for name in (*folders, *files))


@pytest.mark.parametrize("text", NO_IDS, ids=ascii)
def test_what_can_be_no_id_is_refused_on_write_and_on_read(text: str, root: Path) -> None:
    store = FilesystemStore.open(str(root), background=False)
    before = sorted(everything_below(root))
    for use in (
        lambda: store.head(text),
        lambda: list(store.entries(text)),
        lambda: list(store.records(text, 1, 1)),
        lambda: list(store.events(text)),
        lambda: store.keyframe(text, 1),
        lambda: store.commit([commits.make_commit(Head(), text)]),
    ):
        with pytest.raises(InvalidIdError):
            use()
    assert sorted(everything_below(root)) == before
    store.close()


@pytest.mark.parametrize("workflow_id", ODD_IDS)
def test_an_id_that_looks_like_a_path_stays_in_the_store(
    workflow_id: str, tmp_path: Path, root: Path
) -> None:
    store = FilesystemStore.open(str(root), background=False)
    commit_one(store, workflow_id)
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert [path.name for path in (tmp_path / "inside").iterdir()] == ["store"]
    again = FilesystemStore.open(str(root), read_only=True)
    assert list(again.workflows()) == [workflow_id]
    assert again.head(workflow_id).sequence == 1
    again.close()


@pytest.mark.parametrize(("one", "other"), TWINS, ids=ascii)
def test_ids_that_look_alike_are_different_workflows(one: str, other: str, root: Path) -> None:
    store = FilesystemStore.open(str(root), background=False)
    for count, workflow_id in enumerate((one, other), start=1):
        for _ in range(count):
            commit_one(store, workflow_id)
    store.close()
    again = FilesystemStore.open(str(root), background=False)
    assert sorted(again.workflows()) == sorted((one, other))
    assert (again.head(one).sequence, again.head(other).sequence) == (1, 2)
    again.close()
    folders = [path.name for path in (root / "checkpoints").glob("*/*")]
    assert len({name.casefold() for name in folders}) == 2 and all(name.isascii() for name in folders)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_and_folders_are_for_the_owner_only_whatever_the_umask(umask: int, root: Path) -> None:
    before = os.umask(umask)
    try:
        settled_store(root)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in (root, *everything_below(root))}
    wrong = {
        str(path): oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}


def use_everything(root: Path, *, read_only: bool) -> None:
    """Open a store and do everything with it; errors that are ours are as good as answers."""
    try:
        store = FilesystemStore.open(str(root), read_only=read_only, background=False)
    except CheckpointError:
        return
    reads = [
        lambda: [list(store.records(name, 1, 1)) for name in store.workflows()],
        lambda: list(store.entries("WF-0")),
        lambda: list(store.records("WF-0", 1, 12)),
        lambda: store.keyframe("WF-0", 11),
        lambda: list(store.events("WF-0")),
        lambda: list(store.check()),
        lambda: store.stats(),
    ]
    writes = [lambda: commit_one(store), lambda: commit_one(store, "WF-1"), store.settle, store.close]
    for use in [*reads, *([] if read_only else writes)]:
        try:
            use()
        except CheckpointError:
            continue
    store.close()


@pytest.mark.parametrize("read_only", [False, True], ids=["writer", "reader"])
def test_a_link_planted_in_place_of_anything_is_never_followed(fast_folder: Path, read_only: bool) -> None:
    pattern = fast_folder / "pattern"
    settled_store(pattern)
    for number, found in enumerate(sorted(everything_below(pattern))):
        relative = str(found.relative_to(pattern))
        root, outside = fast_folder / f"{number}" / "store", fast_folder / f"{number}" / "outside"
        shutil.copytree(pattern, root)
        victim = root / relative
        victim.rename(outside)
        victim.symlink_to(outside, target_is_directory=outside.is_dir())
        before = contents(outside)
        use_everything(root, read_only=read_only)
        assert contents(outside) == before, relative
        assert victim.is_symlink() or not relative.startswith(("checkpoints", "events", "blobs")), relative


def contents(path: Path) -> dict[str, bytes]:
    """Everything below a path, or the file itself."""
    if path.is_file():
        return {"": path.read_bytes()}
    files = (found for found in everything_below(path))
    return {str(found): found.read_bytes() if found.is_file() else b"" for found in files}


@pytest.mark.parametrize("name", ["holdfast.json", "journal/ring-000001"])
def test_a_link_in_place_of_what_every_opening_reads_is_refused(
    name: str, root: Path, tmp_path: Path
) -> None:
    settled_store(root)
    (root / name).rename(tmp_path / "outside")
    (root / name).symlink_to(tmp_path / "outside")
    for read_only in (True, False):
        with pytest.raises(CheckpointError):
            FilesystemStore.open(str(root), read_only=read_only).head("WF-0")


def test_a_link_in_place_of_a_record_file_is_refused_on_read(root: Path, tmp_path: Path) -> None:
    settled_store(root)
    (records,) = root.glob("checkpoints/*/wf-0*/checkpoint_000001.deltas.jsonl")
    records.rename(tmp_path / "outside")
    records.symlink_to(tmp_path / "outside")
    store = FilesystemStore.open(str(root), read_only=True)
    with pytest.raises(CheckpointError):
        list(store.records("WF-0", 1, 1))
    store.close()


def test_a_pipe_planted_in_place_of_a_file_does_not_hang_the_reader(root: Path) -> None:
    settled_store(root)
    (manifest,) = root.glob("checkpoints/*/wf-0*/manifest.jsonl")
    manifest.unlink()
    os.mkfifo(manifest)
    use_everything(root, read_only=True)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format": "other", "version": 1, "store_id": "x"}',
        b'{"format": "holdfast"}',
        b'{"format": "holdfast", "version": "one", "store_id": "x"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda data: ascii(data[:40]),
)
def test_a_damaged_or_foreign_settings_file_is_said_and_nothing_is_changed(
    damaged: bytes, root: Path
) -> None:
    settled_store(root)
    (root / "holdfast.json").write_bytes(damaged)
    before = contents(root)
    for read_only in (True, False):
        with pytest.raises(CheckpointCorruptError, match=r"holdfast\.json"):
            FilesystemStore.open(str(root), read_only=read_only)
    assert contents(root) == before


@pytest.mark.parametrize("version", [0, 2, 999])
def test_another_format_version_is_refused_and_nothing_is_changed(version: int, root: Path) -> None:
    settled_store(root)
    fields = json.loads((root / "holdfast.json").read_text())
    (root / "holdfast.json").write_text(json.dumps({**fields, "version": version}))
    before = contents(root)
    for read_only in (True, False):
        with pytest.raises(UnsupportedVersionError, match=str(version)):
            FilesystemStore.open(str(root), read_only=read_only)
    assert contents(root) == before


def test_no_store_is_made_where_none_was_asked_for(tmp_path: Path) -> None:
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(StoreNotFoundError):
            FilesystemStore.open(str(tmp_path / "nothing"), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["manifest.jsonl", "checkpoint_000001.deltas.jsonl"])
def test_a_bomb_of_brackets_in_a_file_is_an_error_of_ours_or_harmless(name: str, root: Path) -> None:
    settled_store(root)
    for found in root.glob(f"checkpoints/*/wf-0*/{name}"):
        found.write_bytes(b"[" * 200_000 + b"\n")
    if name != "manifest.jsonl":
        for found in root.glob("checkpoints/*/wf-0*/manifest.jsonl"):
            found.unlink()
    use_everything(root, read_only=True)


def test_a_bomb_of_brackets_among_the_events_is_an_error_of_ours_or_harmless(root: Path) -> None:
    settled_store(root)
    for found in root.glob("events/*/wf-0*/events_*.jsonl"):
        found.write_bytes(b"[" * 200_000 + b"CHECKPOINT_STATUS\n")
    for found in root.glob("checkpoints/*/wf-0*/manifest.jsonl"):
        found.unlink()
    use_everything(root, read_only=True)
    use_everything(root, read_only=False)
