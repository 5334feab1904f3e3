"""Leases are renewed while runs have them, each in its own time, whatever happens to the others."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from holdfast.application.recording import Recording
from holdfast.domain.errors import CheckpointWriteError, LeaseLostError
from holdfast.domain.record import Lease
from holdfast.execution.leases import LeaseKeeper, LeaseKeepers
from tests.execution.journals import PATIENCE_SECONDS, at_once
from tests.execution.runs import opened

#: Never due in a test.
LONG_SECONDS = 10_000.0
#: Due at once, again and again.
SHORT_SECONDS = 0.003


class Watched(Recording):
    """Counts renewals, and tells when there were enough; some can be made to fail."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording._engine)
        self.counts: Counter[str] = Counter()
        self.problems: list[Exception] = []
        self._changed = threading.Condition()

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        try:
            if self.problems:
                raise self.problems.pop(0)
            return super().renew(lease, 3000)
        finally:
            with self._changed:
                self.counts[lease.workflow_id] += 1
                self._changed.notify_all()

    def await_count(self, workflow_id: str, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.counts[workflow_id] >= count, PATIENCE_SECONDS)


@pytest.fixture
def recording() -> Any:
    with opened() as service:
        yield Watched(service.recording)


def no_matter() -> None:
    """Hear of a lost lease and do nothing."""


def served(keeper: LeaseKeeper) -> None:
    """Return when the thread of a keeper is over."""
    thread = keeper._thread
    if thread is not None:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_a_lease_is_renewed_until_it_is_dropped(recording: Watched) -> None:
    keeper, lease = LeaseKeeper(), recording.take("W", "run", 3000)
    keeper.keep(recording, lease, SHORT_SECONDS, no_matter)
    recording.await_count("W", 3)
    keeper.drop(lease)
    served(keeper)
    assert keeper._thread is None


def test_a_keeper_begins_again_after_it_had_nothing_to_do(recording: Watched) -> None:
    keeper, lease = LeaseKeeper(), recording.take("W", "run", 3000)
    for count in (1, 2, 3):
        keeper.keep(recording, lease, SHORT_SECONDS, no_matter)
        recording.await_count("W", count)
        keeper.drop(lease)
        served(keeper)


def test_many_leases_are_not_renewed_because_others_come_and_go(recording: Watched) -> None:
    keeper = LeaseKeeper()
    leases = [recording.take(f"W{number}", "run", 3000) for number in range(100)]
    for lease in leases:
        keeper.keep(recording, lease, LONG_SECONDS, no_matter)
    busy = recording.take("busy", "run", 3000)
    keeper.keep(recording, busy, SHORT_SECONDS, no_matter)
    recording.await_count("busy", 3)
    for lease in (busy, *leases):
        keeper.drop(lease)
    served(keeper)
    assert set(recording.counts) == {"busy"}


def test_many_short_leases_are_all_renewed(recording: Watched) -> None:
    keeper = LeaseKeeper()
    leases = [recording.take(f"W{number}", "run", 3000) for number in range(40)]

    def keep(some: list[Lease]) -> None:
        for lease in some:
            keeper.keep(recording, lease, SHORT_SECONDS, no_matter)

    def drop(some: list[Lease]) -> None:
        for lease in some:
            keeper.drop(lease)

    at_once(lambda: keep(leases[:20]), lambda: keep(leases[20:]))
    for lease in leases:
        recording.await_count(lease.workflow_id, 2)
    at_once(lambda: drop(leases[:20]), lambda: drop(leases[20:]))
    served(keeper)


class Told(threading.Condition):
    """Tells that somebody is about to wait."""

    def __init__(self, lock: Any) -> None:
        super().__init__(lock)
        self.is_waited_for = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.is_waited_for.set()
        return super().wait(timeout)


def test_a_lease_that_is_shorter_than_those_before_it_is_renewed_in_its_own_time(recording: Watched) -> None:
    keeper = LeaseKeeper()
    keeper._changed = told = Told(keeper._mutex)
    long, short = recording.take("long", "run", 3000), recording.take("short", "run", 3000)
    keeper.keep(recording, long, LONG_SECONDS, no_matter)
    assert told.is_waited_for.wait(PATIENCE_SECONDS)
    keeper.keep(recording, short, SHORT_SECONDS, no_matter)
    recording.await_count("short", 2)
    keeper.drop(short)
    keeper.drop(long)
    served(keeper)
    assert recording.counts["long"] == 0


