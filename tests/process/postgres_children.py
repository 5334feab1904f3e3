"""Writers on PostgreSQL whose clients, connections and servers are killed.

`python -m tests.process.postgres_children NAME JSON` runs one loop in a process without threads, so that it
may fork, and prints its result as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg

from holdfast.adapters.postgres import attempt, committer, statement, telling, turns
from holdfast.adapters.postgres.connections import ConnectionLost
from holdfast.adapters.postgres.embedded import EmbeddedServer
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.domain.errors import CheckpointConflictError, CheckpointError, LeaseLostError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head, Record
from tests.adapters.postgres.proxy import Cut, Proxy
from tests.process import commits, trails
from tests.process.backends import until_gone
from tests.process.child import Child, Report, must_stop, start
from tests.process.commits import Acknowledged, check_store

#: What every statement of a commit here holds, and of an entry that belongs to no workflow.
MARK, MARK_ALONE = b"agent_complete", trails.ALONE.encode()


@dataclass(slots=True)
class Result:
    kills: int = 0
    acknowledged: int = 0
    conflicts: int = 0
    violations: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


# -- writers ---------------------------------------------------------------------------------------


def numbered(head: Head, workflow_id: str, number: int, writer: str, session_id: str = "") -> Commit:
    """The next commit of a workflow, with a number that no other commit of the writer has."""
    commit = commits.make_commit(head, workflow_id, pad_bytes=number * 37 % 3000, writer=writer)
    assert commit.record is not None
    entry = replace(commit.record.entry, label=f"{writer}:{number}")
    audit = (trails.told(session_id, workflow_id, f"{writer}:{number}"),) if session_id else ()
    return replace(commit, record=Record(entry, commit.record.data), audit=audit)


def tell_alone(store: PostgresStore, session_id: str, writer: str, number: int) -> None:
    """Tell something that belongs to no workflow: nothing but the entry itself shows whether it was kept."""
    entry = trails.told_alone(session_id, writer, number)
    [outcome] = store.commit([Commit(NO_WORKFLOW, Head(), audit=(entry,))])
    if outcome is not None:
        raise outcome


def write(store: PostgresStore, workflow_id: str, options: dict[str, Any], report: Report, stop: int) -> None:
    """Commit until told to stop; each is acknowledged, however often connection or server die."""
    head, number = store.head(workflow_id), 0
    while number < options.get("commits_max", 1_000_000) and not must_stop(stop):
        number += 1
        commit = numbered(head, workflow_id, number, options["writer"], options.get("session", ""))
        if options.get("acknowledges_first"):
            report.say("ack", workflow_id, commit.head.sequence, commit.head.checksum)
        head = _insist(store, commit, number, options)
        if not options.get("acknowledges_first"):
            report.say("ack", workflow_id, head.sequence, head.checksum)
        if "session" in options:
            tell_alone(store, options["session"], f"{workflow_id}:{options['writer']}", number)


def _insist(store: PostgresStore, commit: Commit, number: int, options: dict[str, Any]) -> Head:
    """Commit one; a conflict is a lie where nobody else writes, unless the harness must be lied to."""
    while True:
        [outcome] = store.commit([commit])
        if outcome is None:
            return commit.head
        if not (options.get("ignores_rows") and isinstance(outcome, CheckpointConflictError)):
            raise outcome
        head, session_id = store.head(commit.workflow_id), options.get("session", "")
        commit = numbered(head, commit.workflow_id, number, options["writer"], session_id)


def lie(options: dict[str, Any]) -> None:
    """Break the promise on purpose, for negative controls."""
    if options.get("ignores_rows"):
        committer.Committer._has_landed = lambda *_: False  # type: ignore[method-assign]
        turns.Turn._has_landed = lambda *_: False  # type: ignore[method-assign]
    if options.get("believes_in_luck"):
        send, sent = attempt.Attempt.send, committer.Committer._sent

        def hope(self: Any, units: Any) -> list[Any]:
            try:
                with self._connections.connection() as connection:
                    return list(statement.send(connection, units))
            except ConnectionLost:
                return []
            except CheckpointError:
                return send(self, units)

        def hope_too(self: Any, units: Any, chained: Any) -> list[Any]:
            try:
                return sent(self, units, chained)
            except ConnectionLost:
                return []

        attempt.Attempt.send = hope  # type: ignore[method-assign]
        committer.Committer._sent = hope_too  # type: ignore[method-assign]


def write_in_threads(report: Report, stop: int, options: dict[str, Any]) -> None:
    """A process that writes to workflows of its own, a thread for each."""
    lie(options)
    store = PostgresStore.open(options["url"])
    problems: list[BaseException] = []

    def work(workflow_id: str) -> None:
        try:
            write(store, workflow_id, options, report, stop)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(name,)) for name in options["workflows"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    if problems:
        raise problems[0]


def examine(url: str, told: Acknowledged) -> list[str]:
    """Everything acknowledged is there, once, and nothing else is but what was on its way."""
    try:
        store = PostgresStore.open(url)
        found = check_store(store, told)
        for workflow_id in store.workflows():
            labels = [entry.label for entry in store.entries(workflow_id) if entry.label]
            found += [
                f"{workflow_id}: {label} is there twice" for label in labels if labels.count(label) > 1
            ][:3]
        found += trails.check(store)
        store.close()
    except CheckpointError as error:
        return [f"the store cannot be used: {error}"]
    return found


def _note(told: Acknowledged, children: list[Child]) -> int:
    """Take in what children reported until now; answer how many lines that were."""
    lines = 0
    for child in children:
        child.read_what_is_there()
        for line in child.lines:
            told.note(line)
        lines += len(child.lines)
        child.lines.clear()
    return lines


def _finish(told: Acknowledged, children: list[Child], *, expects: int = 0, words: int = 0) -> None:
    """Wait for children to end, after telling so many threads of each to stop."""
    for child in children:
        with suppress(BrokenPipeError):
            for _ in range(words):
                child.stop()
    for child in children:
        status = child.end()
        if status != expects:
            told.violations.append(f"a writer ended with {status}")
    for child in children:
        for line in child.lines:
            told.note(line)


def _plan(options: dict[str, Any], writer: str, *workflows: str) -> dict[str, Any]:
    return {**options["plan"], "url": options["url"], "writer": writer, "workflows": workflows}


# -- kill -9 of the client ---------------------------------------------------------------------------


def client(options: dict[str, Any]) -> dict[str, Any]:
    """Start a writer, kill it at some moment, look; the store lives through all rounds."""
    rng = random.Random(options["seed"])
    result, told = Result(), Acknowledged()
    mortal = {**options, "url": f"{options['url']}&application_name=mortal"}
    for number in range(options["rounds"]):
        child = start(write_in_threads, _plan(mortal, f"w{number}", "WF-0", "WF-1"))
        for _ in range(rng.randrange(1, 30)):
            if child.read_line() is None:
                break
        for _ in range(rng.randrange(20_000)):
            pass  # Not to wait for anything: only so that death comes at any instant.
        child.kill()
        _finish(told, [child], expects=-signal.SIGKILL)
        until_gone(options["administrator"], "mortal")
        result.kills += 1
        result.violations += [f"round {number}: {text}" for text in examine(options["url"], told)]
        if result.violations:
            break
    result.acknowledged = told.count
    return result.as_json()


# -- kill -9 of the server, and of its processes -----------------------------------------------------


def server(options: dict[str, Any]) -> dict[str, Any]:
    """Kill the server again and again while processes write; whoever finds it dead starts it."""
    rng = random.Random(options["seed"])
    result, told = Result(), Acknowledged()
    url = f"postgresql+embedded:{options['folder']}?reconnect_seconds=100&lock_seconds=10"
    mine = EmbeddedServer(options["folder"])
    mine.enter(create=False)
    PostgresStore.open(url).close()
    children = [start(write_in_threads, _plan({**options, "url": url}, f"p{n}", f"WF-{n}")) for n in range(2)]
    for _ in range(options["kills"]):
        _wait_for_news(told, children, rng.randrange(4, 40))
        if _kill_one_of(mine, rng, options["victim"]):
            result.kills += 1
    _wait_for_news(told, children, 10)
    _finish(told, children, words=1)
    result.violations = examine(url, told)
    result.acknowledged = told.count
    mine.leave()
    return result.as_json()


def _wait_for_news(told: Acknowledged, children: list[Child], count: int) -> bool:
    """Return when so many commits were acknowledged, by all of them together; False if one has ended."""
    seen = 0
    while seen < count:
        for child in children:
            line = child.read_line()
            if line is None:
                return False
        seen += _note(told, children)
    return True


def _kill_one_of(mine: EmbeddedServer, rng: random.Random, victim: str) -> bool:
    """Kill the postmaster, or one process of a client's, which takes all the others with it."""
    pid = mine.pid()
    if pid is None:
        return False
    if victim == "backend":
        try:
            with psycopg.connect(**mine.parameters(), autocommit=True) as administrator:
                found = administrator.execute(
                    "select pid from pg_stat_activity where backend_type = 'client backend' "
                    "and pid <> pg_backend_pid() order by pid"
                ).fetchall()
        except psycopg.OperationalError:
            return False
        if not found:
            return False
        pid = rng.choice(found)[0]
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


