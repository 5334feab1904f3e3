"""Which checkpoints are barred."""

from __future__ import annotations

import pytest

from holdfast.application.quarantine_files import reports
from holdfast.application.quarantine_marks import is_quarantined, refuse_quarantined
from holdfast.domain.errors import CheckpointQuarantinedError
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
