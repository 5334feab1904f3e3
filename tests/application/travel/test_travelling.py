"""Any point of a workflow can be restored, compared and forked, exactly or not at all."""

from __future__ import annotations

import copy
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.reading import Reader
from holdfast.application.service import CheckpointService
from holdfast.application.travel.travelling import TimeTravel
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    EventsSkippedWarning,
    InvalidIdError,
    RedactedStateWarning,
    StoreDamageWarning,
)
from holdfast.domain.ids import parse_ref
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.recovery import RecoverySettings
from holdfast.domain.reducers import reduce
from holdfast.domain.state import WorkflowState
from holdfast.domain.trail import decode_entry
from holdfast.testing import FixedClock
from tests.adapters.postgres import server
from tests.application.services import make_kit, make_service
from tests.encrypted import OLD_KEY

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def told(service: CheckpointService, type: str) -> list[AuditEntry]:
    """Read what the trails tell of one type."""
    service.flush()
    store = service._engine.kit.store
    entries = [decode_entry(line, None) for session in store.sessions() for line in store.trail(session)]
    return [entry for entry in entries if entry.type == type]


def fill(service: CheckpointService, workflow_id: str = "W") -> None:
    """Record event 1, checkpoint 1 (event 2), events 3 to 5, checkpoint 2 (event 6) and event 7."""
    service.append_event(workflow_id, "MESSAGE_ADDED", {"message": "first"})
    state = WorkflowState(messages=["begin"], tasks=[{"id": "T-1"}], context={"n": 1})
    service.create_checkpoint(workflow_id, state)
    service.append_event(workflow_id, "MESSAGE_ADDED", {"message": "second"})
    service.append_event(workflow_id, "TASK_UPDATED", {"task": {"id": "T-1", "done": True}})
    service.append_event(workflow_id, "SOMETHING", {"n": 5})
    service.create_checkpoint(workflow_id, {"n": 2})
    service.append_event(workflow_id, "CONTEXT_UPDATED", {"context": {"n": 7}})


@pytest.fixture(params=["memory", "file", "sqlite", "postgres"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CheckpointService]:
    urls = {
        "memory": "memory:",
        "file": f"{tmp_path}/store",
        "sqlite": f"sqlite:{tmp_path}/store.db",
    }
    url = urls[request.param] if request.param in urls else server.url()
    with bootstrap.open(url, retain=False, background=False) as opened:
        yield opened


def test_every_point_of_every_store_is_reached(service: CheckpointService) -> None:
    fill(service)
    found = [service.restore_checkpoint(f"W@event:{seq}") for seq in range(1, 8)]
    assert [state.messages for state in found[:3]] == [["first"], ["begin"], ["begin", "second"]]
    assert found[3].tasks == found[4].tasks == [{"id": "T-1", "done": True}]
    assert [state.context for state in found[4:]] == [{"n": 1}, {"n": 2}, {"n": 7}]
    assert [state.checkpoint_id for state in found] == [None, *["W@1"] * 4, *["W@2"] * 2]
    assert {state.workflow_id for state in found} == {"W"}


def test_points_are_compared_and_forked(service: CheckpointService) -> None:
    fill(service)
    gone_on = [{"op": "set", "path": ["messages"], "value": ["begin", "second"]}]
    assert service.diff_checkpoints("W@1", "W@event:3") == gone_on
    gone_back = [{"op": "set", "path": ["context", "n"], "value": 2}]
    assert service.diff_checkpoints("W@event:7", "W@2") == gone_back
    forked = service.fork_workflow("W@event:4", "F")
    again = service.restore_checkpoint(forked)
    assert (again.workflow_id, again.messages, again.tasks) == (
        "F",
        ["begin", "second"],
        [{"id": "T-1", "done": True}],
    )
    (entry,) = told(service, "WORKFLOW_FORKED")
    assert entry.facts["from"] == "W@event:4"


def test_a_point_is_known_by_what_it_grew_out_of(service: CheckpointService) -> None:
    fill(service)
    kit = service._engine.kit
    travel = TimeTravel(kit, None, Reader(kit))
    grown = {name: travel.before(travel.at(name)) for name in ("W@event:1", "W@1", "W@event:4", "W@2")}
    assert [str(point) if point else None for point in grown.values()] == [None, None, "W@1", "W@1"]


@pytest.fixture
def clocked() -> CheckpointService:
    """Events and checkpoints a second apart; each looks at the clock for its entry in the trail as well."""
    service = make_service(clock=FixedClock(BEGIN, step=timedelta(seconds=1)))
    fill(service)
    return service


def test_a_moment_means_everything_up_to_it(clocked: CheckpointService) -> None:
    events = clocked.events("W")
    for event in events:
        by_event = clocked.restore_checkpoint(f"W@event:{event.seq}")
        assert clocked.restore_checkpoint(f"W@time:{event.timestamp.isoformat()}") == by_event
        later = event.timestamp + timedelta(microseconds=999)
        assert clocked.restore_checkpoint(f"W@time:{later.isoformat()}") == by_event
    assert clocked.restore_checkpoint("W@time:2099-01-01T01:00:00+01:00").context == {"n": 7}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("W@event:8", "the last event is 7"),
        ("W@event:0", "nothing had been recorded by then"),
        ("V@event:1", "the last event is 0"),
        ("W@time:2025-12-31T00:00:00Z", "nothing had been recorded by then"),
    ],
)
def test_a_point_that_never_was_is_not_found(clocked: CheckpointService, name: str, why: str) -> None:
    with pytest.raises(CheckpointNotFoundError, match=why):
        clocked.restore_checkpoint(name)


