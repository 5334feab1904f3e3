"""A manifest is made anew so that what is written behind it is found again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast
from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.record import Commit
from tests.adapters.filesystem import commits


def filled(root: Path) -> Path:
    """Make a workflow of three checkpoints without its manifest; answer its folder."""
    with holdfast.open(str(root)) as service:
        for number in range(3):
            service.create_checkpoint("W", {"n": number})
    folder = root / layout.workflow_folder("W")
    (folder / "manifest.jsonl").unlink()
    return folder


def set_aside(root: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (root / layout.QUARANTINE).glob("*.bin"))


def test_a_manifest_that_is_gone_is_made_anew_and_nothing_else_changes(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    records = (folder / layout.deltas_name(1)).read_bytes()
    with holdfast.open(str(tmp_path)) as service:
        assert service.create_checkpoint("W", {"n": 9}).sequence == 4
    assert (folder / layout.deltas_name(1)).read_bytes().startswith(records)
    assert set_aside(tmp_path) == [b""]


def test_a_workflow_goes_on_behind_a_record_that_is_damaged(tmp_path: Path) -> None:
    """The manifest alone would be made anew for ever: it lists neither that record nor what follows."""
    folder = filled(tmp_path)
    records = folder / layout.deltas_name(1)
    whole = records.read_bytes()
    end = whole.index(b"\n") + 1
    records.write_bytes(whole[: end + 50])
    with holdfast.open(str(tmp_path)) as service:
        assert [meta.id.sequence for meta in service.list_checkpoints("W")] == [1]
        with pytest.raises(CheckpointCorruptError, match=re.escape("holdfast recover W")):
            service.create_checkpoint("W", {"n": 9})
        assert service.recover_workflow("W").success
        last = service.create_checkpoint("W", {"n": 10})
    assert whole[end : end + 50] in set_aside(tmp_path)
    (folder / "manifest.jsonl").unlink()
    with holdfast.open(str(tmp_path)) as service:
        assert service.restore_checkpoint(last).context == {"n": 10}
        assert service.validate_checkpoint(last).valid


def test_a_file_without_a_readable_record_goes_as_a_whole(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    (folder / layout.deltas_name(3)).write_bytes(b"torn")
    store = FilesystemStore.open(str(tmp_path))
    head = store.head("W")
    assert store.commit([Commit("W", head, events=(commits.event("W", head.event_seq + 1),))]) == [None]
    store.close()
    assert not (folder / layout.deltas_name(3)).exists()
    assert b"torn" in set_aside(tmp_path)
