"""How workflows stand, and their listing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count as count_up
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import CheckpointService, RunOptions, Workflow
from holdfast.application.insight import runs
from holdfast.application.insight.runs import RunBook, RunFilter, RunState
from holdfast.application.kit import Kit
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import AgentFailedError, CheckpointCorruptError, InvalidIdError
from holdfast.testing import FixedClock
from tests.application.services import make_kit

ANY = RunFilter()


def opened(**more: Any) -> tuple[CheckpointService, Kit, RunBook]:
    kit = make_kit(**more)
    return CheckpointService(kit), kit, RunBook(kit)


def asking() -> Workflow:
    flow = Workflow("asks")

    @flow.agent
    def ask(ctx: Any) -> str:
        return str(ctx.approve("Go on?", name="go"))

    return flow


def failing() -> Workflow:
    flow = Workflow("fails")

    @flow.agent
    def fail(ctx: Any) -> None:
        raise ValueError("no ink")

    return flow


def working() -> Workflow:
    flow = Workflow("works")

    @flow.agent
    def work(ctx: Any) -> int:
        return 1

    return flow


@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_real_runs_stand_as_they_ended(kind: str, tmp_path: Path) -> None:
    with holdfast.open("memory:" if kind == "memory" else f"{kind}:{tmp_path}/s") as service:
        book = RunBook(service._engine.kit)
        working().run_sync(service, "done")
        asking().run_sync(service, "asking", options=RunOptions(waits=False))
        with pytest.raises(AgentFailedError):
            failing().run_sync(service, "failed")
        service.create_checkpoint("plain", {"a": 1})
        service.append_event("events-only", "SOMETHING", {})
        found = {row.workflow_id: row for row, _ in book.all()}
    assert {name: str(row.status) for name, row in found.items()} == {
        "done": "completed",
        "asking": "waiting",
        "failed": "failed",
        "plain": "idle",
        "events-only": "empty",
    }
    assert "no ink" in found["failed"].reason
    assert found["asking"].questions == 1
    assert not any(row.is_live for row in found.values())
    newest = found["done"].newest
    assert newest is not None and newest.size_bytes == found["done"].state_bytes > 0


def test_whoever_has_a_workflow_runs_it_until_it_is_gone() -> None:
    service, _, book = opened()
    service.create_checkpoint("W", {})
    lease = service.acquire_lease("W", "somebody")
    row = book.row("W")
    assert row is not None and (row.status, row.owner, row.is_live) == (RunState.RUNNING, "somebody", True)
    service.append_event("W", "APPROVAL_REQUESTED", {"name": "go", "question": "?"}, step_id="a")
    row = book.row("W")
    assert row is not None and (row.status, row.is_live) == (RunState.WAITING, True)
    service.release_lease(lease)
    row = book.row("W")
    assert row is not None and (row.status, row.owner) == (RunState.IDLE, None)


def test_a_run_whose_process_died_has_crashed() -> None:
    script = "from holdfast.application.recovery.owners import own_name; print(own_name('run-1'))"
    gone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    service, _, book = opened()
    service.create_checkpoint("W", {})
    service.acquire_lease("W", gone.stdout.strip())
    row = book.row("W")
    pid, host = gone.stdout.strip().split(":")[4], gone.stdout.strip().split(":")[1]
    assert row is not None and row.status is RunState.CRASHED
    assert row.reason == f"its process (pid {pid} on {host}) is gone"


def test_a_workflow_that_nobody_ever_had_and_that_was_quiet_for_long_is_idle_and_says_so() -> None:
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    service, kit, book = opened(clock=clock)
    service.create_checkpoint("W", {})
    clock.advance(timedelta(seconds=kit.recovery.stale_seconds))
    row = book.row("W")
    assert row is not None and row.status is RunState.IDLE and "quiet for 300 seconds" in row.reason
    assert [one.workflow_id for one in service.incomplete_workflows()] == ["W"]


@pytest.mark.parametrize(
    ("told", "status", "reason"),
    [
        ("paused", RunState.PAUSED, "it was paused"),
        ("stopped", RunState.PAUSED, "its process was told to end"),
        ("cancelled", RunState.CANCELLED, "it was cancelled"),
        ("completed", RunState.COMPLETED, ""),
        ("in_progress", RunState.IDLE, "no process works on it"),
    ],
)
def test_a_run_stands_as_it_says(told: str, status: RunState, reason: str) -> None:
    service, _, book = opened()
    service.create_checkpoint("W", {})
    service.append_event("W", "RUN_UPDATED", {"fields": {"status": told}}, step_id="run")
    row = book.row("W")
    assert row is not None and (row.status, row.reason) == (status, reason)


def test_checkpoints_and_events_of_others_say_that_a_workflow_ended() -> None:
    service, _, book = opened()
    service.create_checkpoint("done", {}, type=CheckpointType.WORKFLOW_COMPLETE)
    made = service.create_checkpoint("broken", {})
    service.mark_failed(made, "no fuel")
    service.mark_completed(service.create_checkpoint("step", {}))
    service.create_checkpoint("told", {})
    service.append_event("told", "WORKFLOW_FAILED", {"error": "no wind"})
    found = {row.workflow_id: (str(row.status), row.reason) for row, _ in book.all()}
    assert found == {
        "done": ("completed", ""),
        "broken": ("failed", "no fuel"),
        "step": ("idle", "its last work is done"),
        "told": ("failed", "no wind"),
    }


def good_of(book: RunBook, workflow_id: str) -> tuple[str | None, str | None]:
    """Answer the last good checkpoint, by its row and by the listing of all."""
    row = book.row(workflow_id)
    [listed] = [one for one, _ in book.all() if one.workflow_id == workflow_id]
    assert row is not None
    return tuple(one.last_good.id if one.last_good else None for one in (row, listed))  # type: ignore[return-value]


def test_the_last_good_checkpoint_is_the_newest_that_is_not_in_quarantine() -> None:
    service, _, book = opened()
    for number in range(3):
        service.create_checkpoint("W", {"n": number})
        service.create_checkpoint("X", {"n": number})
    assert good_of(book, "W") == ("W@3", "W@3")
    service.quarantine.put("W", 2, "it looks odd")
    assert good_of(book, "W") == ("W@3", "W@3")
    kept = service.quarantine.put("W", 3, "it looks odd")
    assert good_of(book, "W") == ("W@1", "W@1") and good_of(book, "X") == ("X@3", "X@3")
    service.quarantine.put("W", 1, "it looks odd")
    assert good_of(book, "W") == (None, None)
    service.quarantine.release(kept.name, "it was fine")
    assert good_of(book, "W") == ("W@3", "W@3")


def test_a_run_that_was_recovered_says_so_until_somebody_goes_on_with_it() -> None:
    service, kit, book = opened()
    service.create_checkpoint("W", {})
    CheckpointService(kit).acquire_lease("W", "worker-1", ttl_seconds=0)
    row = book.row("W")
    assert row is not None and (row.status, row.is_recovered) == (RunState.CRASHED, False)
    service.recover_workflow("W")
    service.pin("W@1")
    row = book.row("W")
    assert row is not None and (row.status, row.is_recovered) == (RunState.IDLE, True)
    assert row.reason == runs.RECOVERED
    service.create_checkpoint("W", {"n": 1})
    row = book.row("W")
    assert row is not None and (row.reason, row.is_recovered) == ("no process works on it", False)


def test_a_workflow_that_is_not_there_has_no_row() -> None:
    _, _, book = opened()
    assert book.row("W") is None and book.all() == []


class Counting:
    """A store that counts how often journals and listings are read, and may be damaged."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads = 0
        self.damaged: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Any:
        self.reads += 1
        return self._store.entries(workflow_id, newest_first=newest_first)

    def head(self, workflow_id: str) -> Any:
        if workflow_id in self.damaged:
            raise CheckpointCorruptError("the last event is damaged")
        return self._store.head(workflow_id)

    def lease(self, workflow_id: str) -> Any:
        if f"lease of {workflow_id}" in self.damaged:
            raise CheckpointCorruptError("the lease is damaged")
        return self._store.lease(workflow_id)


