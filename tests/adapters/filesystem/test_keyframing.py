"""Derived keyframes: stored once, only where the checkpoint is, with the sums of what they seal."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.follower import Follower
from holdfast.adapters.filesystem.keyframing import add_keyframe, sums_of_sealed
from holdfast.adapters.filesystem.writer import Draft, Ends
from tests.adapters.filesystem import commits


@pytest.fixture
def seen(store, fill, root):
    fill("wf", 3)
    fill("wf", 2, group=3)
    follower = Follower(Disk(str(root)))
    follower.refresh()
    yield follower
    follower.close()


def test_a_keyframe_seals_the_groups_before_the_newest(seen):
    sums = sums_of_sealed(seen.files, seen.views, "wf")
    assert list(sums) == [1]
    draft = Draft(seen.files, Ends(seen.files))
    add_keyframe(draft, seen.views, "wf", commits.keyframe(5), sums)
    written = {operation.path.rpartition("/")[2]: operation.data for operation in draft.operations}
    assert list(written) == ["checkpoint_000005.json", "SHA256SUMS", "manifest.jsonl"]
    sealed = [o.data for o in draft.operations if o.path.endswith("SHA256SUMS")]
    assert sealed[-1] == f"{sums[1]}  checkpoint_000001.deltas.jsonl\n".encode()


@pytest.mark.parametrize("sequence", [1, 99])
def test_one_that_is_there_or_has_no_checkpoint_is_left_out(seen, sequence):
    draft = Draft(seen.files, Ends(seen.files))
    add_keyframe(draft, seen.views, "wf", commits.keyframe(sequence), {})
    assert draft.operations == []
