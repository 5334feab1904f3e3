"""Recoveries: what the journals tell of those that gave a state, and the trail of those that did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.application.app import App
from holdfast.application.insight.recoveries import recovered, recoveries
from holdfast.domain.errors import NoValidCheckpointError
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import Told
from tests.application.services import make_service
from tests.execution.runs import damage


@pytest.mark.parametrize("url", STORES)
def test_a_run_that_was_brought_back_and_completed_is_a_success(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        workflow = team()
        assert run(service, workflow, "A", failures=2) == "failed"
        assert run(service, workflow, "A") == "completed"
        service.create_checkpoint("B", {"by": "hand"})
        service.recover_workflow("B")
        service.flush()
        found = recoveries(kit_of(service))
        of_one = recoveries(kit_of(service), "A")
    assert (found.recovered, found.crashed, found.completed, found.idle) == (2, 1, 1, 1)
    assert (found.told, found.refused, found.success_rate) == (2, 0, 1.0)
    assert found.median_events_replayed is not None
    assert [one.workflow_id for one in found.newest] == ["B", "A"]
    assert (of_one.recovered, of_one.told, of_one.newest[0].after) == (1, 1, "failed")


def test_a_recovery_that_found_nothing_valid_is_a_failure(tmp_path: Path) -> None:
    with open_at("file:", tmp_path) as service:
        service.create_checkpoint("A", {"n": 1})
    damage(tmp_path / "store")
    with open_at("file:", tmp_path) as service:
        with pytest.raises(NoValidCheckpointError):
            service.recover_workflow("A")
        service.flush()
        found = recoveries(kit_of(service))
    assert (found.recovered, found.told, found.refused, found.success_rate) == (0, 0, 1, 0.0)


def test_a_recovery_whose_handler_goes_on_is_one_and_not_two() -> None:
    app = App()
    app.handlers.register("go-on", lambda context: "done")
    service = make_service(app=app)
    service.create_checkpoint("A", {"n": 1}, resume_handler="go-on")
    assert service.resume_workflow("A").success
    service.flush()
    found = recoveries(kit_of(service))
    assert (found.told, found.refused) == (1, 0)


def test_a_handler_that_fails_is_told_by_the_journal_and_where_it_was_called_alone_by_the_trail() -> None:
    def fail(context: object) -> str:
        raise ValueError("no ink")

    app = App()
    app.handlers.register("fail", fail)
    service = make_service(app=app)
    service.create_checkpoint("A", {"n": 1}, resume_handler="fail")
    assert not service.resume_workflow("A").success
    assert not service.recover_from_checkpoint("A@1").success
    service.flush()
    found = recoveries(kit_of(service))
    assert (found.recovered, found.failed_again) == (1, 1)
    assert (found.told, found.refused, found.success_rate) == (1, 1, 0.5)


def test_other_refusals_are_no_recoveries() -> None:
    service = make_service()
    service.create_checkpoint("A", {"n": 1})
    service.holds.place(workflow_id="A", reason="case 17")
    with pytest.raises(Exception, match="case 17"):
        service.delete("A@1")
    service.flush()
    found = recoveries(kit_of(service))
    assert (found.told, found.refused, found.success_rate) == (0, 0, None)
    assert found.median_events_replayed is None


def test_what_became_of_a_run_is_told_up_to_the_next_recovery() -> None:
    told = Told().started("a").recovered().ran("a").recovered(passed_over=(4,)).status("failed")
    told.recovered().recovered().status("in_progress").checkpoint(type="workflow_complete")
    found = list(recovered(told.looked()))
    assert [one.outcome for one in found] == ["went on", "failed", "nothing since", "completed"]
    assert [one.after for one in found] == ["in_progress", "in_progress", "failed", "failed"]
    assert [one.is_fallback for one in found] == [False, True, False, False]
