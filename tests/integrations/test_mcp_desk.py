from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.config import Config
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidStateError,
    LeaseHeldError,
    PermissionDeniedError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from holdfast.integrations.mcp_desk import Desk, DeskSettings, Scope, Wish, agent_name, open_desk
from tests.cli.conftest import without_privileges
from tests.execution.runs import damage

WRITES = frozenset(Scope)


@contextmanager
def desk_at(store: Path | str, **settings: Any) -> Iterator[Desk]:
    configured = {name: settings.pop(name) for name in ("audit", "strict_audit") if name in settings}
    config = Config.load({"store": str(store), "actor": "ann", "session": "mcp-1", **configured})
    desk = open_desk(config, DeskSettings(**{"scopes": WRITES, **settings}))
    try:
        yield desk
    finally:
        desk.close()


@pytest.fixture(params=["store", "sqlite:{}/store.db"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store with the workflow `a-1` of two checkpoints, and `other`."""
    place = str(tmp_path / "store") if request.param == "store" else request.param.format(tmp_path)
    with holdfast.open(place) as service:
        service.create_checkpoint("a-1", {"i": 1, "b": b"\x00"})
        service.record_decision("a-1", "go on", rationale="why not")
        service.create_checkpoint("a-1", {"i": 2, "b": b"\x00"})
        service.create_checkpoint("other", {"secret": "kelp"})
    return place


def wish(workflow_id: str = "a-1", reason: str = "to see", tool: str = "save_checkpoint") -> Wish:
    return Wish(tool, workflow_id, reason, "tester")


def test_workflows_and_checkpoints_are_listed_newest_first(store: str) -> None:
    with desk_at(store) as desk:
        told = desk.workflows(10)
        assert [row["workflow_id"] for row in told["workflows"]] == ["other", "a-1"]
        assert told["workflows"][1]["latest"]["checkpoint"] == "a-1@2"
        assert desk.workflows(1)["left_out"] == 1
        told = desk.checkpoints("a-1", 1)
        assert [row["checkpoint"] for row in told["checkpoints"]] == ["a-1@2"] and told["left_out"] == 1
        with pytest.raises(CheckpointNotFoundError):
            desk.checkpoints("nobody", 10)


def test_states_are_shown_whole_or_in_part_or_outlined(store: str) -> None:
    with desk_at(store, answer_bytes=1_000) as desk:
        shown = desk.show("a-1@1", "", None)
        assert shown["state"]["context"] == {"i": 1, "b": {"$hf": "bytes", "v": "AA=="}}
        assert desk.show("a-1", "/context/i", None)["state"] == 2
        assert desk.show("a-1@event:2", "/decisions/0/description", None)["state"] == "go on"
        desk.save(wish(), {"text": "x" * 2_000}, None, None)
        shown = desk.show("a-1", "", None)
        assert "state" not in shown and shown["too_large"]["fields"]["context"] > 2_000


def test_differences_are_told_field_by_field(store: str) -> None:
    with desk_at(store) as desk:
        desk.save(wish(), {"i": 2, "b": 1}, [{"role": "user", "content": "hi"}], 2)
        told = desk.diff("a-1@1", "a-1@3", "tester")
        assert [one["change"] for one in told["changes"]][:1] == ["set context.i = 2"]
        paths = [one["operation"]["path"] for one in told["changes"]]
        assert paths == [["context", "i"], ["context", "b"], ["messages"]]
        assert ["messages"] in [
            one["operation"]["path"] for one in desk.diff("a-1@3", "a-1@1", None)["changes"]
        ]
        assert desk.diff("a-1@1", "a-1@1", None)["changes"] == []


def test_events_and_the_trail_are_read(store: str) -> None:
    with desk_at(store) as desk:
        told = desk.events("a-1", 0, 10, "tester")
        assert [row["type"] for row in told["events"]] == [
            "CHECKPOINT_CREATED",
            "DECISION_RECORDED",
            "CHECKPOINT_CREATED",
        ]
        assert [row["seq"] for row in desk.events("a-1", 2, 10, None)["events"]] == [3]
        assert told["newest_seq"] == 3
        entries = desk.trail("a-1", 2)["entries"]
        assert [entry["type"] for entry in entries] == ["EVENTS_READ", "EVENTS_READ"]
        assert entries[1]["actor"] == "ann" and entries[1]["agent"] == "tester"


def test_checkpoints_and_the_trail_are_verified(store: str) -> None:
    with desk_at(store) as desk:
        assert desk.validate("a-1@2") == {
            "checkpoint": "a-1@2",
            "valid": True,
            "problems": [],
            "notes": [],
        }
        assert desk.verify_trail()["valid"]


def test_every_write_is_in_the_trail_with_actor_agent_and_reason(store: str) -> None:
    with desk_at(store) as desk:
        made = [
            desk.save(wish(reason="first"), {"i": 3}, None, None),
            desk.decide(wish(reason="second", tool="record_decision"), "stop", 0.5),
            desk.restore(wish(reason="third", tool="restore_checkpoint"), "a-1@1"),
        ]
        assert made[0]["checkpoint"] == "a-1@3" and made[1]["event_seq"] == 5
        assert made[2]["restored_from"] == "a-1@1"
        entries = desk.trail("a-1", 50)["entries"]
    asked = [entry for entry in reversed(entries) if entry["type"] == "REQUEST_MADE"]
    assert [entry["data"]["reason"] for entry in asked] == ["first", "second", "third"]
    assert {entry["actor"] for entry in asked} == {"ann"} and {entry["agent"] for entry in asked} == {
        "tester"
    }
    for entry in asked:
        types = {one["type"] for one in entries if one["correlation"] == entry["correlation"]}
        assert types & {"CHECKPOINT_CREATED", "AGENT_DECISION"}


def test_a_restored_state_is_the_newest_again_and_nothing_is_lost(store: str) -> None:
    with desk_at(store) as desk:
        desk.restore(wish(), "a-1@1")
        assert desk.show("a-1", "/context/i", None)["state"] == 1
        assert [row["checkpoint"] for row in desk.checkpoints("a-1", 9)["checkpoints"]] == [
            "a-1@3",
            "a-1@2",
            "a-1@1",
        ]
        with pytest.raises(InvalidStateError, match="another workflow"):
            desk.restore(wish(), "other@1")


def test_a_fork_begins_a_workflow_of_its_own(store: str) -> None:
    with desk_at(store) as desk:
        told = desk.fork(wish("a-2"), "a-1@1")
        assert told["checkpoint"] == "a-2@1" and told["forked_from"] == "a-1@1"
        with pytest.raises(CheckpointConflictError):
            desk.fork(wish("a-2"), "a-1@1")


def test_a_save_keeps_what_an_agent_has_no_say_in(store: str) -> None:
    with holdfast.open(store) as service:
        service.create_checkpoint("a-3", holdfast.WorkflowState(tasks=[{"id": "t"}], messages=["m"]))
    with desk_at(store) as desk:
        desk.save(wish("a-3"), {"i": 1}, None, None)
        state = desk.show("a-3", "", None)["state"]
    assert state["tasks"] == [{"id": "t"}] and state["messages"] == ["m"] and state["context"] == {"i": 1}


def test_two_writers_do_not_overwrite_each_other(store: str) -> None:
    with desk_at(store) as one, desk_at(store) as other:
        one.save(wish(), {"i": 3}, None, 2)
        with pytest.raises(CheckpointConflictError):
            other.save(wish(), {"i": 4}, None, 2)
        assert other.save(wish(), {"i": 4}, None, 3)["sequence"] == 4


def test_a_workflow_that_somebody_runs_or_that_is_over_is_not_written_to(store: str) -> None:
    with desk_at(store) as desk, holdfast.loop(store, "run-1", {"i": 0}), pytest.raises(LeaseHeldError):
        desk.save(wish("run-1"), {"i": 99}, None, None)
    with desk_at(store) as desk:
        for call in (
            lambda: desk.save(wish("run-1"), {"i": 99}, None, None),
            lambda: desk.restore(wish("run-1"), "run-1@1"),
            lambda: desk.decide(wish("run-1"), "x", None),
        ):
            with pytest.raises(InvalidStateError, match="has ended"):
                call()


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 501])
def test_a_write_without_a_reason_is_refused(store: str, reason: str) -> None:
    with desk_at(store) as desk:
        with pytest.raises(InvalidStateError, match="reason"):
            desk.save(wish(reason=reason), {"i": 3}, None, None)
        assert desk.checkpoints("a-1", 1)["total"] == 2


def test_only_workflows_with_the_prefix_are_there(store: str) -> None:
    with holdfast.open(store) as service:
        uuid = service.list_checkpoints("other")[0].id.uuid
    with desk_at(store, prefix="a-") as desk:
        assert [row["workflow_id"] for row in desk.workflows(10)["workflows"]] == ["a-1"]
        calls = [
            lambda: desk.checkpoints("other", 10),
            lambda: desk.show("other@1", "", None),
            lambda: desk.show(uuid, "", None),
            lambda: desk.diff("a-1@1", "other@1", None),
            lambda: desk.events("other", 0, 10, None),
            lambda: desk.trail("other", 10),
            lambda: desk.validate("other"),
            lambda: desk.save(wish("other"), {}, None, None),
            lambda: desk.fork(wish("a-2"), "other@1"),
            lambda: desk.fork(wish("b-2"), "a-1@1"),
        ]
        for call in calls:
            with pytest.raises(PermissionDeniedError, match="does not offer"):
                call()
        # The same answer for one that does not exist.
        with pytest.raises(PermissionDeniedError, match="does not offer"):
            desk.show("nobody@1", "", None)
    with holdfast.open(store) as service:
        refused = service.audit.query_events(event_types=["OPERATION_REFUSED"])
        assert len(refused) == len(calls) + 1


def test_the_beginning_of_a_uuid_is_no_way_around_the_prefix(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path)) as service:
        uuid = service.create_checkpoint("other", {"secret": "kelp"}).uuid
    with desk_at(tmp_path, prefix=uuid[:2]) as desk, pytest.raises(CheckpointNotFoundError):
        desk.show(uuid[:8], "", None)


def test_files_are_not_read(store: str) -> None:
    with desk_at(store) as desk, pytest.raises(PermissionDeniedError, match="files"):
        desk.show("/etc/checkpoint_1.json", "", None)


@pytest.mark.parametrize("name", ["", "a\x00b@1", "x" * 300, "\ud800@1"])
def test_hostile_names_are_refused(store: str, name: str) -> None:
    with desk_at(store) as desk:
        with pytest.raises(InvalidIdError):
            desk.show(name, "", None)
        with pytest.raises(InvalidIdError):
            desk.save(wish(name.partition("@")[0]), {}, None, None)


@pytest.mark.parametrize(
    "state",
    [
        {"$hf": "obj", "type": "os.system", "v": "true"},
        {"nested": {"$hf": "bytes", "v": "AA=="}},
        {"text": "\x00 \ud800"},
        {"": [], "__class__": {"__reduce__": 1}},
    ],
)
def test_data_that_looks_like_ours_stays_data(store: str, state: dict[str, Any]) -> None:
    with desk_at(store) as desk:
        desk.save(wish("a-9"), state, None, None)
    with holdfast.open(store) as service:
        found = service.load_latest("a-9")
        assert found is not None and found.context == state


def test_secrets_never_reach_the_store(store: str) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 24
    with desk_at(store) as desk:
        desk.save(wish("a-9", reason=f"with {secret}"), {"api_key": secret}, None, None)
        assert secret not in str(desk.show("a-9", "", None))
        assert secret not in str(desk.trail("a-9", 10))


def test_types_of_an_application_are_shown_and_not_revived(tmp_path: Path) -> None:
    registry = holdfast.TypeRegistry()

    @registry.register
    @dataclass
    class Offer:
        vendor: str

    with holdfast.open(str(tmp_path), registry=registry) as service:
        service.create_checkpoint("a-1", {"offer": Offer("B")})
        service.append_event("a-1", "OFFER_MADE", {"offer": Offer("B")})
    with desk_at(tmp_path) as desk:
        assert "B" in str(desk.show("a-1", "/context/offer", None)["state"])
        assert "B" in str(desk.events("a-1", 1, 10, None)["events"])
        with pytest.raises(CheckpointError):
            desk.save(wish(), {"i": 1}, None, None)


def test_damage_is_told_and_never_shown(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path)) as service:
        service.create_checkpoint("a-1", {"i": 1})
    damage(tmp_path)
    with desk_at(tmp_path) as desk:
        with pytest.raises(CheckpointCorruptError):
            desk.show("a-1@1", "", None)
        assert not desk.validate("a-1@1")["valid"]


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_store_that_cannot_be_written_to_can_be_looked_at(public_folder: Path) -> None:
    with holdfast.open(str(public_folder / "store")) as service:
        service.create_checkpoint("a-1", {"i": 1})
    for path in [public_folder / "store", *(public_folder / "store").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_privileges():
        with desk_at(public_folder / "store", scopes=frozenset({Scope.READ})) as desk:
            assert desk.show("a-1", "/context/i", None)["state"] == 1
        with (
            desk_at(public_folder / "store", scopes=frozenset({Scope.READ}), strict_audit=True) as desk,
            pytest.raises(CheckpointError),
        ):
            desk.show("a-1", "/context/i", None)
        with pytest.raises((PermissionDeniedError, StoreReadOnlyError)), desk_at(public_folder / "store"):
            pass


def test_without_a_trail_nothing_is_told_and_all_works(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path / "store"), audit=False):
        pass
    with desk_at(tmp_path / "store", audit=False) as desk:
        desk.save(wish(), {"i": 1}, None, None)
        assert desk.show("a-1", "/context/i", None)["state"] == 1
        assert desk.trail("a-1", 10)["entries"] == []


def test_no_store_is_made_for_an_agent(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError), desk_at(tmp_path / "nothing"):
        pass
    assert not (tmp_path / "nothing").exists()


def test_the_name_of_a_client_is_made_fit_for_a_trail() -> None:
    assert agent_name("Claude \x1b[31mCode\n") == "Claude [31mCode"
    assert agent_name(None) is None and agent_name("\n") is None
    assert len(agent_name("x" * 1_000) or "") == 100
