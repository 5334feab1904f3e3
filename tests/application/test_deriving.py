"""The next checkpoint is the change since the base, the whole, or nothing new."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.base import Base
from holdfast.application.commands import CreateCheckpoint
from holdfast.application.commit_queue import Lineage
from holdfast.application.deriving import derive
from holdfast.application.draft import Subject
from holdfast.application.snapshot import take
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.record import Head
from tests.application.services import make_kit


def drafted(fields, base=None, **more):
    kit = make_kit()
    subject = Subject(CreateCheckpoint("WF", fields, CheckpointType.STAGE_COMPLETE, **more), None, None)
    snapshot = take(fields, kit.packer, base.snapshot if base else None)
    return derive(kit, subject, base or Base(Head(), Lineage()), snapshot, snapshot.size)


def test_without_a_base_everything_is_recorded():
    draft = drafted({"a": 1})
    assert draft.keyframe is not None and draft.id.sequence == 1


def test_on_a_base_the_change_is_recorded():
    first = drafted({"a": 1, "text": "x" * 5000})
    second = drafted({"a": 2, "text": "x" * 5000}, first.base)
    assert second.keyframe is None and second.id.sequence == 2
    assert len(second.record.data) < 2000


def test_the_same_again_is_nothing_unless_forced():
    first = drafted({"a": 1})
    assert drafted({"a": 1}, first.base) is None
    assert drafted({"a": 1}, first.base, force=True).id.sequence == 2


def test_a_base_that_was_read_back_is_compared_without_secrets():
    first = drafted({"a": 1})
    assert drafted({"a": 1}, replace(first.base, is_read_back=True)) is None


@pytest.mark.parametrize(
    ("first", "second", "is_bare"),
    [
        ({"a": 1}, {"a": 2}, True),
        ({"a": 1}, {"a": 1, "password": "hunter2hunter2"}, False),
        ({"a": 1, "password": "hunter2hunter2"}, {"a": 2, "password": "hunter2hunter2"}, False),
    ],
)
def test_a_base_is_bare_as_long_as_nothing_was_hidden(first, second, is_bare):
    base = drafted(first).base
    assert drafted(second, base).base.is_bare is is_bare
    assert not base.is_bare or "password" not in first


def test_what_was_read_back_is_bare_once_the_whole_state_was_looked_at():
    base = replace(drafted({"a": 1}).base, is_read_back=True, is_bare=False)
    assert drafted({"a": 2}, base).base.is_bare
    assert not drafted({"a": 2, "password": "hunter2hunter2"}, base).base.is_bare
