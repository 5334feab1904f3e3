"""The reducers run again: what the events explain, what the caller did itself, and what does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.application.app import App
from holdfast.application.reading import Reader
from holdfast.application.service import CheckpointService
from holdfast.application.travel.explaining import Discrepancy, Kind
from holdfast.application.travel.replaying import Replaying, ReplayReport
from holdfast.application.travel.travelling import TimeTravel
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, InvalidIdError
from holdfast.domain.state import WorkflowState
from holdfast.domain.trail import decode_entry
from holdfast.domain.tree import NOTHING
from tests.application.services import make_service


def check(
    service: CheckpointService, start: str | None = None, end: str | None = None, **kit: Any
) -> ReplayReport:
    changed = replace(service._engine.kit, **kit)
    return Replaying(changed, TimeTravel(changed, None, Reader(changed))).check("W", start, end)


def found(report: ReplayReport) -> list[Discrepancy]:
    return [one for step in report.steps for one in step.discrepancies]


def places(report: ReplayReport) -> list[tuple[Kind, str, int | None]]:
    return [(one.kind, ".".join(map(str, one.path)), one.event_seq) for one in found(report)]


@pytest.fixture
def service() -> CheckpointService:
    service = make_service()
    service.create_checkpoint("W", WorkflowState(messages=["begin"], context={"n": 0}))
    return service


def test_what_the_events_explain_is_not_worth_a_word(service: CheckpointService) -> None:
    state = service.restore_checkpoint("W@1")
    for number in range(3):
        service.append_event("W", "MESSAGE_ADDED", {"message": number})
        service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": number + 1}})
        state.messages.append(number)
        state.context["n"] = number + 1
        service.create_checkpoint("W", state)
    report = check(service)
    assert (report.start, report.end, report.events, report.replayed) == ("W@1", "W@4", 9, 6)
    assert [(step.start, step.end) for step in report.steps] == [
        ("W@1", "W@2"),
        ("W@2", "W@3"),
        ("W@3", "W@4"),
    ]
    assert found(report) == [] and report.skipped == () and report.problems == ()


def test_a_change_that_no_event_explains_is_the_callers(service: CheckpointService) -> None:
    state = service.restore_checkpoint("W@1")
    state.context["mine"] = True
    state.current_step = 4
    service.create_checkpoint("W", state)
    report = check(service)
    assert places(report) == [
        (Kind.UNEXPLAINED, "current_step", None),
        (Kind.UNEXPLAINED, "context.mine", None),
    ]
    assert report.count(Kind.DIVERGED) == 0


def test_an_event_that_says_another_thing_than_the_state_is_a_divergence(service: CheckpointService) -> None:
    state = service.restore_checkpoint("W@1")
    service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": 1}})
    service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": 2}})
    service.append_event("W", "MESSAGE_ADDED", {"message": "x"})
    state.context["n"] = 3
    state.messages.append("x")
    service.create_checkpoint("W", state)
    (one,) = found(check(service))
    assert one == Discrepancy(Kind.DIVERGED, ("context", "n"), 0, 2, 3, event_seq=3)


def test_an_event_that_the_caller_keeps_no_account_of_is_left_out(service: CheckpointService) -> None:
    service.record_decision("W", "go", agent_id="lead")
    state = service.restore_checkpoint("W@1")
    state.current_step = 1
    service.create_checkpoint("W", state)
    report = check(service)
    assert places(report) == [(Kind.UNEXPLAINED, "current_step", None), (Kind.LEFT_OUT, "decisions", 2)]
    assert found(report)[1].stored is NOTHING


def test_a_difference_is_told_once_where_it_came_up(service: CheckpointService) -> None:
    state = service.restore_checkpoint("W@1")
    state.context["mine"] = True
    for step in range(3):
        state.messages.append(step)
        service.append_event("W", "MESSAGE_ADDED", {"message": step})
        service.create_checkpoint("W", state)
    report = check(service)
    assert [len(step.discrepancies) for step in report.steps] == [1, 0, 0]


def test_events_after_the_last_checkpoint_are_replayed_and_compared_with_nothing(
    service: CheckpointService,
) -> None:
    service.append_event("W", "MESSAGE_ADDED", {"message": 1})
    service.append_event("W", "MESSAGE_ADDED", {"massage": 2})
    report = check(service)
    (step,) = report.steps
    assert (step.end, step.events, step.replayed, step.discrepancies) == ("W@event:3", 2, 1, ())
    assert [event.seq for event in report.skipped] == [3]


@pytest.fixture
def long() -> CheckpointService:
    """Checkpoint n at event 2n - 1, and an event after each."""
    service = make_service()
    for number in range(5):
        service.create_checkpoint("W", {"n": number})
        service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": number + 1}})
    return service


@pytest.mark.parametrize(
    ("start", "end", "first", "last", "events"),
    [
        (None, None, "W@1", "W@event:10", 9),
        ("W@3", None, "W@3", "W@event:10", 5),
        ("W@event:4", "W@4", "W@2", "W@4", 4),
        (None, "W@event:6", "W@1", "W@event:6", 5),
        (None, "W@3", "W@1", "W@3", 4),
        ("W@2", "W@2", "W@2", "W@2", 0),
        (None, "W@time:2099-01-01T00:00:00Z", "W@1", "W@event:10", 9),
    ],
)
def test_it_goes_from_anywhere_to_anywhere(
    long: CheckpointService, start: str | None, end: str | None, first: str, last: str, events: int
) -> None:
    report = check(long, start, end)
    assert (report.start, report.end, report.events) == (first, last, events)
    assert found(report) == []


@pytest.mark.parametrize(("start", "end"), [("W@4", "W@2"), ("W@event:9", "W@event:2")])
def test_an_end_before_the_beginning_is_refused(long: CheckpointService, start: str, end: str) -> None:
    with pytest.raises(InvalidIdError, match=r"the end lies before the beginning.*earlier checkpoint"):
        check(long, start, end)


@pytest.mark.parametrize(("start", "end"), [("V@1", None), (None, "V@1"), (None, "V@event:1")])
def test_it_stays_in_one_workflow(long: CheckpointService, start: str | None, end: str | None) -> None:
    long.create_checkpoint("V", {})
    with pytest.raises(InvalidIdError, match="this is no point of W"):
        check(long, start, end)


def test_without_a_checkpoint_there_is_nothing_to_begin_with() -> None:
    service = make_service()
    service.append_event("W", "MESSAGE_ADDED", {"message": 1})
    with pytest.raises(CheckpointNotFoundError, match="no checkpoint to begin with"):
        check(service)


def test_an_end_that_never_was_is_not_found(long: CheckpointService) -> None:
    with pytest.raises(CheckpointNotFoundError):
        check(long, None, "W@event:11")


def test_reducers_of_the_application_explain_too(service: CheckpointService) -> None:
    app = App()
    app.reducer("STEPPED")(lambda fields, event: {**fields, "current_step": event.data["to"]})
    state = service.restore_checkpoint("W@1")
    service.append_event("W", "STEPPED", {"to": 1})
    state.current_step = 1
    service.create_checkpoint("W", state)
    assert places(check(service)) == [(Kind.UNEXPLAINED, "current_step", None)]
    assert places(check(service, app=app)) == []


def test_what_a_reducer_empties_is_what_a_state_leaves_out(service: CheckpointService) -> None:
    app = App()
    app.reducer("CLEARED")(lambda fields, event: {**fields, "messages": []})
    service.append_event("W", "CLEARED", {})
    service.create_checkpoint("W", {"n": 0})
    assert places(check(service, app=app)) == []


def test_a_checkpoint_that_cannot_be_used_is_told_and_passed_over(tmp_path: Path) -> None:
    place = tmp_path / "store"
    with bootstrap.open(str(place), retain=False) as service:
        for number in range(4):
            service.create_checkpoint("W", {"n": number, "text": "x" * 3000 * (number == 0)})
            service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": number + 1}})
    (path,) = place.rglob("*.deltas.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[-1].startswith(b'{"seq":4,')
    path.write_bytes(b"".join(lines).replace(lines[-1], lines[-1].replace(b'"n"', b'"m"')))
    with bootstrap.open(str(place), read_only=True) as service:
        report = check(service)
        assert len(report.problems) == 1 and report.problems[0].startswith("W@4: ")
        assert report.steps[-1].start == "W@3" and report.steps[-1].end == "W@event:8"
        assert report.events == 7
        with pytest.raises(CheckpointCorruptError):
            check(service, "W@4")


@pytest.mark.sweep
@pytest.mark.parametrize("scheme", ["", "sqlite:", "postgresql+embedded:"])
def test_every_store_is_replayed(tmp_path: Path, scheme: str) -> None:
    with bootstrap.open(f"{scheme}{tmp_path}/store", retain=False, background=False) as service:
        state = WorkflowState(messages=["begin"])
        service.create_checkpoint("W", state)
        for number in range(30):
            service.append_event("W", "MESSAGE_ADDED", {"message": number})
            state.messages.append(number if number != 20 else "another")
            service.create_checkpoint("W", state)
        report = check(service)
        assert (len(report.steps), report.events, report.replayed) == (30, 60, 30)
        assert places(report) == [(Kind.DIVERGED, "messages.21", 42)]


def test_whoever_replays_looks_at_states_and_is_told_of(long: CheckpointService) -> None:
    assert long.replaying.check("W", end="W@3").end == "W@3"
    long.flush()
    store = long._engine.kit.store
    entries = [decode_entry(line, None) for session in store.sessions() for line in store.trail(session)]
    (entry,) = [entry for entry in entries if entry.type == "STATE_READ"]
    assert entry.facts == {"from": "W@1", "to": "W@3", "events": 4}


def test_finding_the_event_copies_no_state_for_each_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    app, copied = App(), list[Any]()

    def copy(tree: Any) -> Any:
        copied.append(tree)
        return tree

    @app.reducer("PRICE_SET")
    def set_price(fields: Any, event: Any) -> dict[str, Any]:
        return {**fields, "metadata": {"price": event.data["price"]}}

    service = make_service(app=app)
    service.create_checkpoint("W", WorkflowState("W", messages=["a"] * 100))
    set_last = [service.append_event("W", "PRICE_SET", {"price": price}) for price in range(50)][-1]
    service.create_checkpoint("W", WorkflowState("W", messages=["a"] * 100, metadata={"price": -1}))
    engine = service._engine
    monkeypatch.setattr("holdfast.domain.replay.copy_tree", copy)
    report = Replaying(engine.kit, engine.travel).check("W")
    assert [one.event_seq for one in found(report)] == [set_last.seq]
    assert len(copied) == 2
