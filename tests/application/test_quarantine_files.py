"""Looking into a quarantine without changing it."""

from __future__ import annotations

import pytest

from holdfast.application.quarantine_files import (
    files_of_workflow,
    parts_of_report,
    report_of,
    report_or_remains,
    reports,
)
from holdfast.domain.errors import CheckpointNotFoundError
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
