"""Power cuts, faults and flipped bits while a workflow changes hands: a token that was lost never passes."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from holdfast.adapters.filesystem import leases
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.journal import Journal
from holdfast.domain.errors import CheckpointError, StoreDamageWarning
from holdfast.domain.record import Lease
from tests.crash.evidence import keep
from tests.crash.explorer import guarded, images
from tests.crash.faulty_disk import FAULTS, Fault, FaultyDisk
from tests.crash.leasing import (
    LONG_SECONDS,
    OVER_SECONDS,
    REFUSALS,
    WORKFLOW,
    LeaseRun,
    Promises,
    broken_promises,
    long_after,
    open_at,
    weak_fence,
    wrong_lease,
)
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine
from tests.crash.test_flips import damaged, flipped, telling

NEVER = 10**9


def problems_after_cuts(
    machine: Machine, promises: Promises, rng: random.Random, samples: int, counts: Counter[str]
) -> list[str]:
    """Cut the power in several ways, and see what recovery makes of each."""
    found: list[str] = []
    for image in images(machine, rng, samples):
        counts["power cuts"] += 1
        found += guarded(partial(broken_promises, SimulatedDisk(image), promises))
    return found


def explored(samples: int, counts: Counter[str]) -> list[str]:
    """Run the script, cut the power after every operation of it."""
    machine, rng = Machine(ordered=False), random.Random(1)
    run = LeaseRun(lambda: SimulatedDisk(machine))
    violations: list[str] = []

    def look(operation: str) -> None:
        counts["operations"] += 1
        if operation == "page half":
            return
        machine.on_operation = None
        found = problems_after_cuts(machine, run.promises, rng, samples, counts)
        violations.extend(f"after {operation!r}: {text}" for text in found)
        machine.on_operation = look

    machine.on_operation = look
    run.run()
    refused = tuple(type(error).__name__ for error in run.errors)
    return violations + ([] if refused == REFUSALS else [f"the script was refused otherwise: {refused}"])


def test_no_power_cut_brings_a_lost_token_back(campaign: bool) -> None:
    counts: Counter[str] = Counter()
    violations = explored(40 if campaign else 2, counts)
    keep("leases_power_cuts", counts, violations, campaign=campaign)
    assert violations == []
    assert counts["power cuts"] > 200


def faults(campaign: bool) -> Iterator[Fault]:
    rng = random.Random(7)
    for name in FAULTS:
        machine, counting = Machine(), Fault(name, NEVER)
        LeaseRun(partial(FaultyDisk, machine, counting)).run()
        for is_persistent in (False, True):
            total = range(counting.count)
            chosen = total if campaign else sorted(rng.sample(total, min(len(total), 3)))
            yield from (Fault(name, at, is_persistent) for at in chosen)


def problems_with(fault: Fault, rng: random.Random, counts: Counter[str]) -> list[str]:
    """Run the script on a disk with a fault, then look at it when the fault is gone."""
    machine = Machine(ordered=False)
    run = LeaseRun(partial(FaultyDisk, machine, fault))

    def script() -> list[str]:
        run.run()
        return []

    found = guarded(script)
    fault.gone = True
    for store in run.stores.values():
        found += guarded(partial(wrong_lease, store, run.promises))
    found += problems_after_cuts(machine, run.promises, rng, 3, counts)
    for disk in run.disks.values():
        disk.kill()
    return found + guarded(partial(broken_promises, SimulatedDisk(machine), run.promises))


def test_no_fault_of_the_disk_brings_a_lost_token_back(campaign: bool) -> None:
    rng, counts = random.Random(11), Counter[str]()
    violations: list[str] = []
    for fault in faults(campaign):
        found = problems_with(fault, rng, counts)
        counts["faults"] += 1
        counts["faults that struck"] += bool(fault.struck)
        kind = "persistent" if fault.persistent else "once"
        violations += [f"{fault.name} {kind} at {fault.at} ({fault.log[:1]}): {text}" for text in found[:1]]
    keep("leases_faults", counts, violations, campaign=campaign)
    assert violations == []


# -- flipped bits --------------------------------------------------------------------------------


def changed_hands(*, is_settled: bool) -> tuple[Machine, Promises]:
    """A machine on which a workflow went from one owner to another; if not settled, in the journal only."""
    machine = Machine()
    run = LeaseRun(lambda: SimulatedDisk(machine))
    run.acquire("A", "ann", OVER_SECONDS)
    run.commit("A")
    run.acquire("A", "bob", LONG_SECONDS)
    run.commit("A")
    if is_settled:
        run.close("A")
    return machine.copy(), run.promises


def untold_problems(machine: Machine, promises: Promises) -> list[str]:
    """What is wrong with how a damaged store answers, unless it says that it is damaged."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            store = open_at(SimulatedDisk(machine), long_after())
            wrong = weak_fence(store, Promises(lost=promises.lost))
            findings = list(store.check())
            wrong += wrong_lease(store, promises)
        except CheckpointError:
            return guarded(partial(still_granted, machine, promises))
        finally:
            is_told = any(issubclass(warning.category, StoreDamageWarning) for warning in warned)
    return [] if findings or is_told else wrong


