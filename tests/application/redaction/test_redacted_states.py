"""What is stored is the redacted state, whichever way it came there."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.redaction import engine
from holdfast.application.redaction.redacting import KEY_FILE
from holdfast.application.restore import Restorer
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import PromiseBrokenWarning
from holdfast.domain.placeholders import is_placeholder
from holdfast.domain.plain import to_plain
from holdfast.domain.record import KeyframeEntry
from holdfast.domain.redaction import Redactor, Rules
from holdfast.domain.state import WorkflowState
from tests.application.services import make_kit
from tests.canaries import CANARIES, TOKENS
from tests.values import registry

SECRET, OTHER = TOKENS[0].secret, TOKENS[5].secret
LONG = "lorem ipsum " * 200

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")


def serve(store: MemoryStore, **more: Any) -> CheckpointService:
    return CheckpointService(make_kit(store, registry(), **more))


def context(service: CheckpointService, name: str = "w@latest") -> Any:
    return service.restore_checkpoint(name).context


def redactor_of(store: MemoryStore) -> Redactor:
    return Redactor(store.file(KEY_FILE) or b"no secret was met", engine())


class WithoutLast(MemoryStore):
    """Forgets all keyframes but the first, so that everything else comes from changes."""

    is_forgetful = False

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        known = super().keyframes(workflow_id)
        return known[:1] if self.is_forgetful else known


pieces = (
    st.sampled_from([canary.text for canary in CANARIES])
    | st.sampled_from([canary.text[: len(canary.text) // 2] for canary in CANARIES])
    | st.sampled_from(["password=", "token: ", " ", "\n", '"', "x", LONG, "[REDACTED:token:0123abcd]"])
    | st.text(max_size=6)
)
texts = st.lists(pieces, max_size=4).map("".join)
keys = st.sampled_from(["password", "token", "a", "b", "note", "properties", SECRET]) | st.text(max_size=3)
leaves = (
    texts
    | st.integers(-3, 3)
    | st.booleans()
    | st.none()
    | texts.map(lambda text: text.encode("utf-8", "replace"))
)
states = st.dictionaries(
    keys,
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(keys, inner, max_size=3)
            | st.dictionaries(st.integers(0, 2) | keys, inner, max_size=3)
            | st.lists(inner, max_size=2).map(tuple)
        ),
        max_leaves=6,
    ),
    max_size=4,
)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw states of which each shares much with the one before."""
    history = [draw(states)]
    for _ in range(draw(st.integers(1, 5))):
        state = dict(history[-1])
        for key, value in list(state.items()):
            if type(value) is str and draw(st.booleans()):
                state[key] = value + draw(texts)
            elif type(value) is list and draw(st.booleans()):
                state[key] = [*value[1:], draw(leaves)]
        state.update(draw(states) if draw(st.booleans()) else {})
        history.append(state)
    return history


@pytest.mark.sweep
@settings(max_examples=100, deadline=None)
@given(histories(), st.booleans(), st.sampled_from([100, 16 * 1024]))
def test_redacting_by_changes_is_redacting_the_whole(
    history: list[dict[str, Any]], is_forgotten: bool, threshold_bytes: int
) -> None:
    store = WithoutLast()
    service = serve(store, cache_bytes=0 if is_forgotten else 10**9, blob_threshold_bytes=threshold_bytes)
    for state in history:
        service.create_checkpoint("w", state, force=True)
    redactor = redactor_of(store)
    restorer = Restorer(store, make_kit(store).formats)
    for is_forgetful in (False, True):
        store.is_forgetful = is_forgetful
        for sequence, state in enumerate(history, start=1):
            wanted = redactor.tree(to_plain(state, registry()))[0]
            tree = restorer.whole(restorer.restore("w", sequence)).get("context", {})
            packer = make_kit().packer
            assert packer.pack_plain(tree) == packer.pack_plain(wanted)


