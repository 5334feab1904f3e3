"""Redaction finds every kind of secret in every position, and leaves everything else alone."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.adapters.redaction import engine
from holdfast.application import snapshot
from holdfast.domain import delta
from holdfast.domain.catalogue import KINDS
from holdfast.domain.errors import ConfigError
from holdfast.domain.placeholders import is_placeholder, redacted_paths, spans
from holdfast.domain.plain import TypeRegistry, to_plain
from holdfast.domain.redaction import Redactor, Rules
from holdfast.domain.tree import copy_tree
from tests.canaries import ASSIGNED, CANARIES, TOKENS, Canary, some, traces
from tests.domain.harmless import HARMLESS, STATES
from tests.sizes import daily
from tests.values import Invoice, Pair, Point, plain_trees, registry, values

KEY = b"sixteen bytes or more"
WITH_RE2 = Redactor(KEY, engine("re2"))
WITH_RE = Redactor(KEY, engine("re"))
BOTH = [pytest.param(WITH_RE2, id="re2"), pytest.param(WITH_RE, id="re")]
PACKER = OrmsgpackPacker(registry())

every_canary = pytest.mark.parametrize(
    "canary", CANARIES, ids=[f"{at}-{c.kind}" for at, c in enumerate(CANARIES)]
)
every_engine = pytest.mark.parametrize("redactor", BOTH)

#: Ways in which a secret stands in a text.
POSITIONS: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "at the start": lambda text: f"{text} is what they sent",
    "at the end": lambda text: f"they sent {text}",
    "in prose": lambda text: f"First this, then {text} and nothing else.",
    "on a line": lambda text: f"one\n{text}\nthree",
    "after letters of other scripts": lambda text: f"Schl\u00fcssel \u9375 \U0001f511 {text}",
    "before letters of other scripts": lambda text: f"{text} \U0001f511 \u9375",
    "in JSON": lambda text: json.dumps({"role": "user", "content": text}),
    "in JSON in JSON": lambda text: json.dumps({"arguments": json.dumps({"content": text})}),
    "in brackets": lambda text: f"({text})",
    "in backticks": lambda text: f"`{text}`",
    "far inside": lambda text: "lorem ipsum " * 3_000 + text + " dolor sit amet" * 3_000,
}


@pytest.mark.sweep
@pytest.mark.parametrize("position", POSITIONS)
def test_every_kind_is_found_in_every_position_by_both_engines(position: str) -> None:
    for canary in CANARIES:
        text = POSITIONS[position](canary.text)
        hidden = WITH_RE2.text(text)
        assert traces(canary, hidden) == [], canary
        assert f"[REDACTED:{canary.kind}:" in hidden, canary
        assert WITH_RE.text(text) == hidden


def test_bytes_are_searched_like_text() -> None:
    for canary in CANARIES:
        for data in (canary.text.encode(), b"\x00\xff\xfe " + canary.text.encode() + b" \x80"):
            hidden, paths = WITH_RE2.tree({"blob": data})
            assert paths == [["blob"]]
            assert traces(canary, hidden["blob"].decode("latin-1")) == [], canary
    assert WITH_RE2.tree([b"\x00\xff" + TOKENS[0].secret.encode()])[0][0][:2] == b"\x00\xff"


def test_a_text_that_is_the_base64_of_a_secret_is_hidden_under_the_digits_of_the_secret() -> None:
    for canary in TOKENS:
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            hidden = WITH_RE2.text(encode(canary.text.encode()).decode())
            assert is_placeholder(hidden), canary
            assert hidden in WITH_RE2.text(canary.text)


def test_every_kind_of_the_catalogue_has_a_canary_and_there_are_more_than_twenty_five() -> None:
    assert {canary.kind for canary in CANARIES} >= KINDS
    assert len(KINDS) > 25


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert WITH_RE2.text(text) == text
    assert WITH_RE.text(text) == text


@pytest.mark.parametrize("state", STATES)
def test_ordinary_states_are_left_alone(state: Any) -> None:
    hidden, paths = WITH_RE2.tree(state)
    assert hidden is state
    assert paths == []


def test_ids_hashes_and_images_are_left_alone() -> None:
    chance = random.Random(7)
    for _ in range(300):
        data = chance.randbytes(48)
        image = "data:image/png;base64," + base64.b64encode(chance.randbytes(3_000)).decode()
        for text in (
            str(uuid.UUID(bytes=data[:16], version=4)),
            data.hex(),
            data[:20].hex(),
            image,
            base64.b64encode(data).decode(),
            base64.urlsafe_b64encode(data).decode(),
        ):
            assert WITH_RE2.text(text) == text
            assert WITH_RE.text(text) == text


@every_engine
def test_equal_secrets_get_equal_placeholders_and_others_do_not(redactor: Redactor) -> None:
    one, other = TOKENS[0].secret, "AK" + "IA" + some("ABCDEFGHIJ234567", 16)
    hidden = redactor.text(f"{one} {other} {one}").split()
    assert hidden[0] == hidden[2] != hidden[1]
    assert Redactor(b"another key of 16", engine()).text(one) != hidden[0]


def test_the_same_secret_correlates_wherever_it_was_found() -> None:
    secret = TOKENS[0].secret
    digits = {text[-9:-1] for text in (WITH_RE2.text(secret), WITH_RE2.tree({"token": secret})[0]["token"])}
    digits.add(WITH_RE2.tree({"raw": secret.encode()})[0]["raw"].decode()[-9:-1])
    digits.add(WITH_RE2.text(f"password={secret}")[-9:-1])
    assert len(digits) == 1


def test_a_secret_with_letters_of_other_scripts_correlates_as_text_and_as_bytes() -> None:
    text = "postgresql://app:p\u00e4ssw\u00f6rt\u4e2d@db/x"
    assert WITH_RE.text(text) == WITH_RE2.text(text)
    assert WITH_RE2.text(text).encode() == WITH_RE2.tree([text.encode()])[0][0]


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="16"):
        Redactor(b"short", engine())


# Trees


def test_keys_hide_their_values_whatever_the_type() -> None:
    tree: Any = {
        "password": "hunter2",
        "Client-Secret": b"\x00\x01",
        "apiKey": ["a", "b"],
        "credentials": {"pin": 1234},
        "passphrase": 12.5,
        "user": "ann",
    }
    hidden, paths = WITH_RE2.tree(tree)
    assert hidden["user"] == "ann"
    assert hidden["password"].startswith("[REDACTED:password:")
    assert hidden["Client-Secret"].startswith(b"[REDACTED:secret:")
    assert [is_placeholder(item) for item in hidden["apiKey"]] == [True, True]
    assert is_placeholder(hidden["credentials"]["pin"])
    assert is_placeholder(hidden["passphrase"])
    wanted = [["password"], ["Client-Secret"], ["apiKey", 0], ["apiKey", 1], ["credentials", "pin"]]
    assert sorted(map(str, paths)) == sorted(map(str, [*wanted, ["passphrase"]]))


@pytest.mark.parametrize("value", [None, True, False, "", [], {}, b""])
def test_what_says_nothing_is_not_hidden(value: Any) -> None:
    tree = {"password": value}
    assert WITH_RE2.tree(tree) == (tree, [])


def test_only_what_leads_to_a_secret_is_copied() -> None:
    tree: Any = {
        "left": {"deep": [{"text": "nothing"}]},
        "right": [{"password": "hunter2"}, {"text": "nothing"}],
    }
    before = copy_tree(tree)
    hidden, paths = WITH_RE2.tree(tree)
    assert tree == before
    assert hidden["left"] is tree["left"]
    assert hidden["right"][1] is tree["right"][1]
    assert hidden["right"][0] is not tree["right"][0]
    assert paths == [["right", 0, "password"]]


def test_a_key_that_is_a_secret_is_hidden_in_its_place_and_in_the_paths() -> None:
    secret = TOKENS[0].secret
    hidden, paths = WITH_RE2.tree({"a": 1, secret: {"password": "hunter2"}, "z": 2})
    assert list(hidden) == ["a", WITH_RE2.text(secret), "z"]
    assert secret not in str(paths)
    assert paths[0] == [WITH_RE2.text(secret), "password"]


def test_a_string_of_json_is_hidden_by_key_too() -> None:
    text = json.dumps({"user": "ann", "password": "hunter2-and-more", "usage": {"total_tokens": 812}})
    hidden = json.loads(WITH_RE2.text(text))
    assert is_placeholder(hidden.pop("password"))
    assert hidden == {"user": "ann", "usage": {"total_tokens": 812}}
    nested = json.dumps({"arguments": text})
    assert json.loads(json.loads(WITH_RE2.text(nested))["arguments"]) == json.loads(WITH_RE2.text(text))


def test_registered_types_keep_their_shape() -> None:
    types = registry()
    secret = TOKENS[0].secret
    value = {
        "a": Invoice(3, [secret]),
        "b": (secret, 1),
        "c": {secret},
        "d": Pair({"token": "abcdef"}, Point(1, 2)),
    }
    hidden, paths = WITH_RE2.tree(to_plain(value, types))
    placeholder = WITH_RE2.text(secret)
    back = types.revive(hidden)
    assert back["a"] == Invoice(3, [placeholder])
    assert back["b"] == (placeholder, 1)
    assert back["c"] == {placeholder}
    assert is_placeholder(back["d"].left["token"])
    assert back["d"].right == Point(1, 2)
    assert len(paths) == 4


def test_objects_with_other_keys_than_texts_are_hidden_by_name_too() -> None:
    tree = to_plain({1: "one", "password": "hunter2", b"x": TOKENS[0].secret}, TypeRegistry())
    hidden, _ = WITH_RE2.tree(tree)
    back = TypeRegistry().revive(hidden)
    assert back[1] == "one"
    assert is_placeholder(back["password"])
    assert is_placeholder(back[b"x"])


def test_texts_with_lone_surrogates_are_searched() -> None:
    types = TypeRegistry()
    tree = to_plain({"a": f"\ud800 {TOKENS[0].secret}", "password": "\udfff"}, types)
    back = types.revive(WITH_RE2.tree(tree)[0])
    assert back["a"] == f"\ud800 {WITH_RE2.text(TOKENS[0].secret)}"
    assert is_placeholder(back["password"])


def test_references_to_blobs_are_left_alone() -> None:
    tree = {"password": {"$hf": "blob", "kind": "str", "sha256": "0" * 64, "len": 5}}
    assert WITH_RE2.tree(tree) == (tree, [])


@given(values)
def test_any_state_can_be_hidden_and_comes_back(value: Any) -> None:
    hidden, _ = WITH_RE2.tree(to_plain(value, registry()))
    registry().revive(hidden)
    assert WITH_RE2.tree(hidden) == (hidden, [])


# Rules of the user


def test_patterns_and_keys_of_the_user_are_hidden_under_their_names() -> None:
    rules = Rules(patterns={"Employee": r"\bEMP-(\d{6})\b"}, keys=frozenset({"home_address"}))
    redactor = Redactor(KEY, engine(), rules)
    assert redactor.text("ask EMP-123456 or EMP-12").startswith("ask [REDACTED:employee:")
    hidden, paths = redactor.tree({"homeAddress": "Main St 1", "note": "EMP-123456"})
    assert hidden["homeAddress"].startswith("[REDACTED:home-address:")
    assert hidden["note"].startswith("[REDACTED:employee:")
    assert paths == [["homeAddress"], ["note"]]


@every_engine
def test_what_is_allowed_is_not_hidden(redactor: Redactor) -> None:
    secret = TOKENS[0].secret
    rules = Rules(allowed_keys=frozenset({"session-token"}), allowed_values=frozenset({secret, "changeme"}))
    lenient = Redactor(KEY, engine(), rules)
    tree = {"sessionToken": "abc", "text": f"documented: {secret}", "password": "changeme"}
    assert lenient.tree(tree) == (tree, [])
    assert redactor.tree(tree)[0] != tree
    assert is_placeholder(lenient.tree({"password": "other"})[0]["password"])


# Idempotence, and nothing else touched

fragments = (
    st.sampled_from([canary.text for canary in CANARIES])
    | st.sampled_from([canary.secret[:12] for canary in CANARIES])
    | st.sampled_from(
        [
            "password",
            "=",
            ": ",
            "token",
            '"',
            "'",
            "\\",
            " ",
            "\n",
            "secret=",
            "://u:p@h",
            "--api-key ",
            "[REDACTED:a:0123abcd]",
            "[REDACTED:",
            "]",
            "-----BEGIN PRIVATE KEY-----",
            "%3D",
            "\x00",
        ]
    )
    | st.text(max_size=8)
    | st.text("ABCDEFabcdef0123456789_-+/=.:@$", max_size=40)
)
mixtures = st.lists(fragments, max_size=8).map("".join)


@pytest.mark.sweep
@settings(max_examples=200, deadline=None)
@given(mixtures)
@example(TOKENS[0].secret + CANARIES[30].secret)
@example("password=[REDACTED:a:0123abcd]more1")
def test_hiding_twice_changes_nothing_and_both_engines_agree(text: str) -> None:
    hidden = WITH_RE2.text(text)
    assert WITH_RE2.text(hidden) == hidden
    assert WITH_RE.text(text) == hidden
    assert WITH_RE.text(hidden) == hidden


@settings(max_examples=120, deadline=None)
@given(mixtures)
def test_what_is_no_secret_stays_as_it_was(text: str) -> None:
    hidden = WITH_RE2.text(text)
    pieces, last = [], 0
    for start, end in spans(hidden):
        pieces.append(hidden[last:start])
        last = end
    at = 0
    for piece in [*pieces, hidden[last:]]:
        at = text.find(piece, at)
        assert at >= 0, "a piece that is no placeholder was not in the text, or not in this order"
        at += len(piece)


names = st.sampled_from(["password", "token", "a", "v", "note"])


@pytest.mark.sweep
@settings(deadline=None)
@given(
    st.recursive(
        mixtures | st.integers() | st.binary(max_size=30),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | mixtures, inner, max_size=4),
        max_leaves=12,
    )
)
def test_trees_are_hidden_once_and_for_all(tree: Any) -> None:
    before = copy_tree(tree)
    hidden, paths = WITH_RE2.tree(tree)
    assert tree == before
    assert WITH_RE2.tree(hidden) == (hidden, [])
    assert WITH_RE.tree(tree) == (hidden, paths)
    assert (hidden is tree) == (paths == [])
    for path in paths:
        assert path in redacted_paths(hidden) or any(
            path == found[: len(path)] for found in redacted_paths(hidden)
        )


@given(plain_trees)
def test_any_plain_tree_can_be_hidden(tree: Any) -> None:
    WITH_RE2.tree(tree)


# Operations


def at(tree: Any) -> Callable[[Any], Any]:
    """Give what finds the value at a path."""

    def find(path: Any) -> Any:
        value = tree
        for step in path:
            value = value[step]
        return value

    return find


def change(old: Any, new: Any, redactor: Redactor = WITH_RE2) -> tuple[list[dict[str, Any]], list[Any], Any]:
    """Take the operations between two states, hide them, and apply them to what is stored."""
    was, now = snapshot.take(old, PACKER), snapshot.take(new, PACKER)
    plain = now.plain(PACKER)
    ops, paths = redactor.operations(snapshot.changes(was, now, PACKER), at(plain))
    stored = copy_tree(redactor.tree(was.plain(PACKER))[0])
    return ops, paths, delta.apply(copy_tree(ops), stored)


@pytest.mark.sweep
@every_canary
def test_a_secret_split_across_two_appends_is_caught_at_every_place(canary: Canary, campaign: bool) -> None:
    whole = f"so far {canary.text} and more"
    hidden = WITH_RE2.tree({"log": whole})[0]
    step = (1 if len(whole) < 120 else 7) if campaign else 1 + len(whole) // 12
    for cut in range(1, len(whole), step):
        ops, _, stored = change({"log": whole[:cut]}, {"log": whole})
        assert stored == hidden
        assert traces(canary, stored["log"]) == []
        assert len(ops) <= 1


def test_an_append_after_a_secret_stays_an_append() -> None:
    start = "password=hunter2x7, "
    ops, paths, stored = change({"log": start}, {"log": start + "and then"})
    assert ops == [delta.append(["log"], "and then")]
    assert paths == [["log"]]
    assert stored == {"log": WITH_RE2.text(start) + "and then"}


def test_an_append_without_secrets_is_the_very_same_operation() -> None:
    op = delta.append(["log"], "more")
    ops, paths = WITH_RE2.operations([op], lambda path: "so far more")
    assert ops[0] is op
    assert paths == []


def test_a_secret_that_an_append_completes_replaces_the_string() -> None:
    secret = TOKENS[0].secret
    ops, paths, _ = change({"log": "key " + secret[:10]}, {"log": "key " + secret})
    assert ops == [delta.set_value(["log"], "key " + WITH_RE2.text(secret))]
    assert paths == [["log"]]


def test_growing_under_a_telling_key_replaces_the_placeholder() -> None:
    ops, paths, stored = change({"password": "hunter2"}, {"password": "hunter2-longer"})
    assert [op["op"] for op in ops] == ["set"]
    assert stored == WITH_RE2.tree({"password": "hunter2-longer"})[0]
    assert paths == [["password"]]


def test_names_along_the_path_count() -> None:
    secret = "nothing but letters"
    op = delta.set_value(["agents", 0, "credentials", "who"], secret)
    ops, paths = WITH_RE2.operations([op], at({}))
    assert is_placeholder(ops[0]["value"])
    assert paths == [["agents", 0, "credentials", "who"]]
    ops, paths = WITH_RE2.operations([delta.splice(["api_keys"], 4, 0, ["one", "two"])], at({}))
    assert [is_placeholder(item) for item in ops[0]["insert"]] == [True, True]
    assert paths == [["api_keys", 4], ["api_keys", 5]]


def test_secrets_in_the_keys_of_a_path_are_hidden_too() -> None:
    secret = TOKENS[0].secret
    ops, paths = WITH_RE2.operations([delta.delete(["by_key", secret])], at({}))
    assert ops == [delta.delete(["by_key", WITH_RE2.text(secret)])]
    assert secret not in str(paths)


def test_operations_without_secrets_are_the_very_same() -> None:
    given_ops = [
        delta.set_value(["a"], {"b": [1, "two"]}),
        delta.delete(["c"]),
        delta.splice(["d"], 0, 1, ["x"]),
    ]
    ops, paths = WITH_RE2.operations(given_ops, at({}))
    assert all(op is wanted for op, wanted in zip(ops, given_ops, strict=True))
    assert paths == []


words = st.sampled_from(["password", "token", "a", "b", "note", "properties", "max_tokens", "logprobs"])
leaves = mixtures | st.integers(-5, 5) | st.booleans() | st.none() | st.binary(max_size=20)
states = st.dictionaries(
    words,
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(words, inner, max_size=3)
            | st.dictionaries(st.integers(0, 2) | words, inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw a state, and one that shares much with it."""
    old = draw(states)
    new = copy_tree(old)
    for key in list(new):
        if isinstance(new[key], str) and draw(st.booleans()):
            new[key] += draw(mixtures)
        elif isinstance(new[key], list) and draw(st.booleans()):
            new[key].append(draw(leaves))
    new.update(draw(states) if draw(st.booleans()) else {})
    return old, new