def test_equal_leases_are_told_apart(recording: Watched) -> None:
    """Two stores can grant the same lease: same workflow, owner and token."""
    keeper, lease = LeaseKeeper(), recording.take("W", "run", 3000)
    twin = Lease(lease.workflow_id, lease.owner, lease.token, lease.expires_at, is_live=lease.is_live)
    assert twin == lease
    keeper.keep(recording, lease, SHORT_SECONDS, no_matter)
    keeper.keep(recording, twin, SHORT_SECONDS, no_matter)
    keeper.drop(twin)
    count = recording.counts["W"]
    recording.await_count("W", count + 3)
    keeper.drop(lease)
    served(keeper)


def test_who_lost_a_lease_is_told_once(recording: Watched) -> None:
    keeper, lost = LeaseKeeper(), threading.Event()
    lease = recording.take("W", "run", 3000)
    recording.give_up(lease)
    told: list[int] = []

    def on_lost() -> None:
        told.append(1)
        lost.set()

    keeper.keep(recording, lease, SHORT_SECONDS, on_lost)
    assert lost.wait(PATIENCE_SECONDS)
    served(keeper)
    keeper.drop(lease)
    assert told == [1] and recording.counts["W"] == 1


def test_who_dropped_a_lease_is_not_told_that_it_is_lost(recording: Watched) -> None:
    keeper, told = LeaseKeeper(), list[int]()
    lease = recording.take("W", "run", 3000)

    class GivenUpMeanwhile(Watched):
        def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
            keeper.drop(lease)
            self.give_up(lease)
            return super().renew(lease, ttl_seconds)

    slow = GivenUpMeanwhile(recording)
    keeper.keep(slow, lease, SHORT_SECONDS, lambda: told.append(1))
    slow.await_count("W", 1)
    served(keeper)
    assert told == []


@pytest.mark.parametrize("problem", [CheckpointWriteError("full"), OSError("gone"), ValueError("closed")])
def test_a_store_that_cannot_be_written_for_a_while_is_tried_again(
    recording: Watched, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    keeper, told = LeaseKeeper(), list[int]()
    lease = recording.take("W", "run", 3000)
    recording.problems = [problem, problem]
    keeper.keep(recording, lease, SHORT_SECONDS, lambda: told.append(1))
    recording.await_count("W", 4)
    keeper.drop(lease)
    served(keeper)
    assert told == [] and caplog.text.count("the lease of W was not renewed") == 2


def test_a_run_whose_loop_is_gone_does_not_end_the_others(recording: Watched) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    keeper = LeaseKeeper()
    lost, lease = recording.take("lost", "run", 3000), recording.take("W", "run", 3000)
    recording.give_up(lost)
    keeper.keep(recording, lost, SHORT_SECONDS, lambda: loop.call_soon_threadsafe(no_matter))
    keeper.keep(recording, lease, SHORT_SECONDS, no_matter)
    recording.await_count("lost", 1)
    recording.await_count("W", 3)
    keeper.drop(lease)
    served(keeper)


def test_a_lease_that_ran_out_and_nobody_took_is_alive_again(recording: Watched) -> None:
    keeper, lease = LeaseKeeper(), recording.take("W", "run", 0)

    def is_live() -> bool:
        current = recording._engine.kit.store.lease("W")
        return current is not None and current.is_live

    assert not is_live()
    keeper.keep(recording, lease, SHORT_SECONDS, no_matter)
    recording.await_count("W", 1)
    assert is_live()
    keeper.drop(lease)
    served(keeper)
    with pytest.raises(LeaseLostError):
        recording.give_up(lease)
        recording.renew(lease, 1)


def test_a_store_that_hangs_costs_nobody_the_lease_on_another_one() -> None:
    hangs, may_go_on = threading.Event(), threading.Event()

    class Hanging(Watched):
        url = "file:/of/another"

        def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
            hangs.set()
            assert may_go_on.wait(PATIENCE_SECONDS)
            return super().renew(lease, ttl_seconds)

    with opened() as one, opened() as other:
        keepers, hanging, healthy = LeaseKeepers(), Hanging(one.recording), Watched(other.recording)
        first, second = hanging.take("H", "run", 3000), healthy.take("W", "run", 3000)
        keepers.keep(hanging, first, SHORT_SECONDS, no_matter)
        assert hangs.wait(PATIENCE_SECONDS)
        keepers.keep(healthy, second, SHORT_SECONDS, no_matter)
        healthy.await_count("W", 3)
        may_go_on.set()
        hanging.await_count("H", 1)
        keepers.drop(hanging, first)
        keepers.drop(healthy, second)
        for keeper in keepers._keepers.values():
            served(keeper)
