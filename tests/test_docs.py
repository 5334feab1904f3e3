"""The documentation says what the code does: samples are compared, snippets are run.

`HOLDFAST_UPDATE_DOCS=1` writes the samples anew instead of comparing them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import CheckpointService, CheckpointType, Config, WorkflowState
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.bootstrap import build_kit
from holdfast.testing import FixedClock, SequentialIds

ROOT = Path(__file__).parent.parent
FORMAT = ROOT / "docs" / "format.md"
SAMPLE = re.compile(r"(<!-- file: (?P<name>\S+) -->\n```\w*\n)(?P<body>.*?)(```\n)", re.DOTALL)
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(
    r"(<!-- output: holdfast demo -->\n```console\n\$ holdfast demo\n)(?P<body>.*?)(```\n)", re.DOTALL
)
#: What needs a framework is run where that is: by the tests in tests/integrations.
PAGES = sorted(
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if page.parent.name != "integrations"
)


@pytest.fixture(scope="module")
def sample_store(tmp_path_factory):
    """The store that the format page shows."""
    root = tmp_path_factory.mktemp("sample")
    clock = FixedClock(datetime(2026, 1, 11, 14, 30, tzinfo=UTC))
    store = FilesystemStore.open(str(root), background=False, clock=clock)
    kit = build_kit(store, Config(background=False), clock=clock, ids=SequentialIds())
    with CheckpointService(kit) as service:
        state = WorkflowState(
            workflow_id="WF-2026-001",
            session_id="s-1",
            current_step=1,
            total_steps=3,
            phase=1,
            messages=[{"role": "user", "content": "Compare the three offers."}],
            metadata={"project_id": "PROJ-002", "due": datetime(2026, 2, 1, tzinfo=UTC)},
        )
        service.create_checkpoint("WF-2026-001", state, type=CheckpointType.WORKFLOW_START)
        service.record_decision(
            "WF-2026-001",
            "ask two researchers",
            agent_id="planner",
            rationale="the offers differ in kind",
            confidence=0.9,
        )
        state.messages.append({"role": "assistant", "content": "Offer B is cheapest."})
        state.current_step = 2
        service.acquire_lease("WF-2026-001", "worker-1 on host-a")
        service.create_checkpoint(
            "WF-2026-001", state, type=CheckpointType.AGENT_COMPLETE, stage_id="research", agent_id="worker-1"
        )
    return root


def test_the_format_page_shows_what_the_code_writes(sample_store):
    page = FORMAT.read_text(encoding="utf-8")

    def written(match: re.Match[str]) -> str:
        (found,) = sample_store.rglob(match["name"])
        return match[1] + found.read_text(encoding="utf-8") + match[4]

    assert len(SAMPLE.findall(page)) == 6
    true_page = SAMPLE.sub(written, page)
    if os.environ.get("HOLDFAST_UPDATE_DOCS") == "1":
        FORMAT.write_text(true_page, encoding="utf-8")
    assert FORMAT.read_text(encoding="utf-8") == true_page


def test_sha256sum_checks_a_store_without_us(sample_store):
    (sums,) = sample_store.rglob("SHA256SUMS")
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.name], cwd=sums.parent, check=True)


def test_the_first_screen_is_what_the_demo_prints():
    command = [sys.executable, "-m", "holdfast", "demo"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    shown = OUTPUT.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None and shown["body"] == printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_runs(page, tmp_path):
    code = "\n".join(SNIPPET.findall(page.read_text(encoding="utf-8")))
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True)


def test_every_page_about_a_framework_has_a_test_that_runs_its_sample():
    tests = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "integrations").glob("test_*.py")
    )
    pages = {page.stem for page in (ROOT / "docs" / "integrations").glob("*.md")}
    assert pages and [name for name in sorted(pages) if f'sample("{name}")' not in tests] == []