@pytest.mark.sweep
@settings(max_examples=120, deadline=None)
@given(changed())
def test_hidden_operations_make_of_the_hidden_state_the_next_hidden_state(pair: tuple[Any, Any]) -> None:
    old, new = pair
    _, _, stored = change(old, new)
    assert PACKER.pack_plain(stored) == PACKER.pack_plain(WITH_RE2.tree(to_plain(new, registry()))[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({1: "a", "password": "x" * 40}, {1: "a", "password": "x" * 39 + "y"}),
        ({1: "a" * 90, "password": ["x"]}, {1: "a" * 90, "password": ["x", "y"]}),
        ({1: "a" * 90, "password": "x"}, {2: "a" * 90, "password": "x"}),
        ({1: "a" * 90}, {1: "a" * 90, "password": "x"}),
        ({1: "a" * 90, 2: "b" * 90}, {1: "a" * 90, "password": "b"}),
        ({1: "a" * 90, "log": "b" * 90}, {1: "a" * 90, "log": "b" * 90 + " " + TOKENS[0].secret}),
        ({1: "a" * 90, 2: {"token": "abc"}}, {1: "a" * 90, 2: {"token": "abcd"}}),
    ],
)
def test_changes_inside_objects_with_other_keys_than_texts_fit_what_is_stored(old: Any, new: Any) -> None:
    _, _, stored = change({"deep": old}, {"deep": new})
    assert stored == WITH_RE2.tree(to_plain({"deep": new}, registry()))[0]


