"""Looking into a quarantine without changing it."""

from __future__ import annotations

import pytest

from holdfast.application.quarantine_files import (
    files_of_workflow,
    is_quarantined,
    parts_of_report,
    refuse_quarantined,
    report_of,
    report_or_remains,
    reports,
)
from holdfast.domain.errors import CheckpointNotFoundError, CheckpointQuarantinedError
from tests.application.services import make_service


@pytest.fixture
def service():
    service = make_service()
    for workflow_id in ("WF", "OTHER"):
        for n in range(3):
            service.create_checkpoint(workflow_id, {"n": n})
    return service


@pytest.fixture
def store(service):
    return service._engine.kit.store


def test_an_empty_quarantine_bars_nothing(store):
    assert reports(store) == [] and not is_quarantined(store, "WF", 1)
    refuse_quarantined(store, "WF", 1)


def test_what_is_barred_is_refused_with_the_name_of_the_report(service, store):
    name = service.quarantine.put("WF", 2, "wrong").name
    with pytest.raises(CheckpointQuarantinedError, match=rf"WF@2\. `holdfast quarantine show {name}`"):
        refuse_quarantined(store, "WF", 2)
    for workflow_id, sequence in (("WF", 1), ("WF", 3), ("OTHER", 2)):
        refuse_quarantined(store, workflow_id, sequence)


def test_reports_come_in_the_order_they_were_found(service, store):
    names = [service.quarantine.put(workflow_id, 2, "wrong").name for workflow_id in ("OTHER", "WF")]
    assert [one.name for one in reports(store)] == names
    assert report_of(store, names[0]) == report_or_remains(store, names[0])


def test_the_files_of_one_workflow_are_all_of_its_and_nobody_elses(service, store):
    service.quarantine.put("WF", 2, "wrong")
    mine = list(files_of_workflow(store, "WF"))
    service.quarantine.put("OTHER", 2, "wrong")
    assert list(files_of_workflow(store, "WF")) == mine and len(mine) == 3
    assert len(list(store.files("quarantine/"))) == 6


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "UPPER", "", "refused/x"])
def test_a_name_of_nothing_is_not_found(store, name):
    for ask in (report_of, parts_of_report):
        with pytest.raises(CheckpointNotFoundError, match="nothing of that name"):
            ask(store, name)
