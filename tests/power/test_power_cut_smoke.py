"""A few power cuts in every run where root may mount; elsewhere the harness says why it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

CUTS = 8
STORE = "ext4 files"
ROOT = Path(__file__).parent.parent.parent


def test_a_few_power_cuts_lose_nothing_and_without_syncs_they_do(tmp_path: Path) -> None:
    evidence = tmp_path / "power_cut.json"
    asked = ["--cuts", str(CUTS), "--store", STORE, "--evidence", str(evidence)]
    is_root = os.geteuid() == 0
    # Other tests make mount namespaces: a copy of our mount in one would outlive the power cut.
    alone = ["unshare", "--mount"] if is_root else []
    command = [*alone, sys.executable, "-m", "tests.power", *asked]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if not is_root:
        assert done.returncode == 2 and "root" in done.stderr
        return
    assert done.returncode == 0, done.stderr + done.stdout
    [told] = json.loads(evidence.read_text())
    assert told["violations"] == [] and told["control"] == "red"
    assert (told["store"], told["cases"]) == (STORE, CUTS)