# -- connections that are terminated -----------------------------------------------------------------


def terminate(options: dict[str, Any]) -> dict[str, Any]:
    """End connections of writers from the server's side, at random, while they commit."""
    rng = random.Random(options["seed"])
    result, told = Result(), Acknowledged()
    PostgresStore.open(options["url"]).close()
    children = [start(write_in_threads, _plan(options, f"p{n}", f"WF-{n}a", f"WF-{n}b")) for n in range(2)]
    query = "select pid from pg_stat_activity where application_name = %s and pid <> pg_backend_pid()"
    with psycopg.connect(options["administrator"], autocommit=True) as administrator:
        while result.kills < options["kills"] and _wait_for_news(told, children, rng.randrange(1, 12)):
            found = [pid for (pid,) in administrator.execute(query, [options["application"]]).fetchall()]
            for pid in rng.sample(found, min(len(found), 2)):
                [(ended,)] = administrator.execute("select pg_terminate_backend(%s)", [pid]).fetchall()
                result.kills += bool(ended)
    _finish(told, children, words=2)
    result.violations = examine(options["url"], told)
    result.acknowledged = told.count
    return result.as_json()


# -- connections that are cut, at every byte ---------------------------------------------------------


def cuts(options: dict[str, Any]) -> dict[str, Any]:
    """Cut the wire at chosen bytes of a commit's statement, and of its answer."""
    lie(options["plan"])
    result, told = Result(), Acknowledged()
    wire = Proxy(options["host"])
    query = f"schema={options['schema']}&reconnect_seconds=100&lock_seconds=10"
    direct = f"postgresql://postgres@/postgres?host={options['host']}&{query}"
    store = PostgresStore.open(f"postgresql://postgres@/postgres?host={wire.host}&{query}")
    plan = {**options["plan"], "writer": "cut"}
    session_id = plan.get("session", "")
    try:
        for number, cut in enumerate(_all_cuts(wire, store, options["step"], session_id), start=1):
            head = store.head("WF-0")
            wire.arm(cut)
            head = _insist(store, numbered(head, "WF-0", number, "cut", session_id), number, plan)
            told.note(f"ack WF-0 {head.sequence} {head.checksum}")
            result.kills += wire.was_cut.is_set()
        if session_id:
            result.kills += _cut_entries(wire, store, options["step"], session_id)
    except CheckpointError as error:
        told.violations.append(f"a commit failed: {error}")
    store.close()
    wire.close()
    result.violations = examine(direct, told)
    result.acknowledged = told.count
    return result.as_json()


