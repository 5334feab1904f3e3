"""Every way to name a checkpoint leads to it, or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from holdfast.application.resolve import as_point, living, resolve, uuid_of
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError
from holdfast.domain.ids import CheckpointID, folder_name, shard
from holdfast.domain.state import WorkflowState
from holdfast.ports import Store
from tests.application.services import make_service


@pytest.fixture
def service() -> CheckpointService:
    service = make_service()
    for number in range(6):
        service.create_checkpoint(
            "W",
            WorkflowState(context={"n": number}, phase=number // 2),
            stage_id="even" if number % 2 == 0 else None,
        )
    return service


@pytest.fixture
def store(service: CheckpointService) -> Store:
    return service._engine.kit.store


@pytest.mark.parametrize(
    ("name", "sequence"),
    [
        ("W@1", 1),
        ("W@6", 6),
        ("W@latest", 6),
        ("W", 6),
        ("W@latest~1", 5),
        ("W@4~2", 2),
        ("W@phase:1", 4),
        ("W@stage:even", 5),
        ("00000000-0000-4000-8000-000000000003", 3),
        ("000000000000400080000000000000 03".replace(" ", ""), 3),
    ],
)
def test_a_text_names_a_checkpoint(store: Store, name: str, sequence: int) -> None:
    assert resolve(store, name).entry.sequence == sequence


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    """A store in a folder, reached by a link, beside which others may lie."""
    (tmp_path / "link").symlink_to(tmp_path)
    with holdfast.open(f"file:{tmp_path}/link/store") as opened:
        for number in range(3):
            opened.create_checkpoint("W", {"n": number})
        yield opened._engine.kit.store


def test_the_path_of_a_checkpoint_file_names_it(kept: Store, tmp_path: Path, monkeypatch) -> None:
    path = f"{tmp_path}/store/checkpoints/{shard('W')}/{folder_name('W')}/checkpoint_000002.json"
    assert resolve(kept, path).id.sequence == 2
    assert resolve(kept, path.replace(f"{tmp_path}/store", f"{tmp_path}/link/store")).id.sequence == 2
    assert str(resolve(kept, path.replace("/", "\\"))) == "W@2"
    monkeypatch.chdir(tmp_path / "store")
    with pytest.raises(CheckpointNotFoundError):
        resolve(kept, "checkpoints/aa/other/checkpoint_000002.json")


def test_a_checkpoint_file_of_another_store_names_none_of_this_one(kept: Store, tmp_path: Path) -> None:
    inside = f"checkpoints/{shard('W')}/{folder_name('W')}/checkpoint_000002.json"
    # The last one is a store in the folder of this one.
    for root in ("/somewhere/.holdfast", f"{tmp_path}/store2", f"{tmp_path}/store/kept"):
        with pytest.raises(CheckpointNotFoundError, match="not in this store"):
            resolve(kept, f"{root}/{inside}")


def test_a_store_that_is_no_folder_has_no_checkpoint_files(store: Store) -> None:
    path = f"/somewhere/.holdfast/checkpoints/{shard('W')}/{folder_name('W')}/checkpoint_000002.json"
    with pytest.raises(CheckpointNotFoundError, match="not in this store"):
        resolve(store, path)


def test_a_file_of_changes_is_no_checkpoint_file(kept: Store, tmp_path: Path) -> None:
    folder = f"{tmp_path}/store/checkpoints/{shard('W')}/{folder_name('W')}"
    with pytest.raises(InvalidIdError, match="changes of several checkpoints"):
        resolve(kept, f"{folder}/checkpoint_000001.deltas.jsonl")


@pytest.mark.parametrize(
    "name", ["W@7", "W@0", "W@latest~6", "W@9~1", "W@phase:9", "W@stage:odd", "V@1", "V", "abcd"]
)
def test_what_is_not_there_is_not_found(store: Store, name: str) -> None:
    with pytest.raises(CheckpointNotFoundError):
        resolve(store, name)


def test_the_beginning_of_several_uuids_is_not_enough(store: Store) -> None:
    with pytest.raises(InvalidIdError, match="6 checkpoints"):
        resolve(store, "00000000")


def test_a_workflow_goes_before_a_uuid_that_begins_like_it(service: CheckpointService, store: Store) -> None:
    service.create_checkpoint("00000000", {"a": 1})
    assert resolve(store, "00000000").workflow_id == "00000000"


def test_an_id_of_another_history_is_not_taken_for_ours(service: CheckpointService, store: Store) -> None:
    mine = resolve(store, "W@2").id
    assert resolve(store, mine).entry.sequence == 2
    assert resolve(store, CheckpointID("W", 2, mine.timestamp, "")).entry.sequence == 2
    with pytest.raises(CheckpointNotFoundError, match="another checkpoint"):
        resolve(store, replace(mine, checksum="sha256:" + "0" * 64))


def test_tombstones_are_stepped_over_and_named_as_such(service: CheckpointService, store: Store) -> None:
    service.delete("W@5")
    assert [entry.sequence for entry in living(store, "W")] == [6, 4, 3, 2, 1]
    assert resolve(store, "W@latest~1").entry.sequence == 4
    with pytest.raises(CheckpointNotFoundError, match="pruned"):
        resolve(store, "W@5")
    with pytest.raises(CheckpointNotFoundError):
        resolve(store, "00000000-0000-4000-8000-000000000005")


def test_a_uuid_written_in_full_needs_no_look_at_the_store(store: Store) -> None:
    elsewhere = "AAAAAAAA-0000-4000-8000-00000000000A"
    assert uuid_of(store, elsewhere) == elsewhere.lower()
    assert uuid_of(store, "W@3") == "00000000-0000-4000-8000-000000000003"
    assert uuid_of(store, resolve(store, "W@4").id) == "00000000-0000-4000-8000-000000000004"


@pytest.mark.parametrize("name", ["W@event:3", "W@time:2026-01-11T14:30:00Z"])
def test_a_point_is_no_checkpoint(store: Store, name: str) -> None:
    with pytest.raises(InvalidIdError, match="a checkpoint is needed here"):
        resolve(store, name)
    point = as_point(name)
    assert point is not None and point.workflow_id == "W"


def test_a_checkpoint_is_no_point(service: CheckpointService, store: Store) -> None:
    assert as_point("W@3") is None and as_point("W") is None
    assert as_point(resolve(store, "W@3").id) is None


def test_what_was_told_before_it_was_durable_is_known_by_its_uuid() -> None:
    service = make_service()
    made = service.create_checkpoint("W", {"n": 1})
    told = replace(made, durable=False, checksum="sha256:another")
    assert resolve(service._engine.kit.store, told).entry.uuid == made.uuid
    with pytest.raises(CheckpointNotFoundError):
        resolve(service._engine.kit.store, replace(told, uuid="another"))
