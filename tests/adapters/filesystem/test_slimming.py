"""Weighing commits: everything they bring counts, and too much goes beside the journal or is refused."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import slimming
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.slimming import keyframe_path, slim, weight
from holdfast.adapters.filesystem.staging import Staging
from holdfast.domain.errors import StateTooLargeError
from holdfast.domain.record import Commit, Head
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.audits import commit, told


def test_everything_weighs():
    empty = weight(commit())
    assert weight(commit(told(1, why="w" * 1000))) > empty + 1000
    assert weight(commit(files={"keys/a": b"f" * 1000, "keys/b": None})) > empty + 1000
    assert weight(Commit("wf", Head(), blobs={"0" * 64: b"b" * 1000})) >= empty + 1000


def test_large_values_go_beside_the_journal(tmp_path):
    disk = Disk(str(tmp_path))
    disk.make_folder("journal")
    large = commits.checkpoint("wf", Head())
    assert large.keyframe is not None
    blob = b"b" * 9000
    heavy = Commit("wf", Head(), large.record, large.keyframe, blobs={commits.sha256(blob): blob})
    with Staging(disk) as staging:
        assert slim(heavy, staging, 100_000) is heavy
        rest = slim(heavy, staging, 8192)
        assert (rest.blobs, rest.keyframe and rest.keyframe.data) == ({}, b"")
        staging.choose([id(rest)])
        staging.place()
    assert (tmp_path / keyframe_path("wf", large.keyframe)).read_bytes() == large.keyframe.data


def test_what_lies_nowhere_else_stays_in_the_commit_for_a_journal_that_grows(tmp_path):
    many = commit(*(told(n) for n in range(100)))
    with Staging(Disk(str(tmp_path))) as staging:
        assert slim(many, staging, 8192) == many


def test_what_no_journal_takes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(slimming, "FRAME_BYTES_MAX", 16_384)
    with pytest.raises(StateTooLargeError, match="does not fit"), Staging(Disk(str(tmp_path))) as staging:
        slim(commit(*(told(n) for n in range(100))), staging, 8192)
