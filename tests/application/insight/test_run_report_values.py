from __future__ import annotations

import json

from holdfast.application.insight.event_story import Kind
from holdfast.application.insight.run_report import report
from holdfast.application.insight.run_report_values import RunReport, as_fields
from tests.application.insight.runs import whole_run


def test_programs_are_told_plain_values():
    fields = json.loads(json.dumps(as_fields(report(whole_run(), "W"))))
    assert fields["status"] == "completed" and fields["began_at"].endswith("Z")
    assert {moment["kind"] for moment in fields["moments"]} <= {kind.value for kind in Kind}
    assert fields["sections"][0] == {"title": "Offers", "summary": "Three.", "citations": ["a book"]}
    assert as_fields(RunReport("W", "failed"))["began_at"] is None


def test_moments_are_found_by_what_they_are_about():
    found = report(whole_run(), "W")
    assert len(found.of(Kind.APPROVAL)) == 2
    assert found.of(*Kind) == found.moments
