"""Quarantine: the bytes, why, and their hash; once."""

from __future__ import annotations

import json

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.own_files import is_file_name
from holdfast.adapters.filesystem.quarantine import reports, set_aside


def files_of(disk: Disk) -> Files:
    return Files(disk, Overlay())


def test_evidence_is_kept_once_and_read_back(tmp_path):
    disk = Disk(str(tmp_path))
    name = set_aside(disk, "checkpoints/ab/x", "flipped", b"\x00bad")
    assert set_aside(disk, "checkpoints/ab/x", "again", b"\x00bad") == name
    assert (tmp_path / f"{name}.bin").read_bytes() == b"\x00bad"
    (report,) = reports(files_of(disk))
    assert report["reason"] == "flipped" and report["bytes"] == 4 and report["place"] == "checkpoints/ab/x"


def test_its_name_is_one_that_the_store_answers_for_whatever_the_place_is_called(tmp_path):
    disk = Disk(str(tmp_path))
    places = ["journal", "checkpoints/AB/Caf\u00e9 2/manifest.jsonl", "...", "x" * 500, "a/b", "a_b"]
    names = [set_aside(disk, place, "flipped", b"same") for place in places]
    assert len(set(names)) == len(places)
    assert all(is_file_name(f"{name}.json") and is_file_name(f"{name}.bin") for name in names)


def test_a_report_that_cannot_be_read_is_told_by_its_name(tmp_path):
    disk = Disk(str(tmp_path))
    name = set_aside(disk, "journal", "flipped", b"x")
    (tmp_path / f"{name}.json").write_bytes(b'{"place": ')
    assert reports(files_of(disk)) == [{"place": f"{name}.json", "reason": "the report cannot be read"}]
    (tmp_path / f"{name}.json").write_text(json.dumps({"place": "journal"}))
    assert reports(files_of(disk))[0]["reason"] == "the report cannot be read"


def test_nothing_set_aside_nothing_reported(tmp_path):
    assert reports(files_of(Disk(str(tmp_path)))) == []
