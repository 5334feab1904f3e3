from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast import bootstrap
from holdfast.bootstrap import build_kit
from holdfast.cli.diff import changes_at, with_old_values
from holdfast.cli.json_patch import json_patch
from holdfast.config import Config
from tests.cli.conftest import Run

LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=4)
TREES = st.dictionaries(
    st.text("ab/~0", max_size=2),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner),
    ),
    max_size=4,
)


def patched(tree: Any, patch: list[dict[str, Any]]) -> Any:
    """Apply a patch as RFC 6902 says: written here from the standard, and from nothing of ours."""
    root = {"": copy.deepcopy(tree)}
    for step in patch:
        keys = ["", *(key.replace("~1", "/").replace("~0", "~") for key in step["path"].split("/")[1:])]
        owner: Any = root
        for key in keys[:-1]:
            owner = owner[int(key)] if isinstance(owner, list) else owner[key]
        last = int(keys[-1]) if isinstance(owner, list) else keys[-1]
        if step["op"] == "remove":
            del owner[last]
        elif step["op"] == "add" and isinstance(owner, list):
            assert last <= len(owner)
            owner.insert(last, step["value"])
        else:
            assert step["op"] == "add" or last in (range(len(owner)) if isinstance(owner, list) else owner)
            owner[last] = step["value"]
    return root[""]


def kit() -> Any:
    config = Config(store="memory:")
    return build_kit(bootstrap.open_store(config), config)


KIT = kit()


@given(TREES, TREES)
def test_the_patch_turns_the_one_state_into_the_other(old, new):
    patch = json_patch(with_old_values(changes_at(KIT, old, new, ()), old))
    assert json.dumps(patched(old, patch), sort_keys=True) == json.dumps(new, sort_keys=True)


def test_a_patch_fits_what_show_prints(run: Run, store: Path):
    patch = run("diff", "WF-1@1", "WF-1@3", "--format", "patch", "--store", store).data
    states = [json.loads(run("show", name, "--state", "--store", store).out) for name in ("WF-1@1", "WF-1@3")]
    assert patched(states[0], patch) == states[1]


def test_text_that_grew_is_replaced_as_a_whole():
    grown = {"op": "append", "path": ["a/b"], "text": "y"}
    assert json_patch([(grown, "x")]) == [{"op": "replace", "path": "/a~1b", "value": "xy"}]
