"""Requests reach whoever runs a workflow, in every kind of store, and are told in the trail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.app import App
from holdfast.application.requests import Requests, request_files
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidStateError,
    LeaseHeldError,
    StateTooLargeError,
    StoreDamageWarning,
    StoreReadOnlyError,
    UnsupportedTypeError,
)
from holdfast.domain.personal import Personal
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.request import FOLDER, REQUEST_BYTES_MAX, RequestKind, folder_of
from holdfast.ports import Store
from tests.application.services import make_kit, make_service
from tests.application.versions import KINDS, Home
from tests.values import Point

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
MARK = "MARKER-OF-A-REQUEST"


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def store_of(service: CheckpointService) -> Store:
    return service._engine.kit.store


def begun(home: Home, *workflow_ids: str, **settings: Any) -> CheckpointService:
    """Open a store in which workflows were begun."""
    service = home.open(App(), actor="ann", **settings)
    for workflow_id in workflow_ids or ("WF-1",):
        service.create_checkpoint(workflow_id, {"n": 1})
    return service


def spoil(store: Store, name: str, data: bytes) -> None:
    assert store.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]) == [None]


def told(service: CheckpointService, *types: AuditType) -> list[Any]:
    return service.audit.query_events(event_types=types)


def test_what_is_asked_for_is_there_for_another_opening_until_it_is_settled(home: Home) -> None:
    with begun(home) as service:
        made = service.requests.put("WF-1", RequestKind.PAUSE, reason="lunch", data={"until": ["noon", 12]})
        assert (made.actor, made.kind, made.reason) == ("ann", "pause", "lunch")
    with home.open(App()) as owner:
        assert owner.requests.pending("WF-1") == owner.requests.pending() == [made]
        owner.requests.settle([made.id])
        assert owner.requests.pending() == []
        assert list(store_of(owner).files(FOLDER)) == []
    with home.open(App()) as later:
        assert later.requests.pending("WF-1") == []


def test_a_workflow_that_somebody_holds_can_be_asked_and_not_written(home: Home) -> None:
    with begun(home) as service:
        service.acquire_lease("WF-1", "another")
        with home.open(App()) as outside:
            with pytest.raises(LeaseHeldError):
                outside.append_event("WF-1", "CANCELLED", {})
            asked = outside.requests.put("WF-1", "cancel", actor="bob")
        assert service.requests.pending("WF-1") == [asked]


def test_requests_come_in_order_of_time_whatever_their_ids_are(home: Home) -> None:
    with begun(home, "WF-1", "WF-2") as service:
        made = [service.requests.put(f"WF-{1 + n % 2}", "checkpoint", data={"n": n}) for n in range(6)]
        assert service.requests.pending() == made
        assert service.requests.pending("WF-2") == made[1::2]
        assert service.requests.pending("WF-9") == []


def test_of_two_at_one_moment_the_id_decides() -> None:
    class Stopped:
        def now(self) -> datetime:
            return datetime(2026, 1, 11, tzinfo=UTC)

    class Falling:
        count = 100

        def new(self) -> str:
            self.count -= 1
            return f"00000000-0000-4000-8000-{self.count:012d}"

    service = make_service(clock=Stopped(), ids=Falling())
    service.create_checkpoint("W", {})
    made = [service.requests.put("W", "checkpoint") for _ in range(3)]
    assert service.requests.pending() == made[::-1]


def test_all_workflows_are_listed_at_once() -> None:
    class Counting(MemoryStore):
        listed: list[str]

        def files(self, prefix: str) -> Any:
            self.listed.append(prefix)
            return super().files(prefix)

    store = Counting()
    store.listed = []
    service = make_service(store)
    for workflow_id in ("V", "W"):
        service.create_checkpoint(workflow_id, {})
        service.requests.put(workflow_id, "checkpoint")
    store.listed.clear()
    assert len(service.requests.pending()) == 2
    assert store.listed == [FOLDER]
    store.listed.clear()
    assert len(service.requests.pending("W")) == 1
    assert store.listed == [folder_of("W")]


def test_settling_is_idempotent_and_leaves_the_others(home: Home) -> None:
    with begun(home) as service:
        made = [service.requests.put("WF-1", "checkpoint") for _ in range(3)]
        unknown = "00000000-0000-4000-8000-00000000ffff"
        service.requests.settle(one.id for one in made[:2])
        service.requests.settle([made[0].id, unknown])
        service.requests.settle([])
        assert service.requests.pending() == [made[2]]


def test_two_who_settle_the_same_do_not_meet_an_error(home: Home) -> None:
    with begun(home) as service:
        made = service.requests.put("WF-1", "checkpoint")
        taking = Commit(NO_WORKFLOW, Head(), files={made.file: None})
        assert store_of(service).commit([taking, taking]) == [None, None]
        assert store_of(service).commit([taking]) == [None]
        assert service.requests.pending() == []


@pytest.mark.parametrize(
    ("kind", "granted", "type"),
    [
        ("approval", True, AuditType.APPROVAL_GRANTED),
        ("approval", False, AuditType.APPROVAL_DENIED),
        ("pause", None, AuditType.REQUEST_MADE),
        ("cancel", None, AuditType.REQUEST_MADE),
        ("checkpoint", None, AuditType.REQUEST_MADE),
    ],
)
def test_the_trail_tells_who_asked_for_what_and_why(
    home: Home, kind: str, granted: bool | None, type: AuditType
) -> None:
    data = {"name": "send"} if granted is None else {"name": "send", "granted": granted}
    with begun(home) as service:
        made = service.requests.put("WF-1", kind, actor="carol", reason="within budget", data=data)
        [entry] = told(service, type)
        assert (entry.actor, entry.workflow_id, entry.outcome) == ("carol", "WF-1", "success")
        assert entry.facts == {"request": made.id, "kind": kind}
        assert entry.data == {"reason": "within budget", "data": data}


def test_a_request_and_its_entry_are_one_commit() -> None:
    seen: list[Commit] = []

    class Watched(MemoryStore):
        def commit(self, commits: Any) -> Any:
            seen.extend(commits)
            return super().commit(commits)

    service = make_service(Watched())
    service.create_checkpoint("W", {})
    seen.clear()
    made = service.requests.put("W", "pause")
    [commit] = seen
    assert [*commit.files] == [made.file]
    assert [entry.type for entry in commit.audit] == [AuditType.REQUEST_MADE]
    assert commit.audit[0].stored == b""


def test_without_a_trail_it_is_kept_all_the_same() -> None:
    service = make_service(audit=False)
    service.create_checkpoint("W", {})
    assert service.requests.pending() == [] != [service.requests.put("W", "pause")]
    assert len(service.requests.pending()) == 1


@pytest.mark.parametrize("workflow_id", ["WF-2", "wf-1"])
def test_a_workflow_that_does_not_exist_cannot_be_asked(home: Home, workflow_id: str) -> None:
    with begun(home) as service:
        with pytest.raises(CheckpointNotFoundError, match="no such workflow"):
            service.requests.put(workflow_id, "pause")
        assert list(store_of(service).files(FOLDER)) == []


@pytest.mark.parametrize(
    ("put", "error"),
    [
        (lambda room: room.put("", "pause"), InvalidIdError),
        (lambda room: room.put("W", "explode"), InvalidStateError),
        (lambda room: room.put("W", "approval"), InvalidStateError),
        (lambda room: room.put("W", "approval", data={"granted": "yes"}), InvalidStateError),
        (lambda room: room.put("W", "pause", actor=" "), InvalidIdError),
        (lambda room: room.put("W", "pause", actor=SECRET), InvalidIdError),
        (lambda room: room.put("W", "pause", data={"what": object()}), UnsupportedTypeError),
        (lambda room: room.put("W", "pause", reason="word " * REQUEST_BYTES_MAX), StateTooLargeError),
    ],
)
def test_what_is_no_request_is_refused_and_leaves_nothing(
    put: Callable[[Requests], object], error: type[Exception]
) -> None:
    service = make_service()
    service.create_checkpoint("W", {})
    with pytest.raises(error):
        put(service.requests)
    assert service.requests.pending() == []
    assert told(service, AuditType.REQUEST_MADE) == []


def test_one_that_is_damaged_is_warned_about_and_hides_no_other(home: Home) -> None:
    with begun(home) as service:
        first, second = (service.requests.put("WF-1", "checkpoint", data={"n": n}) for n in range(2))
        data = store_of(service).file(first.file)
        assert data is not None
        spoil(store_of(service), first.file, data[:-20] + b"0" * 20)
        for workflow_id in (None, "WF-1"):
            with pytest.warns(StoreDamageWarning, match=first.id) as told_of:
                assert service.requests.pending(workflow_id) == [second]
            assert [one.filename for one in told_of] == [__file__]
        service.requests.settle([first.id])
        assert service.requests.pending() == [second]


def test_one_that_was_moved_to_another_workflow_is_not_carried_out_there(home: Home) -> None:
    with begun(home, "WF-1", "WF-2") as service:
        made = service.requests.put("WF-1", "cancel")
        moved = f"{folder_of('WF-2')}{made.id}.json"
        spoil(store_of(service), moved, store_of(service).file(made.file) or b"")
        with pytest.warns(StoreDamageWarning):
            assert service.requests.pending("WF-2") == []


def test_secrets_are_hidden_before_anything_is_written(home: Home) -> None:
    with begun(home) as service:
        made = service.requests.put("WF-1", "pause", reason=f"use {SECRET}", data={"note": [SECRET]})
        assert SECRET not in repr(made) and SECRET not in repr(service.requests.pending())
        [entry] = told(service, AuditType.REQUEST_MADE)
        assert SECRET not in repr(entry.data)


def test_in_an_encrypted_store_nothing_of_it_can_be_read(tmp_path: Path) -> None:
    home = Home("sealed", tmp_path)
    with begun(home) as service:
        made = service.requests.put("WF-1", "pause", reason=MARK, data={MARK: MARK})
        stored = home.store.file(made.file)
        assert stored.startswith(b'{"sealed":') and MARK.encode() not in stored
        assert service.requests.pending() == [made]


def test_values_come_back_as_what_they_were() -> None:
    registry = TypeRegistry()
    registry.register(Point)
    store = MemoryStore()
    service = make_service(store, registry)
    service.create_checkpoint("W", {})
    data = {"at": Point(1, 2), "due": datetime(2026, 2, 1, tzinfo=UTC), "odd": {"$hf": "date", "v": "none"}}
    made = service.requests.put("W", "checkpoint", data=data)
    assert made.data == data
    assert [one.data for one in service.requests.pending()] == [data]
    plain = service.requests.put("W", "pause")
    with pytest.warns(StoreDamageWarning, match="not registered"):
        assert make_service(store).requests.pending() == [plain]


def test_what_is_personal_stays_so(tmp_path: Path) -> None:
    with begun(Home("sealed", tmp_path)) as service:
        data = {"who": Personal("ann@example.com", "Ann"), "granted": True}
        service.requests.put("WF-1", "approval", data=data)
        [found] = service.requests.pending()
        assert found.data == data


def test_erasing_a_workflow_takes_its_requests_along(home: Home) -> None:
    with begun(home, "WF-1", "WF-2") as service:
        service.requests.put("WF-1", "pause", reason=MARK)
        damaged = service.requests.put("WF-1", "cancel", reason=MARK)
        spoil(store_of(service), damaged.file, b"torn")
        kept = service.requests.put("WF-2", "pause")
        service.erasure.workflow("WF-1", reason="asked for")
        assert list(request_files(store_of(service), "WF-1")) == []
        assert service.requests.pending() == [kept]
        reasons = [entry.data for entry in told(service, AuditType.REQUEST_MADE)]
        assert MARK not in repr(reasons)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_no_byte_of_an_erased_request_is_left_in_the_files(kind: str, tmp_path: Path) -> None:
    home = Home(kind, tmp_path)
    with begun(home) as service:
        settled = service.requests.put("WF-1", "checkpoint", reason=f"{MARK}-1")
        service.requests.settle([settled.id])
        service.requests.put("WF-1", "pause", reason=f"{MARK}-2")
        store_of(service).settle()
        service.erasure.workflow("WF-1", reason="asked for")
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert found and not [path for path in found if MARK.encode() in path.read_bytes()]


def test_a_copy_takes_no_requests_along(tmp_path: Path) -> None:
    from holdfast.cli.main import main

    source, target = f"file:{tmp_path / 'store'}", f"{tmp_path / 'copy'}"
    with begun(Home("file", tmp_path)) as service:
        service.requests.put("WF-1", "pause")
    assert main(["copy", source, target, "--quiet"]) == 0
    assert not (tmp_path / "copy" / "requests").exists()
    assert any((tmp_path / "store" / "requests").rglob("*.json"))


def test_a_store_that_is_only_read_takes_none(tmp_path: Path) -> None:
    import holdfast

    with begun(Home("file", tmp_path)) as service:
        made = service.requests.put("WF-1", "pause")
    with holdfast.open(f"{tmp_path / 'store'}", read_only=True) as reading:
        assert reading.requests.pending() == [made]
        with pytest.raises(StoreReadOnlyError):
            reading.requests.put("WF-1", "cancel")


def test_a_store_with_requests_is_sound(home: Home) -> None:
    with begun(home) as service:
        service.requests.put("WF-1", "pause")
        store_of(service).settle()
        assert list(store_of(service).check()) == []


def test_coroutines_ask_through_the_same_room() -> None:
    async def ask() -> None:
        async with AsyncCheckpointService(make_kit()) as service:
            await service.create_checkpoint("W", {})
            made = await asyncio.to_thread(service.requests.put, "W", "pause")
            assert await asyncio.to_thread(service.requests.pending) == [made]

    asyncio.run(ask())
