"""What is told of a running program: values that say no more than can be counted by."""

from __future__ import annotations

from dataclasses import fields

import pytest

from holdfast.domain.telemetry import FoundBy, Recovered, RecoveryOutcome, Saved, SaveOutcome


@pytest.mark.parametrize("told", [Saved, Recovered])
def test_what_is_counted_names_neither_workflows_nor_checkpoints(told: type) -> None:
    assert not {"workflow_id", "checkpoint_id", "session_id"} & {item.name for item in fields(told)}


@pytest.mark.parametrize("kinds", [SaveOutcome, RecoveryOutcome, FoundBy])
def test_what_is_counted_by_is_a_short_word(kinds: type[SaveOutcome]) -> None:
    assert all(kind.value.isidentifier() and kind.value.islower() for kind in kinds)
