"""Who may listen to what; that it is heard is tested where streams live."""

from __future__ import annotations

import pytest

from tests.server.reads import refused


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("run=%00", {}, 400, "invalid_id"),
        ("after=-1", {}, 400, "invalid_request"),
        ("seconds=-1", {}, 400, "invalid_request"),
        ("seconds=86401", {}, 400, "invalid_request"),
        ("", {"Last-Event-ID": "x"}, 400, "invalid_request"),
        ("", {"Last-Event-ID": "9" * 16}, 400, "invalid_request"),
        ("reads=true", {}, 403, "scope_missing"),
    ],
)
def test_what_cannot_be_listened_to_is_refused(still, query, headers, status, code):
    refused(still[1]("GET", f"/v1/events?{query}", headers=headers), status, code)
