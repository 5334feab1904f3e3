"""A value that is committed again is kept, also where wrong bytes lie in its place: those are set aside."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast.domain.errors import ChecksumMismatchError
from tests.damage import KINDS, Spoiler, flip

LASTING = [kind for kind in KINDS if kind != "memory"]
#: One that goes with the commit, and one that a folder writes before it.
SIZES = [50_000, 6_000_000]


def large_text(size: int) -> str:
    return random.Random(1).randbytes(size // 2).hex()


def blob_of(spoiler: Spoiler, workflow_id: str = "WF") -> str:
    with spoiler.opened(read_only=True, audit=False) as service:
        store = service._engine.kit.store
        [entry] = store.entries(workflow_id)
        [name] = {*entry.blobs, *store.keyframes(workflow_id)[0].blobs}
        return name


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.StateSizeWarning")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", LASTING)
def test_a_value_that_comes_again_mends_what_others_need_and_leaves_evidence(
    kind: str, size: int, tmp_path: Path
) -> None:
    spoiler, text = Spoiler(kind, tmp_path), large_text(size)
    spoiler.fill(1, large=text)
    wrong = flip(spoiler.spoil_blob(blob_of(spoiler)))
    with spoiler.opened() as service:
        with pytest.raises(ChecksumMismatchError):
            service.restore_checkpoint("WF@1")
        service.create_checkpoint("another", {"large": text})
        for workflow_id in ("WF", "another"):
            assert service.restore_checkpoint(f"{workflow_id}@latest").context["large"] == text
        [evidence] = service.quarantine.entries()
        assert "a commit of the same value" in evidence.reason and evidence.size_bytes == len(wrong)
        assert service.quarantine.data(evidence.name) == wrong


@pytest.mark.parametrize("kind", LASTING)
def test_a_value_that_is_whole_is_kept_once_and_nothing_is_set_aside(kind: str, tmp_path: Path) -> None:
    spoiler, text = Spoiler(kind, tmp_path), large_text(SIZES[0])
    spoiler.fill(1, large=text)
    spoiler.fill(1, "another", large=text)
    assert blob_of(spoiler) == blob_of(spoiler, "another")
    with spoiler.opened() as service:
        assert not service.quarantine.entries()
