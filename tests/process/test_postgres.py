"""Clients, connections and servers that die: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.adapters.postgres import server
from tests.process.evidence import keep
from tests.process.running import run
from tests.sizes import daily

PATIENT = {"reconnect_seconds": "100", "lock_seconds": "10"}
CROWDS_MAX = 10
#: Commits that record only, and commits that tell of it, all in one session.
PLAIN: dict[str, str] = {}
TELLING = {"session": "s-1"}
PLANS = [PLAIN, TELLING]


def suffix(plan: dict[str, str]) -> str:
    return ", with audit entries" if plan else ""


def administrator() -> str:
    known = server.parameters()
    return f"postgresql://{known['user']}@/{known['dbname']}?host={known['host']}"


def told(part: str, result: dict[str, Any], *names: str, kills: str = "kills") -> None:
    """Keep what was counted, the first of it under a name of its own."""
    killed = {kills: result["kills"]} if result["kills"] else {}
    counts = {name: result[name] for name in ("acknowledged", *names)}
    keep("postgres", part, {**killed, **counts}, result["violations"])


@pytest.mark.parametrize("plan", PLANS)
def test_a_killed_client_loses_nothing_acknowledged(plan: dict[str, str], campaign: bool) -> None:
    rounds = 400 if campaign else 5
    options = {"url": server.url(**PATIENT), "administrator": administrator()}
    result = run("postgres_children", "client", seed=7, rounds=rounds, plan=plan, **options)
    told(f"kill -9 of the client{suffix(plan)}", result)
    assert result["violations"] == []
    assert result["kills"] == rounds and result["acknowledged"] > rounds


def test_the_harness_notices_a_client_that_acknowledges_before_it_commits() -> None:
    """The negative control."""
    result = run(
        "postgres_children",
        "client",
        seed=7,
        rounds=60,
        url=server.url(**PATIENT),
        administrator=administrator(),
        plan={"acknowledges_first": True},
    )
    keep("postgres", "control: acknowledges first", {"found": len(result["violations"])}, [])
    assert any("acknowledged and lost" in violation for violation in result["violations"])


@pytest.mark.parametrize(
    ("victim", "plan"),
    daily(product(["postmaster", "backend"], PLANS), [("postmaster", PLAIN), ("backend", TELLING)]),
)
def test_a_killed_server_loses_nothing_acknowledged_and_doubles_nothing(
    victim: str, plan: dict[str, str], campaign: bool
) -> None:
    kills = 150 if campaign else 3
    folder = str(server.embedded_folder())
    result = run("postgres_children", "server", seed=7, kills=kills, victim=victim, folder=folder, plan=plan)
    told(f"kill -9 of the server: {victim}{suffix(plan)}", result)
    assert result["violations"] == []
    assert result["kills"] >= kills / 2 and result["acknowledged"] > 4 * kills


def cut(plan: dict[str, Any], *, step: int) -> Any:
    """Commit once for every `step`th byte, with the wire cut there."""
    url = server.url()
    schema = url.partition("schema=")[2].partition("&")[0]
    host = server.parameters()["host"]
    return run("postgres_children", "cuts", host=host, schema=schema, step=step, plan=plan)


@pytest.mark.parametrize("plan", daily(PLANS, [TELLING]))
def test_a_wire_cut_at_any_byte_loses_nothing_and_doubles_nothing(
    plan: dict[str, str], campaign: bool
) -> None:
    result = cut(plan, step=1 if campaign else 53)
    told(f"cut connections{suffix(plan)}", result)
    assert result["violations"] == []
    assert result["kills"] > 50


@pytest.mark.parametrize(
    ("lie", "plan"),
    daily(
        product(["ignores_rows", "believes_in_luck"], PLANS),
        [("ignores_rows", TELLING), ("believes_in_luck", PLAIN)],
    ),
)
def test_the_harness_notices_who_does_not_look_what_became_of_a_commit(
    lie: str, plan: dict[str, str]
) -> None:
    """The negative controls: to commit anew on top of what had landed, and to believe that everything had."""
    result = cut({**plan, lie: True}, step=300)
    found = len(result["violations"])
    keep("postgres", f"control: {lie}{suffix(plan)}", {"kills": result["kills"], "found": found}, [])
    assert any("twice" in text or "lost" in text for text in result["violations"])


def test_the_harness_notices_who_believes_that_a_terminated_commit_had_landed() -> None:
    """The negative control."""
    url = server.url(application_name="lucky", **PATIENT)
    result = run(
        "postgres_children",
        "terminate",
        seed=7,
        kills=500,
        url=url,
        application="lucky",
        administrator=administrator(),
        plan={"believes_in_luck": True},
    )
    keep("postgres", "control: lucky", {"kills": result["kills"], "found": len(result["violations"])}, [])
    assert result["violations"] != []


@pytest.mark.parametrize("plan", PLANS)
def test_connections_that_are_terminated_lose_nothing_and_double_nothing(
    plan: dict[str, str], campaign: bool
) -> None:
    kills = 4000 if campaign else 20
    url = server.url(application_name="terminated", **PATIENT)
    result = run(
        "postgres_children",
        "terminate",
        seed=7,
        kills=kills,
        url=url,
        application="terminated",
        administrator=administrator(),
        plan=plan,
    )
    told(f"terminated connections{suffix(plan)}", result)
    assert result["violations"] == []
    assert result["kills"] >= kills and result["acknowledged"] > kills


@pytest.mark.parametrize(("workflows", "plan"), daily(product([1, 100], PLANS), [(1, TELLING), (100, PLAIN)]))
def test_eight_processes_lose_nothing_and_use_no_sequence_twice(
    workflows: int, plan: dict[str, str], campaign: bool
) -> None:
    result = run(
        "postgres_children",
        "crowd",
        url=server.url(**PATIENT),
        administrator=administrator(),
        processes=8,
        workflows=[f"WF-{n}" for n in range(workflows)],
        group=8,
        commits=(400 if campaign else 12) if workflows == 1 else (2000 if campaign else 30),
        **plan,
    )
    told(f"8 processes, {workflows} workflows{suffix(plan)}", result, "conflicts", "deadlocks")
    assert result["violations"] == []
    assert result["deadlocks"] == 0


def test_processes_that_have_a_workflow_each_share_a_session_without_a_conflict(campaign: bool) -> None:
    result = run(
        "postgres_children",
        "crowd",
        url=server.url(**PATIENT),
        administrator=administrator(),
        processes=2,
        has_workflows_of_its_own=True,
        workflows=["WF-0"],
        group=1,
        commits=2000 if campaign else 40,
        session="s-1",
    )
    told("2 processes, one session", result, "conflicts", "deadlocks")
    assert result["violations"] == []
    assert result["conflicts"] == 0 and result["deadlocks"] == 0


def test_the_harness_notices_who_believes_that_a_trail_stands_still() -> None:
    """The negative control. Whether two meet is chance, so a crowd may be asked more than once."""
    for _ in range(CROWDS_MAX):
        result = run(
            "postgres_children",
            "crowd",
            url=server.url(**PATIENT),
            administrator=administrator(),
            processes=2,
            has_workflows_of_its_own=True,
            workflows=["WF-0"],
            group=1,
            commits=50,
            session="s-1",
            believes_itself=True,
        )
        if result["violations"]:
            break
    keep("postgres", "control: believes itself", {"found": len(result["violations"])}, [])
    assert any("not what follows" in violation for violation in result["violations"])


def test_without_keys_the_harness_goes_red() -> None:
    """The negative control. Whether two meet is chance, so a crowd may be asked more than once."""
    for _ in range(CROWDS_MAX):
        result = run(
            "postgres_children",
            "crowd",
            url=server.url(**PATIENT),
            administrator=administrator(),
            processes=8,
            workflows=["WF-0"],
            group=1,
            commits=12,
            without_keys=True,
        )
        if result["violations"]:
            break
    keep("postgres", "control: no keys", {"found": len(result["violations"])}, [])
    assert result["violations"] != []


def test_forks_while_threads_commit(campaign: bool) -> None:
    forks = 300 if campaign else 8
    result = run("postgres_children", "fork", url=server.url(**PATIENT), forks=forks)
    told("forks", result, kills="forks")
    assert result["violations"] == []


def test_a_lease_holder_that_was_stopped_writes_nothing_more(campaign: bool) -> None:
    rounds = 400 if campaign else 6
    result = run("postgres_children", "stopped", seed=7, rounds=rounds, url=server.url(**PATIENT))
    told("stopped lease holders", result, kills="stops")
    assert result["violations"] == []


def test_a_holder_that_shows_no_token_is_noticed() -> None:
    """The negative control: an expired lease fences nobody off who does not show it."""
    url = server.url(**PATIENT)
    result = run("postgres_children", "stopped", seed=7, rounds=3, url=url, shows_no_token=True)
    keep("postgres", "control: no token", {"found": len(result["violations"])}, [])
    assert any("wrote after" in violation for violation in result["violations"])