def _all_cuts(wire: Proxy, store: PostgresStore, step: int, session_id: str) -> Iterator[Cut]:
    """Measure a commit's statement and answer, then name every `step`th byte of both."""
    for number in range(1, 4):
        # The first ones are longer: they teach the server the statement.
        wire.arm(Cut(MARK))
        _insist(store, numbered(store.head("WF-m"), "WF-m", number, "m", session_id), number, {})
    yield from _cuts_of(wire, MARK, step)


def _cut_entries(wire: Proxy, store: PostgresStore, step: int, session_id: str) -> int:
    """Do the same to entries of no workflow; answer how often the wire was cut."""
    kills = 0
    for number in range(1, 4):
        wire.arm(Cut(MARK_ALONE))
        tell_alone(store, session_id, "cut", number)
    for number, cut in enumerate(_cuts_of(wire, MARK_ALONE, step), start=4):
        wire.arm(cut)
        tell_alone(store, session_id, "cut", number)
        kills += wire.was_cut.is_set()
    return kills


def _cuts_of(wire: Proxy, mark: bytes, step: int) -> Iterator[Cut]:
    asked, answered = wire.asked_bytes, wire.answered_bytes
    for asked_bytes in range(0, asked + 1, step):
        yield Cut(mark, asked_bytes=asked_bytes)
    for answered_bytes in range(0, answered, step):
        yield Cut(mark, answered_bytes=answered_bytes)


