"""Keys say what lies below them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.redaction import engine
from holdfast.domain.placeholders import Placeholders, is_placeholder
from holdfast.domain.secret_keys import AT_ROOT, Around, SecretKeys, below
from holdfast.domain.secret_pairs import PairedPaths
from holdfast.domain.secret_text import SecretText
from tests.canaries import TOKENS

TEXT = SecretText(Placeholders(b"k" * 16), engine(), {})


def around(*path: str, keys: SecretKeys | None = None, is_container: bool = False) -> Around:
    known = keys or SecretKeys(TEXT)
    found = AT_ROOT
    for at, key in enumerate(path):
        found = below(found, known.known(key), is_container=is_container or at + 1 < len(path))
    return found


def test_a_telling_key_counts_for_everything_below() -> None:
    assert around("password").kind == "password"
    assert around("credentials", "user", "name").kind == "credential"
    assert around("user", "name").kind is None


def test_a_schema_describes_and_holds_nothing() -> None:
    assert around("properties", "password", is_container=True).kind is None
    assert around("properties", "password", "description").kind is None
    assert around("properties", "password").kind == "password"


def test_tokens_with_probabilities_are_words() -> None:
    assert around("logprobs", "content", "token").kind is None
    assert around("top_logprobs", "token").kind is None
    assert around("logprobs", "password").kind == "password"


def test_steps_into_tagged_objects_say_nothing() -> None:
    assert around("properties", "v", "password", is_container=True).kind is None
    assert around("password", "v").kind == "password"


def test_names_of_the_user_are_added_and_taken_away() -> None:
    keys = SecretKeys(TEXT, names=["Home_Address"], allowed=["session-token"])
    assert around("homeAddress", keys=keys).kind == "home-address"
    assert around("sessionToken", keys=keys).kind is None
    assert around("token", keys=keys).kind == "token"


def test_a_secret_that_is_a_key_is_hidden_and_means_the_same_afterwards() -> None:
    keys = SecretKeys(TEXT)
    known = keys.known(TOKENS[0].secret)
    assert is_placeholder(known.text)
    assert keys.path(["a", 3, TOKENS[0].secret]) == ["a", 3, known.text]
    assert keys.known(known.text)._replace(text="") == known._replace(text="")


def test_so_many_keys_are_remembered_and_no_more() -> None:
    keys = SecretKeys(TEXT)
    for number in range(10_000):
        keys.known(f"key {number}")
    assert len(keys._known) <= 4096


_STEPS = st.sampled_from(["messages", "role", "name", "Key", "value", "token", "auth", "v", "$hf", 0, 1, 2])


@given(st.lists(_STEPS, max_size=5), st.sampled_from(["set", "splice", "append", "delete"]))
def test_a_path_that_is_silent_is_plain_and_no_pair_is_concerned(path: list[Any], what: str) -> None:
    keys = SecretKeys(TEXT)
    is_plain = keys.are_plain(path)
    if keys.are_silent(path, is_list=what == "splice"):
        # What stands beside is not even asked for.
        assert is_plain and not PairedPaths(keys, lambda _: "password").concern({"op": what, "path": path})


def test_paths_of_a_conversation_are_silent_once_their_keys_were_met() -> None:
    keys = SecretKeys(TEXT)
    path = ["messages", 3, "content"]
    assert not keys.are_silent(path, is_list=False)
    assert keys.are_plain(path) and keys.are_silent(path, is_list=False)