def test_what_needs_a_checkpoint_refuses_a_point(clocked: CheckpointService) -> None:
    for ask in (clocked.delete, clocked.validate_checkpoint, clocked.get_by_id):
        with pytest.raises(InvalidIdError, match="a checkpoint is needed"):
            ask("W@event:3")


def test_a_state_that_is_changed_by_its_reader_is_changed_for_nobody_else(clocked: CheckpointService) -> None:
    first = clocked.restore_checkpoint("W@event:4")
    kept = copy.deepcopy(first)
    first.tasks[0]["done"] = "never"
    first.messages.clear()
    assert clocked.restore_checkpoint("W@event:4") == kept
    assert clocked.restore_checkpoint("W@1").tasks == [{"id": "T-1"}]


def test_a_point_is_told_in_the_trail(clocked: CheckpointService) -> None:
    clocked.restore_checkpoint("W@event:3")
    clocked.diff_checkpoints("W@1", "W@event:1")
    clocked.flush()
    (restored,) = told(clocked, "STATE_RESTORED")
    assert (restored.facts["event_seq"], restored.facts["cp_seq"]) == (3, 1)
    assert [entry.facts.get("event_seq") for entry in told(clocked, "STATE_READ")] == [None, 1]


def travel(service: CheckpointService, **kit: Any) -> TimeTravel:
    """Travel in the store of a service with other settings."""
    changed = replace(service._engine.kit, **kit)
    return TimeTravel(changed, None, Reader(changed))


def test_events_that_do_not_fit_are_told(clocked: CheckpointService) -> None:
    clocked.append_event("W", "MESSAGE_ADDED", {"massage": "?"})
    clocked.append_event("W", "MESSAGE_ADDED", {"message": "last"})
    with pytest.warns(
        EventsSkippedWarning, match=r"W@event:9 is without these events: 8 \(MESSAGE_ADDED: Key"
    ):
        assert clocked.restore_checkpoint("W@event:9").messages == ["last"]


def test_reducers_of_the_application_take_part(clocked: CheckpointService) -> None:
    app = App()

    @app.reducer("SOMETHING")
    def _note(fields: Any, event: Any) -> dict[str, Any]:
        return {**fields, "context": {**fields["context"], "something": event.data["n"]}}

    assert travel(clocked, app=app).state_at(parse_ref("W@event:5")).context == {"n": 1, "something": 5}


