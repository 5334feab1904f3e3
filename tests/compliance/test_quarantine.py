"""Statement 21: what is damaged is set aside and recorded, and the newest good one is offered."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointQuarantinedError
from tests.compliance.openings import told
from tests.damage import KINDS, Spoiler, flip


def recover(service: CheckpointService) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return service.recover_workflow("WF")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_checkpoint_is_set_aside_and_recorded_and_the_newest_good_one_is_offered(kind, tmp_path):
    spoiler = Spoiler(kind, tmp_path)
    spoiler.fill(5)
    whole = spoiler.spoil_record(5)
    with spoiler.opened() as service:
        result = recover(service)
        assert result.success and result.checkpoint_used.sequence == 4 and result.passed_over == (5,)
        assert result.state.context["n"] == 3
        [name] = result.quarantined
        # Never loaded, nor deleted: kept as evidence, and left where it was found.
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("WF@5")
        assert service.quarantine.data(name) == flip(whole)
        assert dict(service._engine.kit.store.evidence("WF", 5))["record"] == flip(whole)
        service.flush()
        report = service.audit.verify(payloads=True)
        assert report.faults == ()


def test_the_trail_says_what_was_set_aside_by_whom_and_why(url, tmp_path):
    spoiler = Spoiler("sqlite" if url.startswith("sqlite:") else "file", tmp_path)
    spoiler.fill(3)
    spoiler.spoil_record(3)
    with spoiler.opened() as service:
        [name] = recover(service).quarantined
        sha256 = service.quarantine.get(name).sha256
    [entry] = [one for one in told(spoiler.url) if one["type"] == AuditType.CHECKPOINT_QUARANTINED]
    facts = entry["data"]
    assert (entry["actor"], entry["workflow"]) == ("ann", "WF")
    assert (facts["cp_seq"], facts["evidence"], facts["quarantine"]) == (3, f"sha256:{sha256}", name)
    assert "not the one that was committed" in facts["reason"]