# -- many at once ------------------------------------------------------------------------------------


def _compete(report: Report, _: int, number: int, options: dict[str, Any]) -> None:
    """One process of the crowd: so many commits, to one workflow or to many, with others in the way."""
    rng = random.Random(number)
    store = PostgresStore.open(options["url"])
    if options.get("has_workflows_of_its_own"):
        options = {**options, "workflows": [f"{name}-{number}" for name in options["workflows"]]}
    done, drafted = 0, itertools.count(1)
    while done < options["commits"]:
        group = rng.sample(options["workflows"], min(len(options["workflows"]), options["group"]))
        drafts = [
            numbered(store.head(name), name, next(drafted), f"{number}", options.get("session", ""))
            for name in group
        ]
        for draft, outcome in zip(drafts, store.commit(drafts), strict=True):
            if isinstance(outcome, CheckpointConflictError):
                report.say("conflict", draft.workflow_id, 0)
            elif outcome is not None:
                raise outcome
            else:
                report.say("ack", draft.workflow_id, draft.head.sequence, draft.head.checksum)
                done += 1
    store.close()


def crowd(options: dict[str, Any]) -> dict[str, Any]:
    """Processes that commit to the same workflows at once, in groups of any order."""
    result, told = Result(), Acknowledged()
    store = PostgresStore.open(options["url"])
    if options.get("without_keys"):
        # The negative control: nothing is left to race for.
        with store._database.transaction() as transaction:
            transaction.run("alter table events drop constraint events_pkey")
            transaction.run("alter table checkpoints drop constraint checkpoints_pkey")
    if options.get("believes_itself"):
        # The negative control: a trail is taken to stand where it was last seen.
        telling._STALE = "select from tip where false"
        with store._database.transaction() as transaction:
            transaction.run("alter table audit drop constraint audit_pkey")
    store.close()
    before = _deadlocks(options)
    children = [start(_compete, number, options) for number in range(options["processes"])]
    _finish(told, children)
    lines = [line for child in children for line in child.lines]
    result.conflicts = sum(line.startswith("conflict") for line in lines)
    result.acknowledged = told.count
    result.violations = [*told.violations, *examine(options["url"], told)][:20]
    return {**result.as_json(), "deadlocks": _deadlocks(options) - before}


def _deadlocks(options: dict[str, Any]) -> int:
    """How often the server had to end a circle of clients that waited for each other."""
    query = "select deadlocks from pg_stat_database where datname = current_database()"
    with psycopg.connect(options["administrator"]) as administrator:
        [(count,)] = administrator.execute(query).fetchall()
    return int(count)


# -- forks -------------------------------------------------------------------------------------------