def test_of_workflows_whose_heads_did_not_move_nothing_is_read_again() -> None:
    base = make_kit().store
    store = Counting(base)
    service, _, book = opened(store=store)
    for number in range(5):
        service.create_checkpoint(f"W{number}", {})
    before = book.all()
    reads = store.reads
    assert book.all() == before and store.reads == reads
    service.create_checkpoint("W3", {"n": 1})
    reads = store.reads
    assert book.all()[0][0].checkpoints == 2
    assert store.reads == reads + 1


def test_damage_is_told_in_its_row_and_hides_no_other() -> None:
    store = Counting(make_kit().store)
    service, _, book = opened(store=store)
    for name in ("A", "B", "C"):
        service.create_checkpoint(name, {})
        service.create_checkpoint(name, {"n": 1})
    store.damaged = {"A", "lease of B"}
    found = {row.workflow_id: (str(row.status), row.reason) for row, _ in book.all()}
    assert found["A"] == ("unreadable", "it cannot be read: the last event is damaged")
    assert found["B"] == ("unreadable", "it cannot be read: the lease is damaged")
    assert found["C"][0] == "idle"
    # What the listing tells is no less true for that.
    assert [(row.checkpoints, row.newest.id if row.newest else "") for row, _ in book.all()] == [
        (2, f"{row.workflow_id}@2") for row, _ in book.all()
    ]
    store.entries = _refused  # type: ignore[method-assign]
    row = book.row("A")
    assert row is not None and (row.status, row.checkpoints) == (RunState.UNREADABLE, 0)


