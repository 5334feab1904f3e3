"""Processes on one SQLite file: killed, racing, forked, out of room, without rights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.sqlite.driver import through_sqlite3
from holdfast.adapters.sqlite.store import SqliteStore
from tests.adapters.sqlite.files_left_behind import commit_some, with_hot_journal, with_log
from tests.process.evidence import keep
from tests.process.running import run
from tests.process.sqlite_children import Plan, open_store
from tests.process.telling import check_trails
from tests.sizes import daily

ROLLBACK = {"driver": "sqlite3", "journal_mode": "rollback"}
WAL = {"driver": "apsw", "journal_mode": "wal"}
CAMPAIGN_FACTOR = 40

#: What the writer does that is killed.
WORK: dict[str, dict[str, Any]] = {
    "one writer": {},
    "threads, prunes, keyframes and vacuum": {"workflows": ["WF-0", "WF-1", "WF-2"], "keeps_house": True},
    "during close": {"closes": True},
}


PLANS = {"rollback through sqlite3": ROLLBACK, "wal through apsw": WAL}


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> dict[str, str]:
    return PLANS[request.param]


def label(plan: dict[str, str], what: str) -> str:
    return f"{plan['journal_mode']} through {plan['driver']}: {what}"


@pytest.mark.parametrize(
    ("work", "plan"),
    daily(product(WORK, PLANS), [*zip(WORK, [*PLANS, *PLANS], strict=False)]),
    indirect=["plan"],
)
def test_a_killed_writer_loses_nothing_acknowledged(
    work: str, plan: dict[str, str], fast_folder: Path, campaign: bool
) -> None:
    kills = 10 * (CAMPAIGN_FACTOR if campaign else 1)
    options = {"folder": str(fast_folder), "rounds": kills, "rounds_per_store": 10, "seed": 7}
    result = run("sqlite_children", "kill", plan={**plan, **WORK[work]}, **options)
    counts = {"kills": kills, "acknowledged": result["acknowledged"]}
    keep("sqlite", label(plan, f"kill, {work}"), counts, result["violations"])
    assert result["violations"] == []
    assert result["acknowledged"] > kills


def test_the_harness_notices_a_writer_that_lies(plan: dict[str, str], fast_folder: Path) -> None:
    """The negative control: acknowledging before the commit must be found out by the same loop."""
    lie = {**plan, "acknowledges_first": True}
    options = {"folder": str(fast_folder), "rounds": 60, "rounds_per_store": 10, "seed": 7}
    result = run("sqlite_children", "kill", plan=lie, **options)
    keep("sqlite", label(plan, "kill, control"), {"found": len(result["violations"])}, [])
    assert any("acknowledged and lost" in violation for violation in result["violations"])
    assert not any("ended by itself" in violation for violation in result["violations"])


@pytest.mark.parametrize("plan", daily(PLANS, ["wal through apsw"]), indirect=True)
def test_the_harness_notices_a_trail_that_is_not_told_in_the_same_commit(
    plan: dict[str, str], fast_folder: Path
) -> None:
    """The negative control of the trails: done first and told afterwards must be found out, too."""
    lie = {**plan, "tells_apart": True}
    # It ends with the first that is found; a kill seldom comes between two commits on a busy machine.
    options = {"folder": str(fast_folder), "rounds": 600, "rounds_per_store": 1, "seed": 7}
    result = run("sqlite_children", "kill", plan=lie, **options)
    keep("sqlite", label(plan, "kill, control of trails"), {"found": len(result["violations"])}, [])
    assert any("half a commit" in violation for violation in result["violations"])
    assert not any("ended by itself" in violation for violation in result["violations"])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("delete from audit where seq = 3 and session_id = 's-WF-0'", "s-WF-0: an audit entry is not what"),
        ("update audit set leaf = 99 where leaf = 5", " is not where it is said to be"),
        ("update audit set payload = null where seq = 2", "lost, or was erased and is back"),
        ("delete from audit where session_id = 's-shared'", "s-shared: half a commit"),
    ],
)
def test_the_checker_notices_damage_to_trails(damage: str, said: str, fast_folder: Path) -> None:
    store = opened(WAL, fast_folder / "store.db")
    commit_some(store, 5)
    assert check_trails(store) == []
    with store._database.transaction() as transaction:
        assert transaction.run(damage)
    assert any(said in violation for violation in check_trails(store))
    store.close()


@pytest.mark.parametrize(("processes", "threads"), [(8, 1), (4, 2)])
@pytest.mark.parametrize("shared", [True, False], ids=["one workflow", "many workflows"])
def test_writers_at_once_lose_nothing(
    processes: int, threads: int, shared: bool, plan: dict[str, str], fast_folder: Path, campaign: bool
) -> None:
    options = {"processes": processes, "threads": threads, "shared": shared}
    commits = 200 if campaign else 5
    path = str(fast_folder / "store.db")
    result = run("sqlite_children", "crowd", path=path, plan=plan, commits=commits, **options)
    what = f"{processes} processes, {threads} threads, {'one workflow' if shared else 'many'}"
    counts = {name: result[name] for name in ("acknowledged", "conflicts")}
    keep("sqlite", label(plan, what), counts, result["violations"])
    assert result["violations"] == []


def test_processes_that_create_one_store_at_once_share_it(
    plan: dict[str, str], fast_folder: Path, campaign: bool
) -> None:
    rounds = 100 if campaign else 2
    violations = run("sqlite_children", "openers", folder=str(fast_folder), rounds=rounds, plan=plan)
    keep("sqlite", label(plan, "openers"), {"rounds": rounds}, violations)
    assert violations == []


def test_of_processes_that_migrate_at_once_one_makes_each_step(
    plan: dict[str, str], fast_folder: Path
) -> None:
    path = str(fast_folder / "store.db")
    assert run("sqlite_children", "migrators", path=path, driver=plan["driver"]) == []


def test_forks_while_threads_of_the_parent_commit(
    plan: dict[str, str], fast_folder: Path, campaign: bool
) -> None:
    forks = 500 if campaign else 6
    path = str(fast_folder / "store.db")
    violations = run("sqlite_children", "forks", path=path, forks=forks, plan=plan)
    keep("sqlite", label(plan, "forks"), {"forks": forks}, violations)
    assert violations == []


def test_a_file_that_may_not_grow_is_full_and_goes_on_once_it_may(
    plan: dict[str, str], fast_folder: Path
) -> None:
    path = str(fast_folder / "store.db")
    result = run("sqlite_children", "full", path=path, limit_bytes=400_000, attempts=120, plan=plan)
    assert result["violations"] == []
    assert result["held"] > 0
    assert result["refusals"] == ["DiskFullError"]


# -- readers without rights ------------------------------------------------------------------------


@pytest.fixture
def closed_folder(fast_folder: Path) -> Iterator[Path]:
    """A folder that everybody may read and nobody may write, once a test has shut it."""
    fast_folder.chmod(0o755)
    folder = fast_folder / "closed"
    folder.mkdir()
    yield folder
    folder.chmod(0o755)


def shut(folder: Path) -> None:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)


def opened(plan: dict[str, str], path: Path) -> SqliteStore:
    return open_store(Plan(str(path), **plan))


def read_by_nobody(plan: dict[str, str], path: Path, told: dict[int, str]) -> list[str]:
    """Read everything without any right to write; answer what is wrong."""
    shut(path.parent)
    return run("sqlite_children", "as_nobody", path=str(path), plan=plan, told=told)


def test_who_may_not_write_reads_a_store_that_was_closed(plan: dict[str, str], closed_folder: Path) -> None:
    store = opened(plan, closed_folder / "store.db")
    told = commit_some(store)
    store.close()
    assert read_by_nobody(plan, closed_folder / "store.db", told) == []


def test_who_may_not_write_reads_a_store_that_is_written(plan: dict[str, str], closed_folder: Path) -> None:
    store = opened(plan, closed_folder / "store.db")
    told = commit_some(store)
    assert read_by_nobody(plan, closed_folder / "store.db", told) == []
    told.update(commit_some(store))
    assert read_by_nobody(plan, closed_folder / "store.db", told) == []
    closed_folder.chmod(0o755)
    store.close()


@pytest.mark.parametrize("with_index", [True, False], ids=["with its index", "without its index"])
def test_who_may_not_write_reads_the_log_of_a_dead_writer(
    with_index: bool, fast_folder: Path, closed_folder: Path
) -> None:
    store = opened(WAL, fast_folder / "store.db")
    told = commit_some(store)
    with_log(fast_folder / "store.db", closed_folder / "store.db", with_index=with_index)
    store.close()
    assert read_by_nobody(WAL, closed_folder / "store.db", told) == []


def test_who_may_not_write_reads_what_a_dead_writer_was_changing(
    fast_folder: Path, closed_folder: Path
) -> None:
    store = opened(ROLLBACK, fast_folder / "store.db")
    told = commit_some(store)
    store.close()
    with_hot_journal(fast_folder / "store.db", closed_folder / "store.db", through_sqlite3())
    assert read_by_nobody(ROLLBACK, closed_folder / "store.db", told) == []
