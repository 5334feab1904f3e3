"""The same damage seen from above: a state comes back as it was saved, or an error says that it cannot."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.errors import CheckpointError, StoreDamageWarning
from holdfast.testing import FixedClock, SequentialIds
from tests.campaign import Part
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine
from tests.crash.test_flips import Case, chosen, cut, cuts, damaged, flipped, flips, tell
from tests.crash.workload import open_on

WORKFLOW = "WF-one"
States = dict[str, Any]


def service_on(machine: Machine, *, read_only: bool = False) -> CheckpointService:
    disk = SimulatedDisk(machine)
    # The blob is read through a map, the other files are not.
    disk.map_bytes = 1200
    store = open_on(disk, read_only=read_only)
    config = Config(background=False, blob_threshold_bytes=1024)
    return CheckpointService(build_kit(store, config, clock=FixedClock(), ids=SequentialIds()))


def saved(*, settled: bool) -> tuple[Machine, States]:
    """A machine with a few checkpoints, and what each of them must give back."""
    machine = Machine()
    service = service_on(machine)
    messages: list[dict[str, Any]] = []
    for step in range(4):
        messages.append(
            {"role": "user", "content": f"message {step}", "large": "x" * 1500 if step == 2 else ""}
        )
        service.create_checkpoint(WORKFLOW, {"current_step": step, "messages": messages})
        service.append_event(WORKFLOW, "NOTE", {"step": step})
    truth = seen(service)
    if settled:
        service.close()
    return machine.copy(), truth


def seen(service: CheckpointService) -> States:
    """Every state by name, the newest, and the events."""
    found: States = {f"@{n}": service.restore_checkpoint(f"{WORKFLOW}@{n}") for n in range(1, 5)}
    found["latest"] = service.load_latest(WORKFLOW)
    found["events"] = [event.data for event in service.events(WORKFLOW)]
    return found


def questions(service: CheckpointService) -> dict[str, Callable[[], Any]]:
    asked: dict[str, Callable[[], Any]] = {
        f"@{n}": partial(service.restore_checkpoint, f"{WORKFLOW}@{n}") for n in range(1, 5)
    }
    asked["latest"] = partial(service.load_latest, WORKFLOW)
    asked["events"] = lambda: [event.data for event in service.events(WORKFLOW)]
    return asked


def problems(machine: Machine, truth: States, *, read_only: bool) -> list[str]:
    """States that came back wrong while nobody said a word, and errors that are not ours."""
    told, wrong = [], []
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            service = service_on(machine, read_only=read_only)
            for name, ask in questions(service).items():
                try:
                    answer = ask()
                except CheckpointError as error:
                    told.append(repr(error))
                    continue
                if answer != truth[name]:
                    wrong.append(f"{name} is {answer!r:.200}")
            told += [str(finding) for finding in service._engine.kit.store.check()]
    except CheckpointError as error:
        told.append(repr(error))
    except Exception as error:
        return [f"{error!r} escaped"]
    told += [str(w.message) for w in warned if issubclass(w.category, StoreDamageWarning)]
    # A state that was never saved is wrong whatever else was told; an older one must be told.
    invented = [text for text in wrong if text.startswith("@")]
    return invented or ([] if told else wrong)


def wrongs(machine: Machine, truth: States, cases: Iterable[Case], counts: Counter[str]) -> Iterator[str]:
    for path, what, damage in cases:
        counts["damages"] += 1
        for read_only in (True, False):
            found = problems(damaged(machine, path, damage), truth, read_only=read_only)
            yield from (f"{path} {what}, read_only={read_only}: {text}" for text in found[:1])


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "in the journal"])
@pytest.mark.parametrize("kind", [flips, cuts])
def test_a_damaged_store_never_gives_back_a_wrong_state(
    kind: Callable[[Machine], Iterator[Case]],
    settled: bool,
    part: Part | None,
    record_property: Callable[[str, object], None],
) -> None:
    machine, truth = saved(settled=settled)
    counts = Counter[str]()
    violations = list(wrongs(machine, truth, chosen(kind(machine), part, 20), counts))
    name = f"service_{kind.__name__}_{'settled' if settled else 'journal'}"
    tell(name, part, counts, violations, record_property)
    assert violations == []


def test_a_line_without_its_end_is_told() -> None:
    machine, truth = saved(settled=True)
    ends = [
        (path, f"bit {8 * at}", partial(flipped, 8 * at))
        for path, data in machine.files().items()
        if path.endswith(".jsonl")
        for at, byte in enumerate(data)
        if byte == ord("\n")
    ]
    assert len(ends) > 10
    assert list(wrongs(machine, truth, ends, Counter())) == []


def test_an_event_is_never_added_to_a_line_without_its_end() -> None:
    machine, _ = saved(settled=True)
    (path,) = (path for path in machine.files() if "events_" in path)
    size = len(machine.files()[path])
    service = service_on(damaged(machine, path, partial(cut, size - 1)))
    with pytest.raises(CheckpointError):
        service.append_event(WORKFLOW, "NOTE", {})
    assert len(service.events(WORKFLOW)) == 8
    assert [finding.problem for finding in service._engine.kit.store.check()] == ["damaged after event 7"]
