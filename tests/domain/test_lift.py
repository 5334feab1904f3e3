"""Large values leave the tree and come back."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import delta
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.lift import blob_refs, lift, lift_ops, lower
from tests.values import depth_of, fingerprint, nested, plain_trees


@given(plain_trees, st.integers(0, 8))
def test_lifting_and_lowering_gives_the_same_tree(plain: Any, threshold_bytes: int) -> None:
    before = copy.deepcopy(plain)
    lifted, blobs = lift(plain, threshold_bytes)
    assert fingerprint(plain) == fingerprint(before)
    assert blob_refs(lifted) == set(blobs)
    assert fingerprint(lower(lifted, blobs.__getitem__)) == fingerprint(plain)


def test_a_blob_is_named_by_its_sha256_and_kept_once() -> None:
    text = "ä" * 20
    lifted, blobs = lift({"a": text, "b": [text], "c": text.encode()}, 39)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert blobs == {sha256: text.encode()}
    assert lifted["a"] == {"$hf": "blob", "kind": "str", "sha256": sha256, "len": 40}
    assert lifted["c"]["kind"] == "bytes"


def test_the_threshold_counts_bytes_and_is_still_inside() -> None:
    assert lift("ä" * 8_192)[1] == {}
    assert len(lift("ä" * 8_192 + "x")[1]) == 1
    assert lift(b"x" * 16_384)[1] == {}


def test_paths_of_operations_are_not_lifted() -> None:
    ops = [
        delta.set_value(["k" * 50], "v" * 50),
        delta.splice(["m"], 0, 0, ["i" * 50]),
        delta.append(["t"], "t" * 50),
    ]
    lifted, blobs = lift_ops(ops, 40)
    assert lifted[0]["path"] == ["k" * 50]
    assert len(blobs) == 3
    assert lower(lifted, blobs.__getitem__) == ops
    assert ops[0]["value"] == "v" * 50


def test_deep_trees_are_lifted_too() -> None:
    lifted, blobs = lift(nested(5_000, "x" * 100), 50)
    assert len(blob_refs(lifted)) == 1
    assert depth_of(lower(lifted, blobs.__getitem__)) == 5_000


@pytest.mark.parametrize("change", [{"len": 3}, {"kind": "code"}])
def test_a_reference_that_does_not_fit_its_blob_is_refused(change: dict[str, Any]) -> None:
    lifted, blobs = lift(["x" * 100], 50)
    lifted[0].update(change)
    with pytest.raises(CheckpointCorruptError):
        lower(lifted, blobs.__getitem__)
