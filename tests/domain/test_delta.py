"""Operations change a tree exactly as they say, or say what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain import delta
from holdfast.domain.errors import StateReconstructionError


def tree() -> dict[str, Any]:
    return {"a": 1, "list": [0, 1, 2], "text": "ab", "deep": {"x": [{"y": 1}]}}


@pytest.mark.parametrize(
    ("op", "path", "expected"),
    [
        (delta.set_value(["a"], 2), "a", 2),
        (delta.set_value(["deep", "x", 0, "y"], None), "deep", {"x": [{"y": None}]}),
        (delta.set_value(["list", 2], "z"), "list", [0, 1, "z"]),
        (delta.splice(["list"], 1, 1, [7, 8]), "list", [0, 7, 8, 2]),
        (delta.splice(["list"], 3, 0, [3]), "list", [0, 1, 2, 3]),
        (delta.append(["text"], "cd"), "text", "abcd"),
        (delta.delete(["deep", "x", 0, "y"]), "deep", {"x": [{}]}),
    ],
)
def test_an_operation_changes_what_its_path_names(op: delta.Operation, path: str, expected: Any) -> None:
    changed = delta.apply([op], tree())
    assert changed == {**tree(), path: expected}


def test_a_set_key_keeps_its_place_and_a_new_key_goes_to_the_end() -> None:
    changed = delta.apply(
        [delta.set_value(["a"], 5), delta.set_value(["new"], 1), delta.delete(["list"])], tree()
    )
    assert list(changed) == ["a", "text", "deep", "new"]


def test_the_empty_path_replaces_the_state() -> None:
    assert delta.apply([delta.set_value([], [1]), delta.splice([], 0, 0, [0])], tree()) == [0, 1]


def test_operations_are_applied_in_order() -> None:
    ops = [delta.splice(["list"], 0, 1, []), delta.set_value(["list", 0], "was one")]
    assert delta.apply(ops, tree())["list"] == ["was one", 2]


def test_an_append_loads_the_blob_it_appends_to() -> None:
    reference = {"$hf": "blob", "kind": "str", "sha256": "ab", "len": 5}
    state = {"text": dict(reference)}
    assert delta.apply([delta.append(["text"], "!")], state, {"ab": b"hello"}.__getitem__) == {
        "text": "hello!"
    }


def test_an_append_may_itself_be_a_blob() -> None:
    op = {"op": "append", "path": ["text"], "text": {"$hf": "blob", "kind": "str", "sha256": "cd", "len": 2}}
    assert delta.apply([op], tree(), {"cd": b"cd"}.__getitem__)["text"] == "abcd"


@pytest.mark.parametrize(
    "op",
    [
        delta.set_value(["list", 3], 1),
        delta.set_value(["list", -1], 1),
        delta.set_value(["list", True], 1),
        delta.set_value(["list", "0"], 1),
        delta.set_value(["missing", "x"], 1),
        delta.set_value(["a", "x"], 1),
        delta.set_value(["text", 0], 1),
        delta.set_value([0], 1),
        delta.delete(["missing"]),
        delta.delete(["list", 0]),
        delta.delete([]),
        delta.splice(["list"], 4, 0, []),
        delta.splice(["list"], 2, 2, []),
        delta.splice(["list"], -1, 0, []),
        delta.splice(["list"], 1, -1, []),
        delta.splice(["text"], 0, 0, []),
        {"op": "splice", "path": ["list"], "at": 0, "remove": 0, "insert": "ab"},
        delta.append(["a"], "x"),
        {"op": "append", "path": ["text"], "text": 5},
        {"op": "append", "path": ["text"], "text": {"$hf": "blob", "kind": "str", "sha256": "00", "len": 2}},
        {"op": "move", "path": ["a"]},
        {"op": "set", "path": ["a"]},
        {"op": "set", "value": 1},
        {"op": "set", "path": 5, "value": 1},
        {},
        "set",
    ],
    ids=repr,
)
def test_an_operation_that_does_not_fit_is_named(op: Any) -> None:
    with pytest.raises(StateReconstructionError, match="operation 1 "):
        delta.apply([delta.set_value(["a"], 0), op], tree())


def test_the_error_names_the_path() -> None:
    with pytest.raises(StateReconstructionError) as refused:
        delta.apply([delta.set_value(["deep", "x", 4, "odd key"], 1)], tree())
    assert refused.value.place == "deep.x[4]['odd key']"


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (delta.set_value(["tasks", 3, "name"], "a"), "set tasks[3].name = 'a'"),
        (delta.set_value([], {"a": 1, "b": 2}), "set (the state) = {2 keys: a, b}"),
        (delta.set_value(["x"], {}), "set x = {}"),
        (delta.set_value(["x"], {"$hf": "uuid", "v": "12"}), "set x = uuid('12')"),
        (
            delta.set_value(["x"], {"$hf": "obj", "t": "Invoice", "v": {"n": 1}}),
            "set x = Invoice({1 keys: n})",
        ),
        (
            delta.set_value(["x"], {"$hf": "blob", "kind": "str", "sha256": "0" * 64, "len": 5}),
            "set x = (str of 5 bytes in blob 000000000000)",
        ),
        (delta.delete(["x", "odd key"]), "delete x['odd key']"),
        (delta.append(["log"], "more"), "append to log: 'more'"),
        (delta.splice(["m"], 4, 0, [[1]]), "insert m[4] = [1 items]"),
        (delta.splice(["m"], 0, 2, [1, 2]), "in m at 0: remove 2, insert 2"),
    ],
)
def test_an_operation_reads_as_one_line(op: delta.Operation, text: str) -> None:
    assert delta.describe(op) == text


def test_a_long_value_is_shortened() -> None:
    line = delta.describe(delta.set_value(["x"], "y" * 1_000))
    assert len(line) < 100
    assert "1000 long" in line
