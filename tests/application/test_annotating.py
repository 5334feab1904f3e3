"""What people say about a checkpoint is kept beside it, and changes nothing of it."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.application.annotating import annotation_of
from holdfast.application.insight.runs import RunBook
from holdfast.application.reading import Reader
from holdfast.application.resolve import resolve
from holdfast.domain.annotation import Annotation
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidStateError,
    LeaseHeldError,
)


@pytest.fixture(params=["file", "sqlite"])
def service(request, tmp_path):
    with holdfast.open(f"{request.param}:{tmp_path}/store", actor="ann") as opened:
        for number in range(1, 4):
            opened.create_checkpoint("W", {"n": number})
        yield opened


def said(service, name):
    kit = service._engine.kit
    return annotation_of(Reader(kit), resolve(kit.store, name))


def test_the_last_that_was_said_holds_and_what_is_left_out_stays(service):
    service.annotate("W@2", labels=["release", "checked"])
    service.annotate("W@2", note="before the move")
    told = said(service, "W@2")
    assert (told.labels, told.note, told.by) == (("checked", "release"), "before the move", "ann")
    assert service.annotate("W@2", labels=[]).labels == () and said(service, "W@2").note == "before the move"
    assert said(service, "W@1") == said(service, "W@3") == Annotation()


def test_the_checkpoint_and_its_run_stay_as_they_are(service):
    before = resolve(service._engine.kit.store, "W@2").entry
    row = service.list_checkpoints("W")
    service.annotate("W@2", labels=["x"], note="y")
    assert resolve(service._engine.kit.store, "W@2").entry == before
    assert service.list_checkpoints("W") == row
    assert service.validate_checkpoint("W@2").valid
    result = service.recover_workflow("W")
    assert result.skipped == () or list(result.skipped) == []


def test_it_is_care_and_no_work_of_its_run(service):
    kit = service._engine.kit
    before = RunBook(kit).row("W")
    service.annotate("W@3", note="y")
    after = RunBook(kit).row("W")
    assert before is not None and after is not None
    assert (after.last_activity, after.status) == (before.last_activity, before.status)


def test_it_is_told_in_the_trail_without_its_words(service):
    service.annotate("W@2", labels=["x"], note="a secret plan")
    [entry] = service.audit.query_events(event_types=["CHECKPOINT_NOTED"])
    assert (entry.workflow_id, entry.actor, entry.facts["cp_seq"]) == ("W", "ann", 2)
    assert "plan" not in str(entry)


def test_secrets_are_hidden_in_it(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store") as opened:
        opened.create_checkpoint("W", {"n": 1})
        opened.annotate("W@1", note="token ghp_" + "a1B2" * 9)
        assert "ghp_a1B2" not in said(opened, "W@1").note


def test_what_is_not_there_or_cannot_be_said_is_refused(service):
    with pytest.raises(CheckpointNotFoundError):
        service.annotate("W@9", note="x")
    with pytest.raises(InvalidStateError):
        service.annotate("W@1", labels=["a\nb"])


def test_whoever_looks_at_it_as_it_stands_when_it_is_said_may_refuse(service):
    seen = []

    def refuse(found):
        seen.append((str(found), found.entry.pinned))
        raise PermissionError("not this one")

    before = resolve(service._engine.kit.store, "W@2").id
    service.pin("W@2")
    with pytest.raises(PermissionError):
        service.recording.annotate(before, ["x"], "y", refuse)
    assert seen == [("W@2", True)] and said(service, "W@2") == Annotation()


def test_what_is_answered_is_what_was_said_here(service):
    answered = service.annotate("W@2", labels=["b", "a"], note=" y ")
    assert answered == said(service, "W@2") == Annotation(("a", "b"), "y", "ann", answered.event_seq)


LOOKING_AFTER = [
    lambda other: other.pin("W@1"),
    lambda other: other.annotate("W@1", note="x"),
    lambda other: other.delete("W@1"),
    lambda other: other.prune_checkpoints("W", retain_count=2, retain_days=0),
]


@pytest.mark.parametrize("looking_after", LOOKING_AFTER)
def test_who_writes_without_a_lease_finds_one_commit_refused_after_others_looked_after_it(
    service, looking_after
):
    for number in range(9):
        service.create_checkpoint("W", {"n": 10 + number})
    with holdfast.open(service.recording.url) as other:
        looking_after(other)
    with pytest.raises(CheckpointConflictError):
        service.create_checkpoint("W", {"n": 99})
    service.create_checkpoint("W", {"n": 99})


@pytest.mark.parametrize("looking_after", LOOKING_AFTER)
def test_under_a_lease_the_others_are_refused(service, looking_after):
    service.acquire_lease("W", "owner", ttl_seconds=300)
    for number in range(9):
        service.create_checkpoint("W", {"n": 10 + number})
    with holdfast.open(service.recording.url) as other, pytest.raises(LeaseHeldError):
        looking_after(other)
    service.create_checkpoint("W", {"n": 99})


def test_it_is_erased_with_its_workflow(service):
    service.annotate("W@2", note="about Mr. Smith")
    service._engine.eraser.workflow("W", reason="asked for")
    with pytest.raises(CheckpointNotFoundError):
        service.annotate("W@2", note="x")
