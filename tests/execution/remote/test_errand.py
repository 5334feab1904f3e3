"""What travels between a run and its workers."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

from holdfast.execution.frame import Frame
from holdfast.execution.remote.errand import Ending, Errand, Outcome
from tests.execution.engines.team import research


def test_an_errand_and_its_outcome_can_travel() -> None:
    frame = Frame("research[kelp]", "research", "research", item="kelp")
    errand = Errand("e-1", "file:/store", "WF-1~x", "WF-1", frame, research, True, {"folder": "/"})
    outcome = Outcome(Ending.FAILED, "why", ValueError("why"))
    for one in (errand, outcome):
        copy = ForkingPickler.loads(ForkingPickler.dumps(one))
        assert (type(copy), repr(copy)) == (type(one), repr(one))
