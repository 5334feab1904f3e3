"""Restored states say what they lack, and the caller's resolver may fill it in."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.revealing import Resolver, Revealed, WatchedBlobs, reveal
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import InvalidStateError, RedactedStateWarning
from holdfast.domain.plain import to_plain
from tests.application.services import make_kit
from tests.canaries import TOKENS
from tests.values import Invoice, registry

PACKER = OrmsgpackPacker(registry())
A, B = "[REDACTED:token:00000001]", "[REDACTED:github-token:00000002]"
SECRET = TOKENS[0].secret
FILLED = {A: "one", B: "two"}


def revealed(tree: Any, resolver: Resolver | None = None) -> tuple[Any, Revealed]:
    plain = to_plain(tree, registry())
    told = reveal(plain, resolver, PACKER)
    return registry().revive(plain), told


def test_a_tree_without_placeholders_lacks_nothing() -> None:
    assert revealed({"a": ["[REDACTED: not quite]"]}) == ({"a": ["[REDACTED: not quite]"]}, Revealed())


def test_places_are_told_as_json_pointers_the_way_the_caller_sees_them() -> None:
    tree = {"a/b": {"c~d": [1, f"x {A} y"]}, "t": (A, 1), "i": Invoice(3, [B]), "b": b"\xff" + A.encode()}
    _, told = revealed(tree)
    assert told == Revealed(("/a~1b/c~0d/1", "/t/0", "/i/lines/0", "/b"))


def test_a_resolver_fills_values_parts_of_texts_bytes_and_keys() -> None:
    asked = []

    def resolver(pointer: str, placeholder: str) -> Any:
        asked.append(pointer)
        return FILLED[placeholder]

    tree = {
        "a": A,
        "text": f"x {A}, {B}",
        "raw": b"\xff" + A.encode(),
        "all": B.encode(),
        A: {"in": B},
        "n": 1,
    }
    filled, told = revealed(tree, resolver)
    assert filled == {
        "a": "one", "text": "x one, two", "raw": b"\xffone", "all": b"two", "one": {"in": "two"}, "n": 1,
    }  # fmt: skip
    assert list(filled) == ["a", "text", "raw", "all", "one", "n"]
    assert told == Revealed((), 7)
    assert "/a" in asked and f"/{A}/in" in asked


def test_values_of_any_type_the_registry_knows_may_be_filled_in() -> None:
    filled, _ = revealed({"a": A, "b": A.encode()}, lambda pointer, placeholder: (1, Invoice(2, ["x"])))
    assert filled == {"a": (1, Invoice(2, ["x"])), "b": (1, Invoice(2, ["x"]))}


def test_what_the_resolver_does_not_know_stays_and_is_told() -> None:
    filled, told = revealed(
        {"a": A, "b": f"{A} {B}"}, lambda pointer, placeholder: {A: "one"}.get(placeholder)
    )
    assert filled == {"a": "one", "b": f"one {B}"}
    assert told == Revealed(("/b",), 2)


def test_a_part_of_a_text_can_only_be_a_text() -> None:
    with pytest.raises(InvalidStateError, match="answered with int"):
        revealed({"a": f"x {A}"}, lambda pointer, placeholder: 3)


def test_texts_with_lone_surrogates_are_told_too() -> None:
    _, told = revealed({"a": f"\ud800 {A}"})
    assert told.left == ("/a",)


def test_many_places_are_shown_in_short_and_told_in_full() -> None:
    with pytest.warns(RedactedStateWarning, match="/1, .* and 5 more") as caught:
        Revealed(tuple(f"/{number}" for number in range(15))).warn("w@1", 1)
    warning = caught[0].message
    assert isinstance(warning, RedactedStateWarning)
    assert len(warning.pointers) == 15
    assert caught[0].filename == __file__


def test_blobs_are_watched() -> None:
    blobs = WatchedBlobs({"a": b"nothing", "b": A.encode()}.__getitem__)
    assert blobs.load("a") == b"nothing"
    assert not blobs.is_redacted
    assert blobs.load("b") == A.encode()
    assert blobs.is_redacted


# Through the service

LONG = "lorem ipsum " * 3_000
STATES: dict[str, Any] = {
    "a text": {"log": f"key {SECRET}"},
    "a telling key": {"password": "hunter2"},
    "bytes": {"raw": b"\x00\xff" + SECRET.encode()},
    "a large text": {"doc": LONG + SECRET},
    "large bytes": {"doc": b"\xff" + (LONG + SECRET).encode()},
    "a tuple": {"pair": (SECRET, 1)},
    "lone surrogates": {"odd": f"\ud800 {SECRET}"},
    "a key": {SECRET: 1},
}
MODES = [
    {"mode": "default", "compression": "none"},
    {"mode": "default", "compression_threshold_bytes": 10},
    {"mode": "performance", "compression": "none"},
    {"mode": "compliance", "compression": "gzip", "compression_threshold_bytes": 10},
]


def serve(store: MemoryStore, resolver: Resolver | None = None, **settings: Any) -> CheckpointService:
    return CheckpointService(replace(make_kit(store, **settings), resolver=resolver))


@pytest.mark.parametrize("settings", MODES)
@pytest.mark.parametrize("name", STATES)
def test_a_redacted_state_says_so_however_it_is_stored(name: str, settings: dict[str, Any]) -> None:
    store = MemoryStore()
    service = serve(store, **settings)
    service.create_checkpoint("first", STATES[name])
    service.create_checkpoint("later", {"a": 1})
    service.create_checkpoint("later", {"a": 1, **STATES[name]})
    service.create_checkpoint("clean", {"a": LONG, "pair": (1, 2), "raw": b"\xff"})
    again = serve(store, **settings)
    for workflow_id in ("first", "later"):
        with pytest.warns(
            RedactedStateWarning, match=f"{workflow_id}@. was stored without its secrets"
        ) as caught:
            state = again.load_latest(workflow_id)
        assert state is not None
        [warning] = [one.message for one in caught if isinstance(one.message, RedactedStateWarning)]
        assert len(warning.pointers) == 1
        assert warning.pointers[0].startswith("/context/")
        assert SECRET not in str(warning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.load_latest("clean")


@pytest.mark.parametrize("settings", MODES)
@pytest.mark.parametrize("name", [name for name in STATES if name != "lone surrogates"])
def test_a_resolver_gives_the_state_back_as_it_was(name: str, settings: dict[str, Any]) -> None:
    store = MemoryStore()
    serve(store, **settings).create_checkpoint("w", STATES[name])
    secret = "hunter2" if name == "a telling key" else SECRET
    again = serve(store, lambda pointer, placeholder: secret, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = again.load_latest("w")
    assert state is not None
    assert state.context == STATES[name]


def test_a_string_that_grew_on_a_blob_with_a_placeholder_says_so() -> None:
    store = MemoryStore()
    service = serve(store)
    service.create_checkpoint("w", {"doc": LONG + SECRET})
    service.create_checkpoint("w", {"doc": LONG + SECRET + " and more"})
    with pytest.warns(RedactedStateWarning, match="/context/doc"):
        serve(store).load_latest("w")


def test_the_states_of_stage_and_agent_say_so_and_are_filled_too() -> None:
    store = MemoryStore()
    states: Any = {"stage_state": {"token": "abcdef"}, "agent_state": {"n": 1}}
    serve(store).create_checkpoint("w", {}, **states)
    with pytest.warns(RedactedStateWarning, match="/stage_state/token"):
        serve(store).get_by_id("w@1")
    found = serve(store, lambda pointer, placeholder: "abcdef").get_by_id("w@1")
    assert found is not None
    assert found.stage_state == states["stage_state"]


def test_the_trail_tells_how_much_was_missing_and_how_much_was_filled() -> None:
    store = MemoryStore()
    serve(store).create_checkpoint("w", {"token": "abcdef", "password": "hunter2"})
    known = {"/context/token": "abcdef"}
    service = serve(store, lambda pointer, placeholder: known.get(pointer), session="reader")
    with pytest.warns(RedactedStateWarning, match="/context/password"):
        service.load_latest("w")
    service.flush()
    told = [line for line in store.trail("reader") if b"STATE_RESTORED" in line]
    assert b'"redacted":1,"resolved":1' in told[0]
