"""A worker that is stopped past its lease and wakes up: not a byte of what it still writes is kept."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.errors import CheckpointConflictError, LeaseHeldError
from holdfast.domain.record import Lease
from holdfast.ports import Store
from tests.adapters.postgres import server
from tests.process.leaseholder import WORKFLOW, Leaseholder
from tests.sizes import daily

#: What is said of every store that processes can share: how a URL of a new one is made.
STORES: dict[str, Callable[[Path], str]] = {
    "file": lambda folder: f"file:{folder / 'store'}",
    "sqlite": lambda folder: f"sqlite:{folder / 'store.db'}",
    "postgresql": lambda _: server.url(),
}

OVER_SECONDS = 0.0
SHORT_SECONDS = 0.2
#: What the worker tries when it wakes up; a first try may also fail because the worker is behind.
#: On which store others wrote before the worker wakes up, and on which they only took over.
EACH_ONCE = [("file", True), ("sqlite", False), ("postgresql", True)]
LATE = ("commit 90", "commit 91", "append 92", "append 93")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, fast_folder: Path) -> str:
    return STORES[request.param](fast_folder)


class Parent:
    """The worker that takes over, and sees everything that is stored."""

    def __init__(self, url: str) -> None:
        config = Config(store=url)
        self.store: Store = open_store(config)
        self.service = CheckpointService(build_kit(self.store, config))

    def take_over(self) -> Lease:
        """Acquire the workflow as soon as the store says that its lease is over."""
        while True:
            try:
                return self.service.acquire_lease(WORKFLOW, "parent", ttl_seconds=600)
            except LeaseHeldError:
                continue

    def commit(self, number: int) -> None:
        self.service.create_checkpoint(WORKFLOW, {"by": "parent", "n": number})

    def everything(self) -> list[object]:
        """All that the store holds of the workflow."""
        entries = list(self.store.entries(WORKFLOW))
        records = list(self.store.records(WORKFLOW, 1, entries[-1].sequence))
        lease = self.store.lease(WORKFLOW)
        return [entries, records, list(self.store.events(WORKFLOW)), self.store.head(WORKFLOW), lease]


def late_writes(url: str, *, is_fenced: bool, is_behind: bool) -> list[str]:
    """Stop a worker past its lease, take over, wake it; answer everything it got through.

    Args:
        is_fenced: False: what commits show is not looked at, for the negative controls.
        is_behind: Whether who took over wrote anything before the worker wakes up.
    """
    parent = Parent(url)
    with parent.service, Leaseholder(url, is_fenced=is_fenced) as worker:
        assert worker.ask(f"acquire worker {OVER_SECONDS}") == "1"
        assert worker.ask("commit 1") == f"{WORKFLOW}@1"
        worker.stop()
        worker.tell(LATE[0])
        parent.take_over()
        if is_behind:
            parent.commit(2)
        before = parent.everything()
        worker.go_on()
        answers = {LATE[0]: worker.answer(), **{command: worker.ask(command) for command in LATE[1:]}}
        found = [f"{told}: {answer}" for told, answer in answers.items() if answer != "LeaseLostError"]
        found += [] if parent.everything() == before else ["the store holds something else than before"]
        try:
            parent.commit(3)
        except CheckpointConflictError:
            found.append("who holds the lease was overtaken")
        assert parent.service.validate_checkpoint(f"{WORKFLOW}@latest").valid
        assert [finding for finding in parent.store.check() if finding.harm] == []
    return found


@pytest.mark.parametrize(
    ("url", "is_behind"), daily(product(STORES, [True, False]), EACH_ONCE), indirect=["url"]
)
def test_a_worker_that_was_stopped_past_its_lease_cannot_write(url: str, is_behind: bool) -> None:
    assert late_writes(url, is_fenced=True, is_behind=is_behind) == []


@pytest.mark.parametrize(
    ("url", "is_behind"), daily(product(STORES, [True, False]), EACH_ONCE[:2]), indirect=["url"]
)
def test_it_goes_red_when_nobody_looks_at_the_token(url: str, is_behind: bool) -> None:
    found = late_writes(url, is_fenced=False, is_behind=is_behind)
    assert "the store holds something else than before" in found


def test_a_worker_that_is_stopped_in_the_middle_of_a_commit_does_not_finish_it(url: str) -> None:
    """Prepared under a good lease, written after it was lost: the store looks when it writes."""
    parent = Parent(url)
    with parent.service, Leaseholder(url) as worker:
        worker.ask(f"acquire worker {OVER_SECONDS}")
        worker.ask("commit 1")
        worker.tell("stop-and-commit 2")
        worker.wait_until_stopped()
        parent.take_over()
        before = parent.everything()
        worker.go_on()
        assert worker.answer() == "LeaseLostError"
        assert parent.everything() == before
        parent.commit(2)


@pytest.mark.parametrize("url", daily(STORES, ["file", "postgresql"]), indirect=True)
def test_a_worker_whose_time_ran_out_while_it_was_stopped_cannot_write(url: str) -> None:
    """The lease ends by the store's clock, and nothing else: nobody tells the worker."""
    parent = Parent(url)
    with parent.service, Leaseholder(url) as worker:
        worker.ask(f"acquire worker {SHORT_SECONDS}")
        worker.ask("commit 1")
        worker.stop()
        taken = parent.take_over()
        parent.commit(2)
        before = parent.everything()
        worker.go_on()
        assert [worker.ask(command) for command in LATE] == ["LeaseLostError"] * len(LATE)
        assert worker.ask("renew 1") == "LeaseLostError"
        assert worker.ask("acquire worker 60") == "LeaseHeldError"
        assert parent.everything() == before
        parent.service.release_lease(taken)
        assert worker.ask("acquire worker 60") == str(taken.token + 1)
        assert worker.ask("commit 3") == f"{WORKFLOW}@3"
        assert parent.service.restore_checkpoint(f"{WORKFLOW}@2").context["by"] == "parent"


@pytest.mark.parametrize("url", daily(STORES, ["sqlite"]), indirect=True)
def test_a_worker_that_was_only_slow_goes_on(url: str) -> None:
    parent = Parent(url)
    with parent.service, Leaseholder(url) as worker:
        worker.ask(f"acquire worker {OVER_SECONDS}")
        worker.stop()
        worker.tell("commit 1")
        worker.go_on()
        assert worker.answer() == f"{WORKFLOW}@1"
        assert worker.ask("renew 1") == "1"
        with pytest.raises(LeaseHeldError):
            parent.commit(2)


@pytest.mark.parametrize("url", daily(STORES, ["file"]), indirect=True)
def test_a_worker_that_was_killed_is_replaced_by_one_of_its_name(url: str) -> None:
    """Nobody waits for the time of a lease whose owner comes back."""
    parent = Parent(url)
    with parent.service:
        with pytest.raises(KeyboardInterrupt), Leaseholder(url) as worker:
            worker.ask("acquire worker 600")
            worker.ask("commit 1")
            raise KeyboardInterrupt
        with pytest.raises(LeaseHeldError):
            parent.commit(2)
        with Leaseholder(url) as worker:
            assert worker.ask("acquire worker 600") == "2"
            assert worker.ask("commit 2") == f"{WORKFLOW}@2"