def _refused(workflow_id: str, *, newest_first: bool = False) -> Any:
    raise CheckpointCorruptError("the listing is damaged")


def test_a_workflow_that_was_pruned_is_counted_anew() -> None:
    service, _, book = opened()
    for number in range(6):
        service.create_checkpoint("W", {"n": number})
    assert book.all()[0][0].checkpoints == 6
    service.prune_checkpoints("W", retain_count=2, retain_days=0)
    assert book.all()[0][0].checkpoints == 2


def test_what_took_long_is_reused_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.application.insight.runs._MANY", 1)
    service, _, book = opened()
    service.create_checkpoint("W", {})
    ticks = iter([0.0, 0.0, 0.2, 0.5, 1.0, 1.9, 2.1, 2.1, 2.1, 2.1, 2.1, 2.2])
    # Its own time only: threads of others would take what is meant for it.
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    first = book.all()
    service.create_checkpoint("X", {})
    assert book.all() is first
    assert len(book.all()) == 2


def test_who_asks_while_others_look_shares_what_they_find() -> None:
    class Waiting(Counting):
        def workflows(self) -> Iterator[str]:
            rounds.append(len(rounds))
            if len(rounds) == 1:
                begun.set()
                assert all_wait.wait(60)
            return iter(list(self._store.workflows()))

    rounds, begun, all_wait = list[int](), threading.Event(), threading.Event()
    service, _, book = opened(store=Waiting(make_kit().store))
    service.create_checkpoint("W", {})
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(book.all()))) for _ in range(8)]
    threads[0].start()
    assert begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    service.create_checkpoint("X", {})
    all_wait.set()
    for thread in threads:
        thread.join()
    # Whoever came meanwhile may need another look, and never more than one each.
    assert len(found) == 8 and 1 <= len(rounds) <= 8
    assert len(book.all()) == 2


def very_many(monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[CheckpointService, RunBook]:
    """Answer a book that has time for three workflows at a time."""
    ticks = count_up()
    monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: next(ticks) * 1.0))
    monkeypatch.setattr("holdfast.application.insight.runs._LONG_SECONDS", 1e9)
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(count):
        service.create_checkpoint(f"W{number:02}", {})
    return service, RunBook(kit, first_seconds=3.0, sweep_seconds=3.0)


def test_of_very_many_some_are_looked_at_each_time_until_all_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.application.insight.run_news.ENTRIES_MAX", 2)
    _, book = very_many(monkeypatch, 10)
    sizes = []
    while not (swept := book.swept()).is_complete:
        sizes.append(len(swept.rows))
        # The trail names those that moved last.
        assert swept.rows[0][0].workflow_id == "W09"
    assert sizes == sorted(set(sizes)) and 1 < len(sizes) < 10
    assert len(swept.rows) == len(book.all()) == 10


