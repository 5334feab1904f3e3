"""A read-only opening follows those who write."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.follower import Follower


@pytest.fixture
def follower(store, root):
    follower = Follower(Disk(str(root)))
    yield follower
    follower.close()


def test_what_is_committed_is_followed(follower, fill):
    follower.refresh()
    fill("wf", 1)
    assert follower.refresh() and not follower.refresh()
    assert follower.pending_bytes > 0
    assert [entry.sequence for entry in follower.views.manifest("wf").entries.values()] == [1]


def test_what_is_settled_is_read_from_the_files(follower, fill, store):
    fill("wf", 2)
    follower.refresh()
    store.settle()
    follower.refresh()
    assert follower.pending_bytes == 0
    assert len(follower.views.records("wf", 1, 2)) == 2


def test_a_sound_journal_has_no_findings(follower, fill):
    fill("wf", 1)
    follower.refresh()
    assert list(follower.check()) == []
