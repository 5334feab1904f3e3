"""`holdfast.json`: what it must say, and what is said if it does not."""

from __future__ import annotations

import json

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.settings import Settings, read_settings, write_settings
from holdfast.domain.errors import CheckpointCorruptError, StoreNotFoundError, UnsupportedVersionError


def test_settings_are_read_back(tmp_path):
    disk = Disk(str(tmp_path))
    write_settings(disk, Settings("abc"))
    assert read_settings(disk) == Settings("abc")


def test_no_settings_no_store(tmp_path):
    with pytest.raises(StoreNotFoundError, match="holdfast init"):
        read_settings(Disk(str(tmp_path)))


def test_settings_that_are_gone_beside_a_store_are_told_as_such(tmp_path):
    (tmp_path / "checkpoints" / "00").mkdir(parents=True)
    with pytest.raises(StoreNotFoundError, match="the rest of a store is here"):
        read_settings(Disk(str(tmp_path)))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"format": "x", "version": 1, "store_id": ""}']
)
def test_damaged_settings_are_told(tmp_path, text):
    (tmp_path / "holdfast.json").write_text(text)
    with pytest.raises(CheckpointCorruptError, match=r"holdfast\.json"):
        read_settings(Disk(str(tmp_path)))


def test_a_newer_format_is_refused(tmp_path):
    (tmp_path / "holdfast.json").write_text(json.dumps({"format": "holdfast", "version": 2, "store_id": "a"}))
    with pytest.raises(UnsupportedVersionError, match="format 2"):
        read_settings(Disk(str(tmp_path)))
