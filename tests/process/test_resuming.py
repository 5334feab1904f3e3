"""Recoveries in processes of their own: two at once, and one that is killed at any of its steps."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.application.execution_context import ExecutionContext
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import open_store
from holdfast.config import Config
from holdfast.domain.errors import LeaseHeldError
from tests.adapters.postgres import server
from tests.process.resumer import CHECKPOINT, Resumer, make_app, open_service
from tests.sizes import daily

STORES: dict[str, Callable[[Path], str]] = {
    "file": lambda folder: f"file:{folder / 'store'}",
    "sqlite": lambda folder: f"sqlite:{folder / 'store.db'}",
    "postgresql": lambda _: server.url(),
}
#: Changes of a recovery: the lease taken, the status set twice, views brought up to date, the lease given up.
STEPS = 5


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, fast_folder: Path) -> str:
    return STORES[request.param](fast_folder)


@contextmanager
def opened(url: str, resume: Any = None) -> Iterator[CheckpointService]:
    store = open_store(Config(store=url))
    with open_service(store, make_app(resume or (lambda context: None))) as service:
        yield service


def begin(url: str, name: str = CHECKPOINT) -> None:
    with opened(url) as service:
        service.create_checkpoint(name.removesuffix("@1"), {"n": 1}, resume_handler="resume")


def journal(service: CheckpointService, name: str = CHECKPOINT) -> list[tuple[str, int]]:
    """Tell every change of status, as the journal of events has it."""
    events = service.events(name.removesuffix("@1"), type="CHECKPOINT_STATUS")
    return [(event.data["status"], event.data["retry_count"]) for event in events]


def status(service: CheckpointService, name: str = CHECKPOINT) -> tuple[str, int]:
    [entry] = service._engine.kit.store.entries(name.removesuffix("@1"))
    return entry.status, entry.retry_count


@pytest.mark.parametrize("url", daily(STORES, ["file", "postgresql"]), indirect=True)
def test_of_two_processes_that_recover_at_once_one_wins(url: str) -> None:
    """The one that wins is held in its handler until the other was told that it lost."""
    begin(url)
    with Resumer(url) as one, Resumer(url) as other:
        both = (one, other)
        assert [child.answer() for child in both] == ["ready", "ready"]
        for child in both:
            child.go_on()
        answers = {child: child.answer() for child in both}
        assert sorted(answers.values()) == ["LeaseHeldError", "running"]
        [winner] = [child for child, answer in answers.items() if answer == "running"]
        winner.go_on()
        assert winner.answer() == "success True"
    with opened(url) as service:
        assert journal(service) == [("recovering", 0), ("completed", 0)]


@pytest.mark.parametrize("url", daily(STORES, ["sqlite"]), indirect=True)
def test_a_recovery_that_is_killed_is_recovered_again_with_one_retry_more(url: str) -> None:
    begin(url)
    seen: list[int] = []

    def resume(context: ExecutionContext) -> None:
        seen.append(context.checkpoint.retry_count)

    with Resumer(url) as child:
        assert child.answer() == "ready"
        child.go_on()
        assert child.answer() == "running"
        with opened(url, resume) as service:
            assert status(service) == ("recovering", 0)
            with pytest.raises(LeaseHeldError):
                service._engine.resumption.recover_from_checkpoint(CHECKPOINT)
            child.kill()
            result = service._engine.resumption.recover_from_checkpoint(CHECKPOINT)
            assert result.success
            assert journal(service) == [
                ("recovering", 0),
                ("failed", 1),
                ("recovering", 1),
                ("completed", 1),
            ]
            [failure] = service._engine.resumption.files.failures()
            assert failure["error_type"] == "OwnerDied"
    assert seen == [1]


def killed_at(url: str, name: str, steps: int) -> bool:
    """Recover in a process that dies at a step, and again here; answer whether it died."""
    begin(url, name)
    with Resumer(url, name, steps) as child:
        assert child.answer() == "ready"
        child.go_on()
        code = child.end()
    assert code in (0, -signal.SIGKILL)
    with opened(url) as service:
        assert [finding for finding in service._engine.kit.store.check() if finding.harm] == []
        before = status(service, name)
        assert journal(service, name)[-1:] == ([] if before == ("active", 0) else [before])
        result = service._engine.resumption.recover_from_checkpoint(name)
        assert result.success
        assert status(service, name) == ("completed", 1 if before[0] == "recovering" else 0)
        assert service.lease_of(name.removesuffix("@1")) is None
        assert service.validate_checkpoint(name).valid
    return code != 0


@pytest.mark.parametrize("url", daily(STORES, ["file"]), indirect=True)
def test_a_recovery_can_be_killed_before_any_of_its_changes_and_is_recovered_again(url: str) -> None:
    deaths = [killed_at(url, f"WF {steps}@1", steps) for steps in range(STEPS)]
    assert deaths == [True] * STEPS
    assert not killed_at(url, "WF that lives@1", 2 * STEPS)
