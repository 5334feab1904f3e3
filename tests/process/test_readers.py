"""Readers beside writers: during recycling and prunes, without permission, on copies and read-only mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.store import FilesystemStore
from tests.process import commits


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
