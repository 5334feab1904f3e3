"""The commands that plans tell can be typed as they are, and mean the same."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any
from urllib.parse import quote

import pytest

from holdfast.server.equal_commands import assignment, command, option
from tests.server.acts import filled
from tests.server.served import application, caller_for


def typed(line: str, url: str, *more: str) -> Any:
    """Let a real process run a command that only tells what it would do; answer its JSON."""
    program, name, *words = shlex.split(line)
    assert program == "holdfast" and f"--store={url}" in words
    argv = [sys.executable, "-m", "holdfast", name, "--json", *more, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["WF/1", "-it's $HOME;`x`"])
def test_what_a_plan_tells_to_type_does_the_same(tmp_path, name):
    url = f"file:{tmp_path}/store"
    filled(url, 6)
    with application(url, retain=False) as (client, desk):
        call = caller_for(client, desk, "operator")
        if name != "WF/1":
            for number in range(6):
                desk.service.create_checkpoint(name, {"n": number})
        recover = call("POST", "/v1/recover/plan", json={"workflow_id": name}).json()
        policy = {"keep_last": 2, "keep_days": 0}
        prune = call("POST", "/v1/prune/plan", json={"workflow_id": name, "policy": policy}).json()
        edits = [{"op": "replace", "path": "/context/n", "value": {"it's": 'a "word"'}}]
        body = {"new_workflow_id": "WF/2", "edits": edits}
        desk.service.flush()
        fork = call("POST", f"/v1/checkpoints/{quote(f'{name}@3', safe='@')}/fork/plan", json=body).json()
    assert typed(recover["command"], url, "--plan")["checkpoint"] == recover["checkpoint"]
    [pruned] = typed(prune["command"], url, "--dry-run")["workflows"]
    assert pruned["removed"] == prune["sequences"]
    told = typed(fork["command"], url, "--dry-run")
    assert (told["forked_from"], told["set"]) == (f"{name}@3", ["/context/n"])


def test_options_are_left_out_where_they_say_nothing():
    assert option("x", None) == option("x", False) == []
    assert option("x", True) == ["--x"] and option("x", 0) == ["--x=0"]
    assert command("memory:", "show", ["a b"], option("n", 1)) == "holdfast show --n=1 --store=memory: 'a b'"
    assert assignment("/a", "é") == '--set=/a="é"'
