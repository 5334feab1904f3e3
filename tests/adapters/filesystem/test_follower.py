"""A read-only opening follows those who write."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import frame
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.follower import Follower
from holdfast.adapters.filesystem.frame import HEADER_BYTES
from holdfast.adapters.filesystem.ring import DATA_START


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


def test_a_frame_that_was_acknowledged_and_changed_is_a_finding(follower, fill, root):
    fill("wf", 2)
    [ring] = (root / "journal").glob("ring-*")
    data = bytearray(ring.read_bytes())
    data[DATA_START + HEADER_BYTES] ^= 1
    ring.write_bytes(data)
    follower.refresh()
    [finding] = follower.check()
    assert finding.place == "journal" and "damaged at 0, durable up to" in finding.problem


def test_after_a_look_that_failed_everything_is_looked_at_again(follower, fill, monkeypatch):
    fill("wf", 2)
    with monkeypatch.context() as broken:
        broken.setattr(frame.Frame, "operations", lambda self: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            follower.refresh()
    assert follower.refresh()
    assert len(follower.views.manifest("wf").entries) == 2
