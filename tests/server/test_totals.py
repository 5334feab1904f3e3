"""A number is told where it was counted, and nowhere else."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET

import holdfast
from holdfast.server import totals
from holdfast.server.table import OPERATIONS
from holdfast.server.totals import total_of
from tests.server.served import application, caller_for


def test_what_matches_is_counted_if_it_is_asked_for(monkeypatch):
    assert total_of([True, False, True], is_asked=True) == 2
    assert total_of(iter(int, 1), is_asked=False) is UNSET
    monkeypatch.setattr(totals, "COUNTED_MAX", 3)
    assert total_of([True] * 3, is_asked=True) == 3
    assert total_of([True] * 4, is_asked=True) is None


@pytest.fixture(params=["file", "sqlite"])
def call(request, tmp_path):
    url = f"{request.param}:{tmp_path}/store"
    with holdfast.open(url) as service:
        for number in range(7):
            service.create_checkpoint(f"W{number % 2}", {"n": number}, agent_id=f"a{number % 3}")
        service.holds.place(reason="an audit", workflow_id="W0")
    with application(url) as (client, desk):
        yield caller_for(client, desk, "admin")


@pytest.mark.parametrize(
    ("path", "total"),
    [
        ("/v1/runs", 2),
        ("/v1/runs?q=W1", 1),
        ("/v1/checkpoints", 7),
        ("/v1/checkpoints?run=W0", 4),
        ("/v1/checkpoints?agent=a0", 3),
        ("/v1/runs/W0/events", 4),
        ("/v1/runs/W0/events?type=CHECKPOINT_CREATED", 4),
        ("/v1/runs/W0/events?type=OTHER", 0),
        ("/v1/audit/entries?type=CHECKPOINT_CREATED", 7),
        ("/v1/audit/entries?type=OTHER", 0),
        ("/v1/holds", 1),
        ("/v1/tokens", 1),
        ("/v1/operations", 0),
        ("/v1/quarantine", 0),
    ],
)
def test_a_total_is_that_of_all_pages_and_only_told_when_asked(call, path, total):
    joined = path + ("&" if "?" in path else "?")
    assert "total" not in call.get(f"{joined}limit=1")
    page = call.get(f"{joined}limit=1&count=true")
    assert page["total"] == total and len(page["items"]) <= 1


def test_the_whole_trail_is_as_large_as_it_is(call):
    page = call.get("/v1/audit/entries?count=true&limit=1")
    assert page["total"] == page["size"]


def test_every_listing_that_has_pages_can_be_counted():
    listings = [one for one in OPERATIONS if "cursor" in _fields(one.query)]
    assert len(listings) == 8
    assert [one.name for one in listings if "count" not in _fields(one.query)] == []


def _fields(query):
    return set() if query is None else {field.name for field in msgspec.structs.fields(query)}
