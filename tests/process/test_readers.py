"""Readers beside writers: during recycling and prunes, without permission, on copies and read-only mounts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import PermissionDeniedError
from tests.process import commits
from tests.process.commits import Acknowledged
from tests.process.evidence import keep
from tests.process.running import run

#: Nothing gets into the files while a test looks: the journal is far from full, and nobody applies it.
UNAPPLIED = {"background": False, "journal_bytes": 8 * 1024 * 1024, "keyframes": False, "prunes": False}
#: The journal is soon full, and what is then written to the files is forgotten by the disk.
UNWRITTEN = {"background": False, "forgets": "checkpoints/", "keyframes": False, "prunes": False}


class Death(BaseException):
    """Stands for the end of a process at this very place."""


def die(*_: object) -> None:
    raise Death


def commit_one(store: FilesystemStore, workflow_id: str = "WF-0", writer: str = "w") -> None:
    commit = commits.make_commit(store.head(workflow_id), workflow_id, writer=writer)
    assert store.commit([commit]) == [None]


def test_a_frame_that_its_dead_writer_never_published_does_not_blind_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer overwrites it; who had already followed it must follow that one instead."""
    root = str(tmp_path / "store")
    living = FilesystemStore.open(root, background=False)
    commit_one(living)
    reader = FilesystemStore.open(root, read_only=True)
    dying = FilesystemStore.open(root, background=False)
    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr(Page, "publish", die)
        commit_one(dying, writer="dead")
    assert reader.head("WF-0").sequence == 2
    commit_one(living, "WF-1")
    assert reader.head("WF-1").sequence == 1
    assert reader.head("WF-0") == living.head("WF-0")
    reader.close()
    living.close()


def test_hazard_07_a_reader_beside_recycling_and_prunes_sees_no_half_line(
    fast_folder: Path, campaign: bool
) -> None:
    rounds = 5000 if campaign else 30
    result = run("reading", "beside_prunes", root=str(fast_folder / "store"), rounds=rounds)
    keep("readers", "beside recycling and prunes", {"reads": result["reads"]}, result["violations"])
    assert result["violations"] == [] and result["reads"] == rounds


@pytest.mark.parametrize(
    ("name", "broken", "found"),
    [
        ("a reader without what is pending", {"is_blind": True, "plan": UNAPPLIED}, "not seen"),
        ("an applier that tells and does not write", {"plan": UNWRITTEN}, "WF-"),
    ],
)
def test_a_broken_protocol_of_reading_turns_the_harness_red(
    name: str, broken: dict[str, Any], found: str, fast_folder: Path
) -> None:
    """The negative controls."""
    result = run("reading", "beside_prunes", root=str(fast_folder / "store"), rounds=80, **broken)
    keep("readers", f"control: {name}", {"found": len(result["violations"])}, [])
    assert any(found in text for text in result["violations"]), result


def test_hazard_07_a_read_only_copy_is_read_and_not_touched(tmp_path: Path) -> None:
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    told = told_after(store, 20)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "store", copy)
    store.close()
    make_unwritable(copy)
    before = {path: path.lstat().st_mtime_ns for path in copy.rglob("*")}
    # The journal of the copy holds commits that no file has yet.
    assert not any(copy.glob("checkpoints/*"))
    assert run("reading", "as_nobody", root=str(copy), told=told.commits) == []
    assert {path: path.lstat().st_mtime_ns for path in copy.rglob("*")} == before


def test_hazard_07_who_may_not_write_reads_beside_a_writer_and_is_refused_as_one(tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = FilesystemStore.open(str(root), background=False)
    told = told_after(store, 5)
    make_unwritable(root)
    assert run("reading", "as_nobody", root=str(root), told=told.commits) == []
    told_after(store, 5, told)
    store.settle()
    told_after(store, 5, told)
    make_unwritable(root)
    assert run("reading", "as_nobody", root=str(root), told=told.commits) == []
    store.close()


def test_hazard_07_a_store_on_a_read_only_mount_is_read_and_refuses_writes(tmp_path: Path) -> None:
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    told = told_after(store, 12)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    store.close()
    with read_only_mount(tmp_path / "copy") as mounted:
        reader = FilesystemStore.open(str(mounted), read_only=True)
        assert commits.check_store(reader, told) == []
        reader.close()
        with pytest.raises(PermissionDeniedError):
            FilesystemStore.open(str(mounted))


def test_an_auditors_copy_made_while_a_writer_runs_holds_what_was_acknowledged_before(
    fast_folder: Path, campaign: bool
) -> None:
    """The journal is copied first: what is in no file yet is in it, and files only ever gain."""
    rounds = 200 if campaign else 4
    result = run("reading", "copies", root=str(fast_folder), rounds=rounds)
    keep("readers", "copies beside a writer", {"copies": result["reads"]}, result["violations"])
    assert result["violations"] == [] and result["reads"] == rounds


def test_a_copy_without_the_journal_turns_the_harness_red(fast_folder: Path) -> None:
    """The negative control."""
    result = run("reading", "copies", root=str(fast_folder), rounds=1, plan=UNAPPLIED, leave_out="ring-*")
    keep("readers", "control: a copy without the journal", {"found": len(result["violations"])}, [])
    assert any("acknowledged and not there" in text for text in result["violations"]), result


def test_a_commit_that_is_not_there_turns_the_readers_without_rights_red(tmp_path: Path) -> None:
    """The negative control."""
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    told = told_after(store, 3)
    told.note(f"ack WF-0 4 {store.head('WF-0').checksum}")
    store.close()
    make_unwritable(tmp_path / "store")
    found = run("reading", "as_nobody", root=str(tmp_path / "store"), told=told.commits)
    assert any("WF-0@4: acknowledged and lost" in text for text in found), found


def told_after(store: FilesystemStore, count: int, told: Acknowledged | None = None) -> Acknowledged:
    """Commit some and remember what was acknowledged."""
    told = told or Acknowledged()
    for _ in range(count):
        commit_one(store)
        head = store.head("WF-0")
        told.note(f"ack WF-0 {head.sequence} {head.checksum}")
    return told


def make_unwritable(root: Path) -> None:
    """Let everybody read and nobody write; the folders above must let others through."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for folder in root.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)


@contextmanager
def read_only_mount(folder: Path) -> Iterator[Path]:
    """The folder bound read-only; where only the mode can forbid writing, that stands for it."""
    if os.geteuid() != 0:
        make_unwritable(folder)
        yield folder
        return
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
