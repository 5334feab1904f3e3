"""What a store refused late is remembered by workflow, with why and where it is."""

from __future__ import annotations

from holdfast.application.faults.refusals import Refusals
from holdfast.domain.errors import LeaseLostError
from holdfast.domain.unwritten import Unwritten

LOST = LeaseLostError("the lease is lost", place="WF", hint="Acquire it.")


def test_what_was_refused_is_counted_by_workflow_until_it_is_forgotten() -> None:
    refusals = Refusals()
    for workflow_id in ("WF", "WF", "OTHER"):
        refusals.add(workflow_id, LOST, "file:/second")
    kept = Unwritten(2, "the lease is lost", "file:/second", is_refused=True)
    assert refusals.of("WF") == kept and refusals.of("ELSE") == Unwritten()
    refusals.forget("WF")
    refusals.forget("ELSE")
    assert refusals.of("WF") == Unwritten() and refusals.of("OTHER").commits == 1


def test_what_is_kept_nowhere_is_lost() -> None:
    refusals = Refusals()
    refusals.add("WF", LOST, "file:/second")
    refusals.add("WF", LOST, None)
    told = refusals.of("WF")
    assert told.is_lost and told.commits == 1
    assert told.others is not None and told.others.place == "file:/second"
