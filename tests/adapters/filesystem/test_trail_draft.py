"""What commits tell in the trail: one frame with all the rest, and nothing left of what is erased."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.order import RECORD_BYTES
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.filesystem.trails import session_line
from holdfast.domain.record import Head
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.audits import commit, tell, told
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


class CountingDisk(Disk):
    syncs = looks = 0

    def sync(self, handle):
        self.syncs += 1
        super().sync(handle)

    def open(self, path, *, write=False, create=False):
        self.looks += 1
        return super().open(path, write=write, create=create)

    def file_size(self, path):
        self.looks += 1
        return super().file_size(path)


def test_entries_ride_on_the_sync_of_their_commit_and_read_no_file(root):
    disk = CountingDisk(str(root))
    store = FilesystemStore.open("", disk=disk, journal_bytes=JOURNAL_BYTES, background=False)
    head = Head()
    for number in range(4):
        if number == 2:
            disk.syncs = disk.looks = 0
        checkpoint = commits.checkpoint("wf", head)
        audit = (told(number, why="because"), told(number, "s-2"))
        assert store.commit([replace(checkpoint, audit=audit)]) == [None]
        head = checkpoint.head
    assert (disk.syncs, disk.looks) == (2, 0)
    store.close()


def test_lines_and_order_are_plain_files(store, root):
    tell(store, told(1, why="because"), told(2, "s-2"))
    store.settle()
    trail = (root / layout.trail_path("s-1")).read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["seq"] for line in trail] == [1, 2]
    assert list(store.trail("s-1")) == trail
    order = (root / layout.ORDER).read_text().splitlines()
    second = len(session_line("s-1"))
    told_of = [tuple(map(int, line.split()[:2])) for line in order]
    assert told_of == [(0, 1), (0, 2), (second, 1), (second, 2)]
    header, payload = (root / layout.payloads_path("s-1")).read_text().splitlines()
    assert json.loads(header) == {"seq": 2, "slot": 256, "len": len(payload) + 1}
    assert json.loads(payload)["data"] == {"why": "because"}


def test_half_a_line_of_the_order_costs_its_own_leaf_only(store, root):
    tell(store, told(1))
    store.settle()
    path = root / layout.ORDER
    path.write_bytes(path.read_bytes()[:-5])
    again = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    tell(again, told(2))
    assert again.place("s-1", 3) == 2 and len(list(again.leaves(after=2))) == 1
    again.settle()
    assert path.stat().st_size == 3 * RECORD_BYTES
    again.close()


@pytest.mark.parametrize("settled", [True, False])
def test_nothing_is_left_of_what_is_erased(store, root, settled):
    tell(store, told(1, why="the reason that goes"), told(2, why="the reason that stays"))
    if settled:
        store.settle()
    trail = list(store.trail("s-1"))
    tell(store, told(3), erased=(("s-1", 2), ("s-1", 99), ("s-9", 1)))
    everything = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert [path for path, data in everything.items() if b"reason that goes" in data] == []
    assert any(b"reason that stays" in data for data in everything.values())
    assert store.payload("s-1", 2) is None and store.payload("s-1", 3) is not None
    assert list(store.trail("s-1"))[:3] == trail
    assert list(store.check()) == []


def test_what_is_told_and_erased_at_once_is_gone_too(store, root):
    one, two = commit(told(1, why="short-lived")), commit(told(2), erased=(("s-1", 2),))
    assert store.commit([one, two]) == [None, None]
    assert not any(b"short-lived" in path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_what_is_told_after_an_erasure_lies_behind_the_payloads_that_stay(store, root):
    tell(store, told(1, why="goes"), told(2, why="the reason that stays"))
    store.close()
    again = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    # Where its file ends nobody has asked yet: what is overwritten in the middle of it does not tell.
    tell(again, erased=(("s-1", 2),))
    tell(again, told(3, why="another reason"))
    reasons = [json.loads(again.payload("s-1", seq) or b"{}").get("data") for seq in (2, 3, 4)]
    assert reasons == [None, {"why": "the reason that stays"}, {"why": "another reason"}]
    again.close()