def test_an_older_checkpoint_stands_in_for_a_damaged_one(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with bootstrap.open(str(place), retain=False) as service:
        fill(service)
    for path in place.rglob("*.deltas.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line.replace(b'"n"', b'"m"') for line in lines))
    with bootstrap.open(str(place), read_only=True) as service:
        with pytest.warns(StoreDamageWarning, match="checkpoint 2 cannot be used .*: an older one was used"):
            state = service.restore_checkpoint("W@event:7")
        assert state.context == {"n": 7} and state.messages == ["begin", "second"]
        assert state.checkpoint_id == "W@1"
        strict = travel(service, recovery=RecoverySettings(is_fallback_allowed=False))
        with pytest.raises(CheckpointCorruptError):
            strict.state_at(parse_ref("W@event:7"))


def test_a_damaged_event_on_the_way_is_never_passed_over(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with bootstrap.open(str(place), retain=False) as service:
        fill(service)
    for path in place.rglob("events_*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b'"second"', b'"sxcond"'))
    with bootstrap.open(str(place), read_only=True) as service:
        with pytest.raises(ChecksumMismatchError):
            service.restore_checkpoint("W@event:4")
        # What comes after a point has nothing to do with it.
        assert service.restore_checkpoint("W@event:2").context
        assert service.restore_checkpoint("W@event:7").context == {"n": 7}


def test_what_was_pruned_is_missed_and_told(clocked: CheckpointService) -> None:
    for number in range(3, 6):
        clocked.create_checkpoint("W", {"n": number})
    clocked.append_event("W", "CONTEXT_UPDATED", {"context": {"late": True}})
    clocked.delete("W@4")
    with pytest.warns(StoreDamageWarning, match="checkpoint 4 was pruned"):
        assert clocked.restore_checkpoint("W@event:9").context == {"n": 3}
    clocked.delete("W@1")
    with pytest.raises(CheckpointNotFoundError, match="the checkpoints up to it were pruned"):
        clocked.restore_checkpoint("W@event:3")


@dataclass(frozen=True)
class Offer:
    price: int


def test_types_that_nobody_knows_here_fork_as_they_are() -> None:
    store, registry = MemoryStore(), TypeRegistry()
    registry.register(Offer)
    with make_service(store, registry) as service:
        service.create_checkpoint("W", {"offers": [Offer(1)], "pair": (1, Offer(2))})
        service.append_event("W", "CONTEXT_UPDATED", {"context": {"best": Offer(3)}})
        service.append_event("W", "MESSAGE_ADDED", {"message": "done"})
        wanted = service.restore_checkpoint("W@event:3")
        make_service(store).fork_workflow("W@event:3", "F")
        forked = service.restore_checkpoint("F@1")
    assert forked.context == wanted.context == {"offers": [Offer(1)], "pair": (1, Offer(2)), "best": Offer(3)}
    assert forked.messages == ["done"]


def test_secrets_that_were_never_stored_are_missed_aloud() -> None:
    with make_service() as service:
        service.create_checkpoint("W", {"n": 1})
        service.append_event("W", "CONTEXT_UPDATED", {"context": {"password": "hunter2-and-more"}})
        with pytest.warns(RedactedStateWarning) as heard:
            state = service.restore_checkpoint("W@event:2")
        (warning,) = heard
        assert isinstance(warning.message, RedactedStateWarning)
        assert warning.message.pointers == ("/context/password",)
        filled = travel(service, resolver=lambda pointer, found: "hunter3")
        assert filled.state_at(parse_ref("W@event:2")).context["password"] == "hunter3"
    assert "hunter2" not in str(state.context)


def test_warnings_are_about_the_line_that_asked(clocked: CheckpointService) -> None:
    clocked.append_event("W", "MESSAGE_ADDED", {})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        clocked.restore_checkpoint("W@event:8")
        clocked.diff_checkpoints("W@1", "W@event:8")
        clocked.fork_workflow("W@event:8", "F")
    assert [warning.filename for warning in heard] == [__file__] * 3


def test_a_workflow_without_a_checkpoint_has_points_too() -> None:
    with make_service() as service:
        service.append_event("W", "MESSAGE_ADDED", {"message": 1})
        service.append_event("W", "MESSAGE_ADDED", {"message": 2})
        assert service.restore_checkpoint("W@event:1").messages == [1]
        forked = service.fork_workflow("W@event:2", "F")
        assert service.restore_checkpoint(forked).messages == [1, 2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("MESSAGE_ADDED"), st.integers(0, 9).map(lambda n: {"message": n})),
        st.tuples(st.just("TASK_UPDATED"), st.integers(0, 3).map(lambda n: {"task": {"id": n, "n": n}})),
        st.tuples(st.just("CONTEXT_UPDATED"), st.integers(0, 9).map(lambda n: {"context": {"k": n}})),
        st.tuples(st.just("checkpoint"), st.integers(0, 9).map(lambda n: {"own": n})),
    ),
    min_size=1,
    max_size=15,
)


@pytest.mark.sweep
@given(STEPS)
def test_every_point_is_what_the_reducers_make_of_the_journal(
    steps: list[tuple[str, dict[str, Any]]],
) -> None:
    service = CheckpointService(make_kit())
    fields: dict[str, Any] = {}
    expected = []
    for kind, data in steps:
        if kind == "checkpoint":
            fields = {"context": {**fields.get("context", {}), **data}, "messages": [], "tasks": []}
            service.create_checkpoint("W", WorkflowState(**copy.deepcopy(fields)), force=True)
        else:
            fields = reduce(fields, [service.append_event("W", kind, data)])
        expected.append([fields.get(name, empty) for name, empty in _EMPTY.items()])
    found = [service.restore_checkpoint(f"W@event:{seq}") for seq in range(1, len(steps) + 1)]
    assert [[getattr(state, name) for name in _EMPTY] for state in found] == expected


_EMPTY: dict[str, Any] = {"messages": [], "tasks": [], "context": {}}


def test_an_encrypted_store_is_travelled_with_its_key(tmp_path: Path) -> None:
    url, settings = (
        str(tmp_path / "store"),
        {"encryption_key": f"command:echo {OLD_KEY.hex()}", "retain": False},
    )
    with bootstrap.open(url, encrypt=True, **settings) as service:
        fill(service)
    with bootstrap.open(url, **settings) as service:
        assert service.restore_checkpoint("W@event:4").tasks == [{"id": "T-1", "done": True}]
        service.fork_workflow("W@event:4", "F")
        assert service.restore_checkpoint("F").messages == ["begin", "second"]
        service.erasure.workflow("W", reason="asked for")
        with pytest.raises(CheckpointError):
            service.restore_checkpoint("W@event:4")
        assert service.restore_checkpoint("F@1").messages == ["begin", "second"]
    assert not any(b'"second"' in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_the_first_event_after_the_oldest_kept_checkpoint_is_verified_too(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    with bootstrap.open(f"sqlite:{place}", retain=False, background=False) as service:
        fill(service)
        service.create_checkpoint("W", {"n": 8})
        service.prune_checkpoints("W", retain_count=2, retain_days=0)
        assert service.restore_checkpoint("W@event:7").context == {"n": 7}
        assert next(event.seq for event in service.events("W")) == 6
    with closing(sqlite3.connect(place)) as database:
        changed = "UPDATE events SET data = CAST(replace(data, ':7}', ':9}') AS BLOB) WHERE seq = 7"
        assert database.execute(changed).rowcount == 1
        database.commit()
    with bootstrap.open(f"sqlite:{place}", retain=False) as service, pytest.raises(ChecksumMismatchError):
        service.restore_checkpoint("W@event:7")