def test_of_very_many_those_that_move_are_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    service, book = very_many(monkeypatch, 30)
    while not book.swept().is_complete:
        pass
    book.swept()
    service.create_checkpoint("W29", {"n": 1})
    lease = service.acquire_lease("W28", "somebody")
    assert book.all()[0][0].workflow_id == "W29" and book.all()[0][0].checkpoints == 2
    assert {row.workflow_id for row, _ in book.all() if row.is_live} == {"W28"}
    service.release_lease(lease)
    assert not [row for row, _ in book.all() if row.is_live]


def test_however_many_leases_there_are_others_are_looked_at_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, _ = very_many(monkeypatch, 30)
    book = RunBook(service._engine.kit, first_seconds=8.0, sweep_seconds=8.0)
    for number in range(20):
        service.acquire_lease(f"W{number:02}", "somebody")
    sweeps = 1
    while not book.swept().is_complete:
        sweeps += 1
    assert sweeps < 15 and len(book.all()) == 30


def test_what_the_trail_tells_is_known_also_where_a_round_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    service, book = very_many(monkeypatch, 30)
    while not book.swept().is_complete:
        pass
    for number in range(8):
        service.create_checkpoint("W29", {"n": number})
        assert book.all()[0][0].checkpoints == number + 2


def pages(book: RunBook, wanted: RunFilter, limit: int) -> Iterator[list[str]]:
    cursor = None
    while True:
        rows, cursor = book.page(wanted, cursor, limit)
        yield [row.workflow_id for row in rows]
        if cursor is None:
            return


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from("abcdefghij"), max_size=25),
    st.integers(1, 6),
    st.lists(st.sampled_from("klmnop"), max_size=6),
    st.booleans(),
)
def test_pages_hold_every_row_once_also_while_others_are_added(
    names: list[str], limit: int, later: list[str], is_still: bool
) -> None:
    step = timedelta(0) if is_still else timedelta(seconds=1)
    service, _, book = opened(clock=FixedClock(datetime(2026, 1, 1, tzinfo=UTC), step=step))
    for number, name in enumerate(names):
        service.create_checkpoint(name, {"n": number})
    seen, added = list[str](), iter(later)
    for page in pages(book, ANY, limit):
        seen += page
        assert len(page) <= limit
        if not is_still and (new := next(added, None)) is not None:
            service.create_checkpoint(new, {"name": new})
    assert sorted(seen) == sorted(set(names))
    if not is_still:
        last = {name: place for place, name in enumerate(names)}
        assert seen == sorted(last, key=lambda name: -last[name])


def test_rows_are_filtered() -> None:
    service, _, book = opened(clock=FixedClock(datetime(2026, 1, 1, tzinfo=UTC), step=timedelta(hours=1)))
    service.create_checkpoint("Order-1", {}, agent_id="plan")
    service.create_checkpoint("order-2", {}, agent_id="write", type=CheckpointType.WORKFLOW_COMPLETE)
    service.create_checkpoint("other", {})
    service.annotate("other@1", labels=["For the Review"])

    def chosen(**more: Any) -> list[str]:
        return [row.workflow_id for row in book.page(RunFilter(**more), None, 10)[0]]

    assert chosen() == ["other", "order-2", "Order-1"]
    assert chosen(statuses=frozenset({"completed", "failed"})) == ["order-2"]
    assert chosen(agent="plan") == ["Order-1"]
    assert chosen(label="nobody") == []
    assert chosen(label="For the Review") == chosen(text="review") == ["other"]
    assert chosen(text="ORDER") == ["order-2", "Order-1"]
    assert chosen(text="writ") == ["order-2"]
    since = datetime.fromisoformat(book.all()[1][0].last_activity)
    assert chosen(since=since) == ["other", "order-2"]


def test_a_wrong_cursor_is_refused() -> None:
    _, _, book = opened()
    with pytest.raises(InvalidIdError):
        book.page(ANY, "nothing", 1)
