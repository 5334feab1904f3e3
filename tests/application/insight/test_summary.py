"""Everything at once, or the parts that are asked for, as plain values that any face can hand out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

from holdfast.application.insight.summary import LISTING_PARTS, PARTS, stats
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.services import make_kit


@pytest.mark.parametrize("url", STORES)
def test_all_parts_are_told_together_and_survive_as_json(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        for number in range(3):
            run(service, team(), f"W-{number}", rounds=2, failures=number)
        service.flush()
        told = stats(kit_of(service))
    assert all(getattr(told, part) is not None for part in PARTS)
    assert (told.looked_at, told.total, told.unreadable, told.workflow_id) == (3, 3, (), None)
    assert json.loads(msgspec.json.encode(told)) == json.loads(json.dumps(asdict(told)))


def test_only_what_is_asked_for_is_told_and_listings_need_no_journal(tmp_path: Path) -> None:
    with open_at("memory:", tmp_path) as service:
        run(service, team(), "A")
        read: list[tuple[int, int]] = []
        told = stats(kit_of(service), parts=LISTING_PARTS, on_progress=lambda *done: read.append(done))
    assert told.storage is not None and told.growth is not None
    assert all(getattr(told, part) is None for part in set(PARTS) - LISTING_PARTS)
    assert (read, told.looked_at, told.total) == ([], 0, 1)


def test_one_workflow_is_compared_with_the_others_and_only_it_is_told(tmp_path: Path) -> None:
    with open_at("memory:", tmp_path) as service:
        for name in ("A", "B", "C"):
            run(service, team(), name)
        whole = stats(kit_of(service), "A")
        alone = stats(kit_of(service), "A", parts=frozenset({"agents"}))
        listed = stats(kit_of(service), "A", parts=LISTING_PARTS)
    assert whole.looked_at == 3 and alone.looked_at == 1 and listed.looked_at == 0
    assert whole.agents is not None and {one.workflows for one in whole.agents} == {1}
    assert whole.storage is not None and [one.workflow_id for one in whole.storage.workflows] == ["A"]
    assert whole.paths is not None and whole.paths.runs == 1


def test_so_many_journals_are_read_and_no_more(tmp_path: Path) -> None:
    with open_at("memory:", tmp_path) as service:
        for number in range(4):
            service.create_checkpoint(f"W-{number}", {"n": number})
        told = stats(kit_of(service), limit=2)
    assert (told.looked_at, told.total) == (2, 4)
    assert told.storage is not None and told.storage.looked_at == 4


def test_an_empty_store_has_nothing_to_tell() -> None:
    told = stats(make_kit())
    assert (told.looked_at, told.total, told.agents) == (0, 0, ())
    assert told.intervals is not None and told.intervals.overall.checkpoints == 0
