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
from pathlib import Path

import pytest

from holdfast.server.settings import Settings
from holdfast.server.table import OPERATIONS
from tests.browser.browsing import aside
from tests.browser.stores import hostile, small
from tests.server.served import running

#: An answer that goes on for ever is tested with a listener.
STREAMS = [one.name for one in OPERATIONS if one.is_stream]
KNOWN = {
    "run": ["kelp", "orders-17", "payment-4", "support-chat", "ledger"],
    "checkpoint": ["kelp@3", "kelp@latest", "support-chat@12", "ledger@1", "ledger@2", "orders-17@latest~1"],
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
FAST = Settings(rate=1e9, failure_rate=1e9)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["file", pytest.param("sqlite", marks=pytest.mark.campaign)])
def test_every_operation_answers_as_described_whatever_is_asked(tmp_path: Path, kind: str, campaign: bool):
    url = f"{kind}:{tmp_path}/store"
    aside(small, url, tmp_path / "keys")
    hostile(url)
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    with running(url, FAST, signing_key=str(tmp_path / "keys")) as served:
        environment = {
            **os.environ,
            "HOLDFAST_TOKEN": served.desk.doorkeeper.key,
            "HOLDFAST_KNOWN": json.dumps(KNOWN),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": str(Path(__file__).parent),
        }
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/v1/openapi.json"),
            *("--max-examples", "300" if campaign else "4", "--seed", "1", "--generation-deterministic"),
            *(
                "--phases",
                "examples,coverage,fuzzing" if campaign else "fuzzing",
                "--no-color",
                "--suppress-health-check",
                "all",
            ),
            *(word for name in STREAMS for word in ("--exclude-operation-id", name)),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
