"""A statement is sent until it is known what became of it."""

from __future__ import annotations

import pytest

from holdfast.adapters.postgres.attempt import Attempt
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connections import Connections
from holdfast.adapters.postgres.database import ATTEMPTS_MAX
from holdfast.conformance.history import History
from holdfast.domain.errors import CheckpointReadError, CheckpointWriteError
from tests.adapters.postgres.proxy import Cut
from tests.adapters.postgres.test_turns import through, wire

__all__ = ["wire"]


def attempt(store, *, is_repeated=False):
    return Attempt(store._database.connections, is_repeated=is_repeated)


def test_units_that_got_in_have_met_nothing(store):
    unit = Unit((History(store).draft(),), (0,))
    first = attempt(store)
    assert first.send([unit]) == [] and not first.is_repeated
    [met] = attempt(store).send([unit])
    assert met[:2] == ("W", 1)


def test_what_was_sent_before_a_loss_may_be_there(wire):
    with through(wire) as (cuttable, _, _):
        unit = Unit((History(cuttable).draft(),), (0,))
        wire.arm(Cut(b"sha256:", answered_bytes=0))
        lost = attempt(cuttable)
        [met] = lost.send([unit])
        assert met[0] == "W" and lost.is_repeated


def test_it_is_repeated_only_so_often(store):
    tired = attempt(store)
    assert [tired.may_repeat() for _ in range(ATTEMPTS_MAX)] == [True] * (ATTEMPTS_MAX - 1) + [False]


@pytest.mark.parametrize(("is_repeated", "words"), [(False, "nothing was recorded"), (True, "unknown")])
def test_a_server_that_is_away_is_told_with_what_is_known(store, monkeypatch, is_repeated, words):
    def away(self):
        raise CheckpointReadError("the server is away")

    unit = Unit((History(store).draft(),), (0,))
    monkeypatch.setattr(Connections, "connection", away)
    with pytest.raises(CheckpointWriteError, match=words):
        attempt(store, is_repeated=is_repeated).send([unit])