def still_granted(machine: Machine, promises: Promises) -> list[str]:
    """A damaged lease can be acquired anew, and nobody from before gets past it."""
    try:
        store = open_at(SimulatedDisk(machine), long_after())
    except CheckpointError:
        return []
    store.acquire(WORKFLOW, "new", LONG_SECONDS)
    return weak_fence(store, Promises(lost={*promises.lost, promises.highest}))


def problems_with_flips(
    machine: Machine, promises: Promises, name: str, sample: int | None, counts: Counter[str]
) -> Iterator[str]:
    cases = [
        (path, bit)
        for path, data in sorted(machine.files().items())
        if name in path
        for bit in telling(data, 8)
    ]
    for path, bit in cases if sample is None else random.Random(13).sample(cases, sample):
        counts["flips"] += 1
        image = damaged(machine, path, partial(flipped, bit))
        for text in guarded_in_peace(image, promises)[:1]:
            yield f"{path} bit {bit}: {text}"


def guarded_in_peace(machine: Machine, promises: Promises) -> list[str]:
    """As `guarded`, where damage may be told: here something is damaged indeed."""
    try:
        return untold_problems(machine, promises)
    except Exception as error:
        return [f"{error!r} escaped"]


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "in the journal"])
def test_a_flipped_bit_is_told_or_harmless(is_settled: bool, campaign: bool) -> None:
    machine, promises = changed_hands(is_settled=is_settled)
    counts: Counter[str] = Counter()
    sample = None if campaign else 60
    violations = list(problems_with_flips(machine, promises, "", sample, counts))
    if is_settled:
        violations += problems_with_flips(machine, promises, "lease.json", sample, counts)
    keep(f"leases_flips_{'settled' if is_settled else 'journal'}", counts, violations, campaign=campaign)
    assert violations == []


# -- the harness goes red when the protocol is broken --------------------------------------------


def test_it_goes_red_when_a_lease_is_told_before_its_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "sync", lambda self, appended: None)
    assert explored(2, Counter()) != []


def test_it_goes_red_when_a_release_forgets_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    replacement = leases._replacement

    def forgetful(lease: Lease, *, is_released: bool = False) -> Operation:
        kept = replacement(lease, is_released=is_released)
        return Operation(Kind.UNLINK, kept.path) if is_released else kept

    monkeypatch.setattr(leases, "_replacement", forgetful)
    assert any("was the last" in text for text in explored(1, Counter()))


def test_it_goes_red_without_the_sum_of_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse_unchecked(line: bytes) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(line.rpartition(b',"sum":"')[0] + b"}")
        return fields

    machine, promises = changed_hands(is_settled=True)
    monkeypatch.setattr(leases, "parse_line", parse_unchecked)
    assert any(problems_with_flips(machine, promises, "lease.json", None, Counter()))
