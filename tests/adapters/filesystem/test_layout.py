"""Names on disk: from ids and back, and nothing that leaves the store."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.domain.errors import InvalidIdError


def test_workflow_and_event_folders_share_shard_and_name():
    assert layout.workflow_folder("wf").partition("/")[2] == layout.events_folder("wf").partition("/")[2]


def test_a_lease_lies_under_the_same_shard_and_name():
    # What another process commits is recognised by it as something about this workflow.
    assert layout.lease_path("wf") == f"leases/{layout.workflow_folder('wf').partition('/')[2]}/lease.json"


@pytest.mark.parametrize("odd", ["../../etc", "a/b", "a b", "CON", "ü", "x" * 255])
def test_an_odd_id_is_one_folder_below_its_shard(odd):
    parts = layout.workflow_folder(odd).split("/")
    assert parts[0] == "checkpoints" and len(parts) == 3 and ".." not in parts


@pytest.mark.parametrize("bad", ["", ".", "..", "a\0b", "x" * 500])
def test_a_bad_id_is_refused(bad):
    with pytest.raises(InvalidIdError):
        layout.workflow_folder(bad)


def test_names_are_read_back():
    assert layout.group_of(layout.deltas_name(42)) == 42
    assert layout.keyframe_of(layout.keyframe_name(42, "json.zst")) == (42, "json.zst")
    assert layout.group_of("checkpoint_000042.json") is None
    assert layout.keyframe_of(layout.deltas_name(42)) is None
    assert layout.keyframe_of("checkpoint_000042.json.tmp") is None
    assert layout.keyframe_of("manifest.jsonl") is None
    assert layout.events_name("2026-01-11T14:00:00Z") == "events_2026-01-11.jsonl"


@pytest.mark.parametrize("name", ["", "../x", "A" * 64, "a" * 63])
def test_only_a_sha256_names_a_blob(name):
    with pytest.raises(ValueError):
        layout.blob_path(name)