def test_a_keyframe_in_the_middle_is_what_the_changes_give() -> None:
    store = WithoutLast()
    service = serve(store)
    for step in range(60):
        log = LONG * (step // 4) + f"{SECRET} and {step}"
        service.create_checkpoint("w", {"log": log, "password": f"hunter{step}", "n": [step, OTHER]})
    assert len(store.keyframes("w")) > 2
    fast = context(service)
    store.is_forgetful = True
    assert context(service) == fast
    assert is_placeholder(fast["password"])
    assert SECRET not in fast["log"]
    assert all(not service.validate_checkpoint(f"w@{step}").problems for step in (1, 30, 60))


@pytest.mark.parametrize("cache_bytes", [0, 10**9])
def test_an_unchanged_state_is_recognised_after_its_secrets_were_hidden(cache_bytes: int) -> None:
    service = serve(MemoryStore(), cache_bytes=cache_bytes)
    state = {"log": f"key {SECRET}", "password": "hunter2", "items": [OTHER, "a"]}
    first = service.create_checkpoint("w", state, stage_state={"token": "abcdef"})
    again = service.create_checkpoint("w", state, stage_state={"token": "abcdef"})
    assert again == first
    assert service.create_checkpoint("w", state, stage_state={"token": "another"}).sequence == 2
    assert service.create_checkpoint("w", {**state, "password": "hunter3"}).sequence == 3


def test_a_base_that_was_read_back_is_built_upon() -> None:
    store = MemoryStore()
    state: dict[str, Any] = {"log": f"key {SECRET}", "items": [OTHER] * 3, "n": 0}
    for step in range(6):
        state = {**state, "log": state["log"] + f" {step}", "n": step}
        serve(store).create_checkpoint("w", state)
    redacted = redactor_of(store).tree(state)[0]
    assert context(serve(store)) == redacted
    # Only what really changed was stored: the hidden items were not written again.
    last = next(iter(store.records("w", 6, 6)))
    assert b'"items"' not in last


def test_what_was_restored_with_placeholders_can_be_stored_again() -> None:
    store = MemoryStore()
    serve(store).create_checkpoint("w", {"password": "hunter2", "log": f"key {SECRET}"})
    service = serve(store)
    state = service.load_latest("w")
    assert isinstance(state, WorkflowState)
    assert service.create_checkpoint("w", state).sequence == 1
    state.context["log"] += " and more"
    service.create_checkpoint("w", state)
    assert context(service)["log"].endswith("] and more")


def test_append_only_fields_are_read_whole_once_after_they_were_read_back() -> None:
    store = MemoryStore()
    items = [f"{SECRET} {number}" for number in range(300)]
    serve(store).create_checkpoint("w", {"items": items}, append_only=["items"])
    service = serve(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseBrokenWarning)
        for number in range(30):
            items = [*items, f"{OTHER} {number} {LONG}"]
            service.create_checkpoint("w", {"items": items}, append_only=["items"])
    assert context(service)["items"] == redactor_of(store).tree(items)[0]


def test_a_store_that_was_written_without_redaction_is_redacted_from_now_on() -> None:
    store = WithoutLast()
    state = {"log": f"key {SECRET}", "kept": OTHER}
    serve(store, redact=False).create_checkpoint("w", state)
    service = serve(store)
    service.create_checkpoint("w", {**state, "log": state["log"] + " and more"})
    assert context(service) == redactor_of(store).tree({**state, "log": state["log"] + " and more"})[0]
    assert context(service, "w@1") == state


def test_rules_that_changed_hold_from_the_next_checkpoint_on() -> None:
    store = MemoryStore()
    serve(store).create_checkpoint("w", {"who": "EMP-123456", "n": 1})
    kit = make_kit(store)
    assert kit.redactor is not None
    rules = Rules(patterns={"employee": "EMP-[0-9]{6}"})
    kit.redactor._build = lambda key: Redactor(key, engine(), rules)
    service = CheckpointService(kit)
    service.create_checkpoint("w", {"who": "EMP-123456", "n": 2})
    assert context(service)["who"].startswith("[REDACTED:employee:")


def test_a_fork_of_a_redacted_state_is_redacted() -> None:
    store = MemoryStore()
    service = serve(store)
    service.create_checkpoint("w", {"password": "hunter2"})
    service.fork_workflow("w@1", "v")
    assert context(service, "v@1") == context(service)


def test_events_are_redacted_and_told_as_they_are_stored() -> None:
    service = serve(MemoryStore())
    told = service.append_event("w", "X", {"log": SECRET, "n": 1}, cost={"usd": 1, "note": SECRET})
    assert is_placeholder(told.data["log"])
    [read] = service.events("w")
    assert read.data == told.data
    assert read.cost == {"usd": 1, "note": told.data["log"]}


def test_without_redaction_nothing_is_hidden() -> None:
    store = MemoryStore()
    service = serve(store, redact=False)
    service.create_checkpoint("w", {"password": "hunter2"})
    assert replace(make_kit(redact=False)).redactor is None
    assert context(service) == {"password": "hunter2"}
    assert store.file(KEY_FILE) is None
