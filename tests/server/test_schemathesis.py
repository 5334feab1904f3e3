"""Whatever the description allows, and what it does not, is asked of a real server: nothing surprises it.

schemathesis makes the requests from the description, and checks that no answer is a failure of ours, that
statuses, media types and bodies are as described, that what is wrong is refused, and that nobody is let in
without a token.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.bootstrap_secrets import known_secrets
from holdfast.server.desk import Desk
from holdfast.server.identity import Doorkeeper
from holdfast.server.operation import Answer, Identity
from holdfast.server.settings import Settings
from holdfast.server.table import OPERATIONS
from tests.browser.browsing import aside
from tests.browser.stores import hostile, small
from tests.server.served import Running, running

KNOWN = {
    "run": ["kelp", "orders-17", "payment-4", "support-chat", "ledger"],
    "checkpoint": [
        "vaulted@1",
        "kelp@3",
        "kelp@latest",
        "support-chat@12",
        "ledger@1",
        "ledger@2",
        "orders-17@latest~1",
    ],
    "index": ["0", "7", "40"],
}
#: No schema tells which workflows there are, or what may be done to them now; 428 is what RFC 6585 says.
CONFIG = """
[auth.openapi.bearer]
bearer = "${HOLDFAST_TOKEN}"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 410, 412, 413, 422]
[checks.missing_required_header]
expected-statuses = [400, 401, 428]
"""
#: A stream ends when all that happened so far is told: nobody waits for what comes next.
FAST = Settings(rate=1e9, failure_rate=1e9, stream_seconds=0)


#: What the broken operations below are found by.
FOUND = ("Response violates schema", "Undocumented Content-Type", "Server error", "authentication")


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["file", pytest.param("sqlite", marks=pytest.mark.campaign)])
def test_every_operation_answers_as_described_whatever_is_asked(
    tmp_path: Path, kind: str, campaign: bool, monkeypatch
):
    url = f"{kind}:{tmp_path}/store"
    aside(small, url, tmp_path / "keys")
    hostile(url)
    monkeypatch.setenv("APP_PASSWORD", "correct horse")
    with holdfast.open(url) as service:
        service.create_checkpoint("vaulted", {"password": "correct horse"})
    phases = "examples,coverage,fuzzing" if campaign else "fuzzing"
    with running(url, FAST, signing_key=str(tmp_path / "keys")) as served:
        served.desk.resolver_of = known_secrets("env:APP_PASSWORD")
        done = asked(served, tmp_path, 300 if campaign else 1, phases)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    # None is left out, the stream neither: here it ends.
    count = len(OPERATIONS)
    assert f"Selected: {count}/{count}\n" in done.stdout and f"Tested: {count}\n" in done.stdout, done.stdout


@pytest.mark.sweep
@pytest.mark.campaign
def test_operations_that_do_not_keep_to_their_description_are_found(tmp_path: Path, monkeypatch):
    def other_body(desk: Desk, asked: Any) -> dict[str, int]:
        return {"needs": 3}

    def other_type(desk: Desk, asked: Any) -> Answer:
        return Answer(b"no JSON", media_type="text/plain")

    def failing(desk: Desk, asked: Any) -> None:
        raise ValueError("a mistake")

    def let_in(self: Doorkeeper, headers: Any, cookies: Any, method: str) -> Identity:
        return self._owner

    broken = {"getOverview": other_body, "listRuns": other_type, "listQuestions": failing}
    table = [replace(one, handle=broken.get(one.name, one.handle)) for one in OPERATIONS]
    monkeypatch.setattr("holdfast.server.app.OPERATIONS", tuple(table))
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    monkeypatch.setattr(Doorkeeper, "identify", let_in)
    only = [word for name in broken for word in ("--include-operation-id", name)]
    with running(url, FAST) as served:
        done = asked(served, tmp_path, 2, "fuzzing", only)
    assert done.returncode == 1 and [name for name in FOUND if name not in done.stdout] == [], done.stdout


def asked(
    served: Running, folder: Path, examples: int, phases: str, chosen: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Let schemathesis ask a server."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    environment = {
        **os.environ,
        "HOLDFAST_TOKEN": served.desk.doorkeeper.key,
        "HOLDFAST_KNOWN": json.dumps(KNOWN),
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/v1/openapi.json"),
        *("--max-examples", str(examples), "--seed", "1", "--generation-deterministic"),
        *("--phases", phases, "--no-color", "--suppress-health-check", "all"),
        *chosen,
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
