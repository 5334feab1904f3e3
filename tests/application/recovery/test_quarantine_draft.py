"""A report tells what is stored of a checkpoint, and copies what its sums do not vouch for."""

from __future__ import annotations

import pytest

from holdfast.application.recovery.quarantine_draft import (
    draft_report,
    entry_of,
    keyframe_problem,
    problem_of,
)
from holdfast.domain.errors import CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.quarantine import Kind
from tests.application.services import make_service
from tests.damage import replace_data


@pytest.fixture
def kit():
    service = make_service()
    for n in range(3):
        service.create_checkpoint("WF", {"n": n})
    return service._engine.kit


def test_a_whole_keyframe_is_named_and_a_damaged_one_copied(kit):
    report, data = draft_report(kit, "WF", 1, Kind.CHECKPOINT, "wrong")
    assert [(part.name, part.is_copied) for part in report.parts] == [("record", True), ("keyframe", False)]
    keyframes = kit.store._workflows["WF"].keyframes
    keyframes[1] = replace_data(keyframes[1], b"other")
    report, more = draft_report(kit, "WF", 1, Kind.CHECKPOINT, "wrong")
    assert more == data + b"other"
    report, alone = draft_report(kit, "WF", 1, Kind.KEYFRAME, "wrong")
    assert alone == b"other" and report.place == "keyframe WF@1" and "-keyframe-" in report.name
    assert isinstance(keyframe_problem(kit.store, "WF", 1), ChecksumMismatchError)
    assert keyframe_problem(kit.store, "WF", 2) is None


def test_the_same_bytes_have_the_same_name_and_others_another(kit):
    first, _ = draft_report(kit, "WF", 2, Kind.CHECKPOINT, "wrong")
    assert draft_report(kit, "WF", 2, Kind.CHECKPOINT, "still wrong")[0].name == first.name
    records = kit.store._workflows["WF"].records
    records[2] += b"x"
    assert draft_report(kit, "WF", 2, Kind.CHECKPOINT, "wrong")[0].name != first.name


def test_secrets_in_a_reason_are_hidden(kit):
    report, _ = draft_report(kit, "WF", 2, Kind.CHECKPOINT, "found with key AKIAIOSFODNN7EXAMPLE by chance")
    assert "AKIAIOSFODNN7EXAMPLE" not in report.reason


def test_what_is_not_there_has_no_report(kit):
    assert entry_of(kit.store, "WF", 9) is None
    with pytest.raises(CheckpointNotFoundError):
        draft_report(kit, "WF", 9, Kind.CHECKPOINT, "wrong")
    assert isinstance(problem_of(lambda: kit.store.keyframe("WF", 9)), CheckpointNotFoundError)