def fork(options: dict[str, Any]) -> dict[str, Any]:
    """Fork again and again while threads of the parent commit; every child commits through the same store."""
    result, told = Result(), Acknowledged()
    store = PostgresStore.open(options["url"])
    stop = threading.Event()
    reading, writing = os.pipe()

    def commit_on(workflow_id: str) -> None:
        head, number = store.head(workflow_id), 0
        while not stop.is_set():
            number += 1
            head = _insist(store, numbered(head, workflow_id, number, "parent"), number, {})
            Report(writing).say("ack", workflow_id, head.sequence, head.checksum)

    threads = [threading.Thread(target=commit_on, args=(f"WF-p{n}",)) for n in range(2)]
    drain = threading.Thread(target=_drain, args=(reading, told))
    for thread in (drain, *threads):
        thread.start()
    lines: list[str] = []
    for number in range(options["forks"]):
        child = start(partial(_commit_three, closes=number % 2 == 0), store, f"WF-c{number}")
        if child.end() != 0:
            told.violations.append(f"child {number} failed")
        lines += child.lines
        result.kills += 1
    stop.set()
    for thread in threads:
        thread.join()
    os.close(writing)
    drain.join()
    for line in lines:
        told.note(line)
    store.close()
    result.violations = [*told.violations, *examine(options["url"], told)]
    if len(lines) != 3 * options["forks"]:
        result.violations.append(f"{len(lines)} commits by {options['forks']} children")
    result.acknowledged = told.count
    return result.as_json()


def _commit_three(report: Report, _: int, store: PostgresStore, workflow_id: str, *, closes: bool) -> None:
    head = store.head(workflow_id)
    for number in range(3):
        head = _insist(store, numbered(head, workflow_id, number, "child"), number, {})
        report.say("ack", workflow_id, head.sequence, head.checksum)
    if closes:
        store.close()


def _drain(handle: int, told: Acknowledged) -> None:
    with os.fdopen(handle) as lines:
        for line in lines:
            told.note(line)


# -- a lease holder that is stopped ------------------------------------------------------------------


def _hold(report: Report, stop: int, options: dict[str, Any]) -> None:
    """Write under a lease until it is lost."""
    store = PostgresStore.open(options["url"])
    lease = store.acquire("WF-0", f"holder {os.getpid()}", 0)
    head, number = store.head("WF-0"), 0
    while not must_stop(stop):
        number += 1
        token = 0 if options.get("shows_no_token") else lease.token
        commit = replace(numbered(head, "WF-0", number, f"h{os.getpid()}"), token=token)
        [outcome] = store.commit([commit])
        if isinstance(outcome, LeaseLostError):
            report.say("lost", "WF-0", lease.token)
            break
        if outcome is not None:
            raise outcome
        head = commit.head
        report.say("ack", "WF-0", head.sequence, head.checksum)
    store.close()


def stopped(options: dict[str, Any]) -> dict[str, Any]:
    """Stop a lease holder at some moment, take over, let it go on: it writes nothing more."""
    rng = random.Random(options["seed"])
    result, told = Result(), Acknowledged()
    store = PostgresStore.open(options["url"])
    for _ in range(options["rounds"]):
        child = start(_hold, options)
        for _ in range(rng.randrange(2, 12)):
            child.read_line()
        for _ in range(rng.randrange(20_000)):
            pass
        os.kill(child.pid, signal.SIGSTOP)
        result.kills += 1
        lease = store.acquire("WF-0", "parent", 0)
        head = store.head("WF-0")
        os.kill(child.pid, signal.SIGCONT)
        if options.get("shows_no_token"):
            # Lines of before the stop may still wait in the pipe: only the store tells that it went on.
            while store.head("WF-0") == head:
                child.read_line()
            child.stop()
        _finish(told, [child])
        if not any(line.startswith("lost") for line in child.lines):
            result.violations.append("the holder was not told that it lost its lease")
        if store.head("WF-0") != head:
            result.violations.append("a holder wrote after its lease was taken over")
        commit = replace(commits.make_commit(head, "WF-0", writer="parent"), token=lease.token)
        if store.commit([commit]) != [None]:
            result.violations.append("the new owner cannot write")
        if result.violations:
            break
    store.close()
    result.violations += examine(options["url"], told)
    result.acknowledged = told.count
    return result.as_json()


LOOPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "client": client,
    "server": server,
    "terminate": terminate,
    "cuts": cuts,
    "crowd": crowd,
    "fork": fork,
    "stopped": stopped,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
