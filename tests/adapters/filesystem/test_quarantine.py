"""Quarantine: the bytes, why, and their hash; once."""

from __future__ import annotations

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.quarantine import reports, set_aside


def test_evidence_is_kept_once_and_read_back(tmp_path):
    disk = Disk(str(tmp_path))
    name = set_aside(disk, "checkpoints/ab/x", "flipped", b"\x00bad")
    assert set_aside(disk, "checkpoints/ab/x", "again", b"\x00bad") == name
    assert (tmp_path / f"{name}.bin").read_bytes() == b"\x00bad"
    (report,) = reports(disk)
    assert report["reason"] == "flipped" and report["bytes"] == 4 and report["place"] == "checkpoints/ab/x"


def test_nothing_set_aside_nothing_reported(tmp_path):
    assert reports(Disk(str(tmp_path))) == []
