"""What is masked in a state is found: where, and of which sort."""

from __future__ import annotations

import pytest

from holdfast.application.insight.masks import has_masks, masks_of, sealed_paths
from holdfast.domain import plainjson

HIDDEN = "[REDACTED:password:0a1b2c3d]"
SEALED = {"$hf": "personal", "key": "k1", "v": "c2VhbGVk"}


def test_hidden_secrets_and_values_of_people_are_found_wherever_they_are():
    tree = {"a/b": [1, f"x {HIDDEN}"], "who": {"name": SEALED, "list": [SEALED, "b"]}, HIDDEN: 1}
    masks = masks_of(tree)
    assert sorted(masks.pointers("/context")) == sorted(
        ["/context/a~1b/1", "/context/who/name", "/context/who/list/0", f"/context/{HIDDEN}"]
    )
    assert sealed_paths(SEALED) == [[]]


@pytest.mark.parametrize(
    ("value", "is_masked"),
    [
        (HIDDEN, True),
        (HIDDEN.encode(), True),
        ({"in": [SEALED]}, True),
        ("[REDACTED: not quite]", False),
        ({"personal": "personal"}, False),
        ([1, None, {"a": "b"}], False),
    ],
)
def test_a_value_says_whether_something_in_it_is_masked(value, is_masked):
    assert has_masks(value, plainjson.dumps(value)) is is_masked
