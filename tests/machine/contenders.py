"""Eight processes compete for one workflow, and whoever holds its lease is stopped for twice as long as that.

Each takes the lease, adds to a counter a few times, reads, and lets go. What it did is told with the moment
before and after. In the end the history has to be one that a single thread could have made: each number was
given once, nobody saw less than was finished before, tokens only rise, nobody began to write once another
had a newer lease, and no chain of the trail is broken. Without a look at the tokens it must go red.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.errors import CheckpointConflictError, CheckpointError, LeaseHeldError, LeaseLostError
from tests.adapters.postgres import server
from tests.machine.apart import checked
from tests.machine.images import workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.subjects import FILES, POSTGRES
from tests.process.child import Child, Report, must_stop, start
from tests.process.leaseholder import WorkersStore

NAME = "stopped lease holders"
STORES = (FILES, "sqlite", POSTGRES)
WORKFLOW = "WF-one"
PROCESSES = 8
LEASE_SECONDS = 0.25
COMMITS_PER_LEASE = 20
#: How long who was refused lets the others work: nothing depends on it.
PAUSE_SECONDS = 0.05
#: One round: so many stops, on a store of its own.
STOPS_PER_ROUND = 10
_REFUSED = (CheckpointConflictError, LeaseHeldError, LeaseLostError)


@dataclass(frozen=True, slots=True)
class Done:
    """Something that a process did: what, the number it got, its token, and when it began and ended."""

    word: str
    sequence: int
    token: int
    began: int
    ended: int


def work(
    report: Report, stop: int, url: str, name: str, is_fenced: bool, lease_seconds: float = LEASE_SECONDS
) -> None:
    """Compete until told to stop."""
    config = Config(store=url, session=f"s-{name}", background=False, retain=False)
    store = WorkersStore(open_store(config), is_fenced=is_fenced)
    with CheckpointService(build_kit(store, config)) as service:
        while not must_stop(stop):
            try:
                _hold(service, report, name, is_fenced, lease_seconds)
            except _REFUSED:
                time.sleep(PAUSE_SECONDS)


def _hold(
    service: CheckpointService, report: Report, name: str, is_fenced: bool, lease_seconds: float
) -> None:
    began = time.monotonic_ns()
    lease = service.acquire_lease(WORKFLOW, name, ttl_seconds=lease_seconds)
    report.say("holds", "-", lease.token, f"{lease.token} {began} {time.monotonic_ns()}")
    for _ in range(COMMITS_PER_LEASE):
        began = time.monotonic_ns()
        latest = service.load_latest(WORKFLOW)
        value = latest.context["value"] if latest else 0
        report.say("read", "-", value, f"{lease.token} {began} {time.monotonic_ns()}")
        began = time.monotonic_ns()
        state = {"value": value + 1, "by": name, "token": lease.token}
        expected = {"expected_sequence": value} if is_fenced else {}
        made = service.create_checkpoint(WORKFLOW, state, **expected)
        report.say("wrote", "-", made.sequence, f"{lease.token} {began} {time.monotonic_ns()}")
    service.release_lease(lease)


def run(order: Order) -> Outcome:
    """Stop so many holders."""
    outcome = Outcome(NAME, order)
    while outcome.goes_on:
        with workshop() as folder:
            _round(outcome, url_of(order.store, folder))
    return outcome


def url_of(store: str, folder: Path) -> str:
    if store == POSTGRES:
        return server.url(lock_seconds="30")
    return f"file:{folder}/store" if store == FILES else f"sqlite:{folder}/store.db"


def _round(outcome: Outcome, url: str) -> None:
    open_store(Config(store=url)).close()
    is_fenced = not outcome.order.lies
    workers = [start(work, url, f"worker-{number}", is_fenced) for number in range(PROCESSES)]
    for _ in range(STOPS_PER_ROUND):
        _stop_one(workers)
        outcome.cases += 1
    for worker in workers:
        worker.stop()
    found = [f"a worker ended with {status}" for worker in workers if (status := worker.end())]
    judge(outcome, url, [line for worker in workers for line in worker.lines], found)


def judge(outcome: Outcome, url: str, lines: list[str], found: list[str]) -> None:
    """Hold what was told against what a single thread could have done, and against the store."""
    done = [_read(line) for line in lines]
    outcome.acknowledged += sum(one.word == "wrote" for one in done)
    wrong = [*found, *_is_no_history(done), *checked(_look, url, done)]
    outcome.blame(f"{outcome.cases} cases", wrong)


def _stop_one(workers: list[Child]) -> None:
    """Stop who took the lease last, until it is over twice; others work meanwhile."""
    for worker in workers:
        worker.read_what_is_there()
    tokens = {_last_token(worker): worker for worker in workers}
    holder = tokens[max(tokens)]
    os.kill(holder.pid, signal.SIGSTOP)
    time.sleep(2 * LEASE_SECONDS)
    os.kill(holder.pid, signal.SIGCONT)


def _last_token(worker: Child) -> int:
    return max((int(line.split()[2]) for line in worker.lines if line.startswith("holds")), default=0)


def _read(line: str) -> Done:
    word, _, number, token, began, ended = line.split()
    return Done(word, int(number), int(token), int(began), int(ended))


def _is_no_history(done: list[Done]) -> list[str]:
    """Say why no single thread could have done this."""
    wrote = sorted((one for one in done if one.word == "wrote"), key=lambda one: one.sequence)
    found = [f"{one.sequence} was given twice" for one, two in _pairs(wrote) if one.sequence == two.sequence]
    found += [
        f"token {two.token} wrote {two.sequence} after token {one.token} wrote {one.sequence}"
        for one, two in _pairs(wrote)
        if two.token < one.token
    ]
    found += [
        f"{two.sequence} was finished before {one.sequence} began"
        for one, two in _pairs(wrote)
        if two.ended < one.began
    ]
    return [*found, *_late_writes(done), *_stale_reads(done)]


def _late_writes(done: list[Done]) -> list[str]:
    """Find writes that began when somebody else had a newer lease, whether that one wrote or not."""
    leases = sorted((one.ended, one.token) for one in done if one.word == "holds")
    found, newest, at = list[str](), 0, 0
    for wrote in sorted((one for one in done if one.word == "wrote"), key=lambda one: one.began):
        while at < len(leases) and leases[at][0] < wrote.began:
            newest, at = max(newest, leases[at][1]), at + 1
        if wrote.token < newest:
            found.append(f"token {wrote.token} wrote {wrote.sequence} when token {newest} was given")
    return found


def _stale_reads(done: list[Done]) -> list[str]:
    """Find reads that saw less than was finished before they began, or what nobody had begun."""
    finished = sorted((one.ended, one.sequence) for one in done if one.word == "wrote")
    begun = {one.sequence: one.began for one in done if one.word == "wrote"}
    found, newest, at = list[str](), 0, 0
    for read in sorted((one for one in done if one.word == "read"), key=lambda one: one.began):
        while at < len(finished) and finished[at][0] < read.began:
            newest, at = max(newest, finished[at][1]), at + 1
        if read.sequence < newest:
            found.append(f"{read.sequence} was read when {newest} was finished")
        if begun.get(read.sequence, 0) > read.ended:
            found.append(f"{read.sequence} was read before it was written")
    return found


def _pairs(items: list[Done]) -> list[tuple[Done, Done]]:
    return list(itertools.pairwise(items))


def _look(url: str, done: list[Done]) -> list[str]:
    """The store holds just what was told, or was on its way; no chain of the trail is broken or forked."""
    config = Config(store=url, session="s-look", background=False, retain=False)
    told = {one.sequence: one.token for one in done if one.word == "wrote"}
    found = []
    with CheckpointService(build_kit(open_store(config), config)) as service:
        metas = service.list_checkpoints(WORKFLOW, limit=10**6)
        states: dict[int, Any] = {}
        for meta in metas:
            states[meta.id.sequence] = service.restore_checkpoint(meta.id).context
        if sorted(states) != list(range(1, len(states) + 1)):
            found.append("numbers are not dense")
        found += [f"{number} was acknowledged and is lost" for number in told if number not in states]
        found += [
            f"{number} holds {state['value']}" for number, state in states.items() if state["value"] != number
        ]
        tokens = [states[number]["token"] for number in sorted(states)]
        if tokens != sorted(tokens):
            found.append("an older token wrote after a newer one")
        found += [f"the trail: {fault}" for fault in service.audit.verify(payloads=True).faults]
        with contextlib.suppress(CheckpointError):
            service.flush()
    return found


HARNESS = Harness(NAME, STORES, run, needs_root=False)

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=40))
