"""Trees: what is searched, what is swapped, what is shared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.redaction import engine
from holdfast.domain.placeholders import Placeholders, is_placeholder
from holdfast.domain.secret_keys import AT_ROOT, Around, SecretKeys
from holdfast.domain.secret_text import SecretText
from holdfast.domain.secret_tree import BETWEEN, SecretTree
from tests.canaries import TOKENS

TEXT = SecretText(Placeholders(b"k" * 16), engine(), {})
TREE = SecretTree(TEXT, SecretKeys(TEXT))
SECRET = TOKENS[0].secret


class WalkingTree(SecretTree):
    """Never takes the short way: every text is noted with its place."""

    def _is_harmless(self, tree: Any) -> bool:
        return False


WALKING = WalkingTree(TEXT, SecretKeys(TEXT))


def hide(tree: Any, around: Around = AT_ROOT, **more: Any) -> tuple[Any, Any]:
    return TREE.hide(tree, around, [], **more)


def test_many_small_texts_are_searched_in_groups_and_none_is_forgotten() -> None:
    texts = [f"text {number} " + "x" * (number % 700) for number in range(500)]
    for number in (0, 17, 250, 499):
        texts[number] = SECRET
    hidden, paths = hide(texts)
    assert paths == [[0], [17], [250], [499]]
    assert [text for text in hidden if is_placeholder(text)] == [hidden[0]] * 4
    assert all(hidden[at] is text for at, text in enumerate(texts) if text != SECRET)


def test_a_secret_is_not_made_of_two_texts() -> None:
    tree = [SECRET[:8], SECRET[8:], "password=", "hunter2x"]
    assert hide(tree) == (tree, [])


def test_patterns_that_look_at_the_ends_see_each_text_by_itself() -> None:
    text = SecretText(Placeholders(b"k" * 16), engine(), {"line": "^abc$"})
    tree = SecretTree(text, SecretKeys(text), is_joined=False)
    hidden, paths = tree.hide(["x", "abc", "abcd"], AT_ROOT, [])
    assert paths == [[1]]
    assert hidden[2] == "abcd"


def test_indexes_of_a_part_of_a_list_are_shifted() -> None:
    _, paths = TREE.hide(["a", SECRET], AT_ROOT, ["items"], shift=10)
    assert paths == [["items", 11]]
    _, paths = TREE.hide({"a": [SECRET]}, AT_ROOT, ["items"], shift=10)
    assert paths == [["items", "a", 0]]


@pytest.mark.parametrize(
    "value", [5, 2.5, {"$hf": "decimal", "v": "1.0"}, {"$hf": "uuid", "v": "x"}, {"$hf": "int", "v": "1"}]
)
def test_what_is_no_text_is_hidden_by_name_unless_it_is_a_count(value: Any) -> None:
    assert is_placeholder(hide(value, Around("password"))[0])
    assert hide(value, Around("token")) == (value, [])
    assert hide(value) == (value, [])


def test_tagged_texts_are_searched_and_go_with_their_tag_if_the_name_says_so() -> None:
    path = {"$hf": "path", "v": f"/tmp/{SECRET}/x"}
    hidden, paths = hide(path)
    assert hidden == {"$hf": "path", "v": f"/tmp/{TEXT.hide(SECRET)}/x"}
    assert paths == [["v"]]
    assert is_placeholder(hide(path, Around("secret"))[0])


def test_the_names_of_types_and_enums_stay() -> None:
    tree = {"password": {"$hf": "obj", "t": "Password", "v": {"a": "x"}, "set": ["a"], "private": {"b": "y"}}}
    hidden, paths = hide(tree)
    inner = hidden["password"]
    assert (inner["t"], inner["set"]) == ("Password", ["a"])
    assert is_placeholder(inner["v"]["a"]) and is_placeholder(inner["private"]["b"])
    assert len(paths) == 2


def test_pairs_are_known_by_their_keys() -> None:
    pairs = [["password", "x"], [1, "y"], [SECRET, "z"], "odd"]
    hidden, paths = hide(pairs, is_pairs=True)
    assert is_placeholder(hidden[0][1])
    assert hidden[1:2] == [[1, "y"]]
    assert hidden[2] == [TEXT.hide(SECRET), "z"]
    assert paths == [[0, 1], [2, 0]]


def test_odd_tags_do_no_harm() -> None:
    for tree in (
        {"$hf": "str", "v": "not base64!"},
        {"$hf": "map", "v": "x"},
        {"$hf": "tuple"},
        {"$hf": "new"},
    ):
        assert hide({"a": tree}) == ({"a": tree}, [])


def test_several_keys_of_one_object_are_renamed_at_once() -> None:
    other = TOKENS[1].secret
    hidden, paths = hide({SECRET: {other: 1}, other: 2, "c": 3})
    assert list(hidden) == [TEXT.hide(SECRET), TEXT.hide(other), "c"]
    assert list(hidden[TEXT.hide(SECRET)]) == [TEXT.hide(other)]
    assert len(paths) == 3


_WORDS = ["role", "content", "name", "value", "Key", "password", "auth", "v", "$hf", "tuple", "x", SECRET]
_TREES = st.recursive(
    st.sampled_from([*_WORDS, 1, 2.5, None, True, b"content"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=3),
    max_leaves=12,
)


@given(_TREES)
def test_where_the_texts_of_a_tree_are_clean_nothing_in_it_is_hidden(tree: Any) -> None:
    # Asked twice: keys that were met before are looked at once.
    for found in (TREE.texts(tree, 0), TREE.texts(tree, 0)):
        if found is not None and TEXT.is_clean(BETWEEN.join(found)):
            assert WALKING.hide(tree, AT_ROOT, [], under=0) == (tree, [])


@given(_TREES, st.sampled_from([None, 0, "content", "auth"]))
def test_the_short_way_hides_what_the_long_one_does(tree: Any, under: str | int | None) -> None:
    expected = WALKING.hide(tree, AT_ROOT, [], under=under)
    for _ in range(2):
        assert hide(tree, under=under) == expected
