"""Storage: who takes what, what is saved by storing changes only, and what could go."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.insight.storage import storage
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.config import Config
from holdfast.testing import FixedClock
from tests.application.insight.teams import STORES, kit_of, open_at
from tests.application.services import make_kit, make_service
from tests.execution.runs import damage


def opened(url: str, folder: Path) -> Kit:
    places = {"file:": f"file:{folder}/store", "sqlite:": f"sqlite:{folder}/store.db"}
    store = bootstrap.open_store(Config(store=places.get(url, url)))
    return make_kit(store, clock=FixedClock(step=timedelta(microseconds=1)))


@pytest.mark.parametrize("url", STORES)
def test_bytes_are_told_by_workflow_and_by_kind(url: str, tmp_path: Path) -> None:
    kit = opened(url, tmp_path)
    with CheckpointService(kit) as service:
        for number in range(20):
            service.create_checkpoint("BIG", {"text": "words " * 2000, "n": number})
        service.create_checkpoint("SMALL", {"n": 1})
        service.flush()
        kit.store.settle()
        found, one = storage(kit), storage(kit, "SMALL")
    assert [use.workflow_id for use in found.workflows] == ["BIG", "SMALL"]
    assert (found.looked_at, found.total, found.checkpoints) == (2, 2, 21)
    big = found.workflows[0]
    assert big.state_bytes > 20 * 12_000 and big.newest_state_bytes > 12_000
    assert big.stored_bytes == big.record_bytes + big.keyframe_bytes > 0
    # Twenty states that differ in a number take much less than twenty times one.
    assert found.dedup_ratio is not None and found.dedup_ratio > 3
    assert found.bytes > 0 and (found.kinds or url == "memory:")
    assert [use.workflow_id for use in one.workflows] == ["SMALL"]
    assert (found.disk_bytes is None) == (url == "memory:")


@pytest.mark.parametrize("url", STORES)
def test_blobs_that_are_shared_are_counted_once_with_their_references(url: str, tmp_path: Path) -> None:
    kit = opened(url, tmp_path)
    large = {"picture": "0123456789abcdef" * 25_000}
    with CheckpointService(kit) as service:
        for name in ("A", "B", "C"):
            service.create_checkpoint(name, {"large": large, "name": name})
        service.flush()
        kit.store.settle()
        found = storage(kit)
    assert (found.blobs, found.blob_references) == (1, 3)
    assert found.dedup_ratio is not None and found.dedup_ratio > 2.5
    assert [one.blobs for one in found.workflows] == [1, 1, 1]


def test_what_retention_would_remove_is_what_it_removes() -> None:
    clock = FixedClock(step=timedelta(seconds=1))
    service = make_service(clock=clock)
    for number in range(40):
        service.create_checkpoint("A", {"text": f"{number} " * 1000})
    clock.advance(timedelta(days=60))
    found = storage(kit_of(service))
    planned = service.prune_checkpoints("A", found.retain_count, found.retain_days, dry_run=True)
    assert (found.reclaimable, found.reclaimable_bytes) == (len(planned.removed), planned.freed_bytes)
    assert found.reclaimable > 20 and not found.is_automatic
    service.prune_checkpoints("A", found.retain_count, found.retain_days)
    after = storage(kit_of(service))
    assert after.reclaimable == 0 and after.workflows[0].pruned == found.reclaimable


def test_what_is_held_cannot_go() -> None:
    clock = FixedClock(step=timedelta(seconds=1))
    service = make_service(clock=clock)
    for name in ("A", "B"):
        for number in range(30):
            service.create_checkpoint(name, {"n": number})
    clock.advance(timedelta(days=60))
    service.holds.place(workflow_id="A", reason="case 17")
    held = {one.workflow_id: (one.is_held, one.reclaimable > 0) for one in storage(kit_of(service)).workflows}
    assert held == {"A": (True, False), "B": (False, True)}
    service.holds.place(reason="everything")
    assert storage(kit_of(service)).reclaimable == 0


def test_the_settings_of_retention_are_told(tmp_path: Path) -> None:
    with open_at("memory:", tmp_path, retain_count=3, retain_days=1, max_per_phase=2) as service:
        found = storage(kit_of(service))
    assert (found.retain_count, found.retain_days, found.max_per_phase) == (3, 1, 2)
    assert found.is_automatic and found.dedup_ratio is None


def test_what_is_in_quarantine_is_counted(tmp_path: Path) -> None:
    with open_at("file:", tmp_path, on_no_valid="fresh") as service:
        service.create_checkpoint("A", {"n": 1})
    damage(tmp_path / "store")
    with open_at("file:", tmp_path, on_no_valid="fresh") as service:
        service.recover_workflow("A")
        found = storage(kit_of(service))
    assert found.quarantined >= 1 and found.quarantine_bytes > 0


def test_what_was_released_is_no_longer_barred() -> None:
    service = make_service()
    service.create_checkpoint("A", {"n": 1})
    kept = service.quarantine.put("A", 1, "it looks odd")
    assert storage(kit_of(service)).barred == 1
    service.quarantine.release(kept.name, "it was fine")
    found = storage(kit_of(service))
    assert (found.quarantined, found.barred) == (1, 0) and found.quarantine_bytes > 0


def test_only_so_many_are_looked_at_and_it_is_told() -> None:
    service = make_service()
    for number in range(5):
        service.create_checkpoint(f"W-{number}", {"n": number})
    found = storage(kit_of(service), limit=2)
    assert (found.looked_at, found.total) == (2, 5)
    assert {one.workflow_id for one in found.workflows} == {"W-4", "W-3"}
