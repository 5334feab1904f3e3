"""A small store and hand-made commits."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.record import Head
from tests.adapters.filesystem import commits

JOURNAL_BYTES = 64 * 1024


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def store(root):
    store = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    yield store
    store.close()


@pytest.fixture
def fill(store):
    """Commit checkpoints to a workflow; answers where it stands then."""

    def fill(workflow_id, count, group=1, **fields):
        head = store.head(workflow_id)
        for _ in range(count):
            commit = commits.checkpoint(workflow_id, head, group, **fields)
            assert store.commit([commit]) == [None]
            head = commit.head
        return head

    return fill


@pytest.fixture
def new_head():
    return Head()
