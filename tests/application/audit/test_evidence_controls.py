from __future__ import annotations

import re

from holdfast.application.audit.evidence_controls import CONTROLS, Measure, Query
from holdfast.domain.audit_type import AuditType, Outcome


def test_controls_have_names_that_are_files_and_stand_once():
    names = [control.id for control in CONTROLS]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]+", name) for name in names)


def test_every_framework_is_there_in_one_piece():
    frameworks = [control.framework for control in CONTROLS]
    assert frameworks == sorted(frameworks, key=["SOC 2", "GDPR", "EU AI Act"].index)


def test_every_control_asks_for_something_that_exists():
    known = set(map(str, AuditType))
    for control in CONTROLS:
        assert control.query is not None or control.measures
        assert set(control.query.types if control.query else ()) <= known
        assert control.asks.endswith(".") and control.title


def test_every_measure_is_evidence_for_something():
    assert {measure for control in CONTROLS for measure in control.measures} == set(Measure)


def test_a_query_takes_types_and_outcomes():
    assert Query().matches("ANY", "success")
    query = Query((str(AuditType.STATE_READ),), (str(Outcome.REFUSED),))
    assert query.matches("STATE_READ", "refused")
    assert not query.matches("STATE_READ", "success")
    assert not query.matches("EVENTS_READ", "refused")