def test_a_pair_that_is_set_as_a_whole_is_known_by_its_key() -> None:
    tree = {"a": {"$hf": "map", "v": [[1, "x"], ["password", "hunter2"]]}}
    ops, paths = WITH_RE2.operations([delta.set_value(["a", "v", 1], ["password", "hunter2"])], at(tree))
    assert ops[0]["value"][0] == "password"
    assert is_placeholder(ops[0]["value"][1])
    assert paths == [["a", "v", 1, 1]]
    op = delta.set_value(["a", "v", 0], [1, "y"])
    assert WITH_RE2.operations([op], at(tree)) == ([op], [])
    ops, _ = WITH_RE2.operations([delta.set_value(["a", "v", 1, 0], "secret")], at(tree))
    assert ops[0]["value"] == "secret"


def test_a_pattern_that_looks_at_the_end_is_asked_about_the_string_before_it_grew() -> None:
    redactor = Redactor(KEY, engine(), Rules(patterns={"last": "[0-9]{6}$"}))
    _, _, stored = change({"log": "code 123456"}, {"log": "code 123456 was used"}, redactor)
    assert stored == redactor.tree({"log": "code 123456 was used"})[0]
    op = delta.append(["log"], " more")
    assert redactor.operations([op], lambda path: "some more")[0] == [op]


