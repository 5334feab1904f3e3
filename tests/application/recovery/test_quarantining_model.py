"""Any damage at all: what can be used gives the right state, and what cannot is explained."""

from __future__ import annotations

import copy
import warnings
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.application.survey import survey
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, CheckpointQuarantinedError
from holdfast.domain.quarantine import Kind
from tests.application.services import make_service
from tests.damage import flip, replace_data

COUNT = 90


@cache
def grown() -> MemoryStore:
    store = MemoryStore()
    service = make_service(store)
    for n in range(COUNT):
        service.create_checkpoint("WF", {"n": n, "list": list(range(n))})
    assert len(store.keyframes("WF")) > 2
    return store


def spoilt(records: set[int], keyframes: set[int]) -> CheckpointService:
    """Open a service on a copy of the store with some pieces changed."""
    store = MemoryStore()
    store._workflows = copy.deepcopy(grown()._workflows)
    workflow = store._workflows["WF"]
    for sequence in records:
        workflow.records[sequence] = flip(workflow.records[sequence])
    for sequence in sorted(workflow.keyframes):
        if sequence in keyframes:
            workflow.keyframes[sequence] = replace_data(workflow.keyframes[sequence], b"spoilt")
    return make_service(store)


def usable(service: CheckpointService) -> set[int]:
    """Tell which checkpoints can be restored; each of them must give the state it had."""
    found = set()
    for sequence in range(1, COUNT + 1):
        try:
            state = service.restore_checkpoint(f"WF@{sequence}")
        except (CheckpointCorruptError, CheckpointNotFoundError):
            continue
        assert state.context == {"n": sequence - 1, "list": list(range(sequence - 1))}
        found.add(sequence)
    return found


SEQUENCES = st.sets(st.integers(1, COUNT), max_size=4)
PLACES = st.sets(st.sampled_from([0, 1, 2, 3]), max_size=4)


@pytest.mark.sweep
@settings(max_examples=20)
@given(SEQUENCES, PLACES)
def test_nothing_usable_is_lost_nothing_wrong_is_given_and_everything_else_is_explained(records, places):
    listed = [keyframe.sequence for keyframe in grown().keyframes("WF")]
    keyframes = {listed[place] for place in places if place < len(listed)}
    service = spoilt(records, keyframes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = usable(service)
        done = service.quarantine.set_aside("WF", survey(service._engine.kit.store, "WF").damage)
        after = usable(service)
    barred = {one.sequence for one in done.quarantined if one.kind is Kind.CHECKPOINT}
    assert after == before
    # Only what is damaged itself is barred, and nothing that can be used.
    assert barred <= records | keyframes and barred.isdisjoint(before)
    assert set(done.rebuilt) <= keyframes and set(done.rebuilt) <= before
    for sequence in range(1, COUNT + 1):
        why = service.quarantine.why_unusable("WF", sequence)
        assert bool(why) == (sequence not in after)
        assert all(one.sequence in records | keyframes for one in why)


@settings(max_examples=20)
@given(SEQUENCES, PLACES)
def test_doing_it_again_changes_nothing(records, places):
    listed = [keyframe.sequence for keyframe in grown().keyframes("WF")]
    service = spoilt(records, {listed[place] for place in places if place < len(listed)})
    store = service._engine.kit.store
    service.quarantine.set_aside("WF", survey(store, "WF").damage)
    first = {name: store.file(name) for name in store.files("quarantine/")}
    again = service.quarantine.set_aside("WF", survey(store, "WF").damage)
    assert again.rebuilt == ()
    assert {name: store.file(name) for name in store.files("quarantine/")} == first


def test_what_is_barred_says_so_and_what_hangs_on_it_says_what_it_hangs_on():
    service = spoilt({5}, set())
    service.quarantine.set_aside("WF", survey(service._engine.kit.store, "WF").damage)
    for sequence, kind in ((5, CheckpointQuarantinedError), (6, CheckpointCorruptError)):
        try:
            service.restore_checkpoint(f"WF@{sequence}")
        except kind as refusal:
            assert type(refusal) is not CheckpointQuarantinedError or sequence == 5
        else:
            raise AssertionError(f"{sequence} was given")