def test_an_append_of_what_is_hidden_anyway_is_no_operation() -> None:
    redactor = Redactor(KEY, engine(), Rules(allowed_values=frozenset({"", "ab"})))
    assert redactor.operations([delta.append(["password"], "")], lambda path: "ab") == ([], [])


# Work grows with the text, not faster

UNITS = [
    "://a:b",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n",
    "token=",
    'token:"',
    "password='",
    '\\"password\\": \\"',
    "secret=secret",
    "AKIA",
    "eyJabcdefghijklmnop.",
    "eyJ",
    "bearer a",
    "Basic ",
    "curl -u ",
    "--api-key ",
    "--a-",
    "aws secret ",
    "Cookie: a=b",
    "[REDACTED:",
    "a",
    "\\",
    '"',
    "=",
    "@",
    "://u:p@",
    "%3A%2F%2F",
    "<password>",
    "password: str = ",
    "Private-Lines: 9\n",
    "password=[REDACTED:a:00000000]",
]


@pytest.mark.sweep
@pytest.mark.parametrize("unit", daily(UNITS, UNITS[::3]))
def test_texts_made_to_be_slow_are_done(unit: str) -> None:
    """Quadratic work on these would not be done before the test run's limit for one test."""
    text = unit * (100_000 // len(unit))
    assert WITH_RE.text(text) == WITH_RE2.text(text)


def test_ten_thousand_levels_are_walked() -> None:
    tree: Any = TOKENS[0].secret
    for level in range(10_000):
        tree = [tree] if level % 2 else {"k": tree}
    hidden, paths = WITH_RE2.tree(tree)
    assert len(paths) == 1 and len(paths[0]) == 10_000
    while isinstance(hidden, list | dict):
        hidden = hidden[0] if isinstance(hidden, list) else hidden["k"]
    assert is_placeholder(hidden)


def test_assigned_secrets_of_a_known_kind_are_called_by_it() -> None:
    for canary in TOKENS:
        if canary.text == canary.secret:
            assert f"[REDACTED:{canary.kind}:" in WITH_RE2.text(f'token = "{canary.text}"')
            assert f"[REDACTED:{canary.kind}:" in WITH_RE2.tree({"token": canary.text})[0]["token"]


def test_canaries_of_assignments_are_found_under_their_key_in_trees_too() -> None:
    for canary in ASSIGNED:
        hidden, _ = WITH_RE2.tree({canary.kind if canary.kind != "key" else "api_key": canary.secret})
        assert traces(canary, str(hidden)) == []
