from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.forks import Fork, forks, with_forks, with_origins


def test_forks_are_told_in_their_order_with_the_point_they_began_at():
    with bootstrap.open("memory:") as service:
        service.create_checkpoint("a@home", {"n": 1})
        service.fork_workflow("a@home@1", "b")
        service.fork_workflow("b@event:1", "c")
        found = list(forks(service._engine.kit.store))
    assert found == [Fork("b", "a@home", "a@home@1"), Fork("c", "b", "b@event:1")]


def test_a_fork_is_remembered_when_its_first_checkpoint_is_gone():
    with bootstrap.open("memory:") as service:
        service.create_checkpoint("a", {"n": 1})
        service.fork_workflow("a@1", "b")
        for number in range(5):
            service.create_checkpoint("b", {"n": number})
        service.prune_checkpoints("b", 2, 0)
        assert [fork.origin for fork in forks(service._engine.kit.store)] == ["a"]


@pytest.mark.parametrize("names", [(), ("a", "b", "c")])
def test_of_what_was_copied_the_forks_are_known(names: tuple[str, ...], tmp_path: Path):
    with bootstrap.open(str(tmp_path / "one"), session="s-1") as service:
        service.create_checkpoint("a", {"n": 1})
        service.fork_workflow("a@1", "b")
        service.fork_workflow("b@1", "c")
    command = [sys.executable, "-m", "holdfast", "copy", str(tmp_path / "one"), str(tmp_path / "two"), *names]
    subprocess.run(command, check=True, capture_output=True)
    with bootstrap.open(str(tmp_path / "two"), session="s-2") as service:
        kit = service._engine.kit
        assert with_forks(kit, ["a"]) == ["a", "b", "c"]
        assert with_origins(kit, "c") == {"a", "b", "c"}
        service.subjects.declare("a", "ann")
        assert service.erasure.plan_subject("ann") == (["a", "b", "c"], [])
        assert service.erasure.subject("ann", reason="she asked").workflows == ("a", "b", "c")
        assert service.load_latest("c") is None


def test_without_a_trail_the_first_checkpoint_tells(tmp_path: Path):
    with bootstrap.open("memory:", audit=False) as service:
        service.create_checkpoint("a", {"n": 1})
        service.fork_workflow("a@1", "b")
        assert list(forks(service._engine.kit.store)) == []
        assert with_forks(service._engine.kit, ["a"]) == ["a", "b"]
        assert with_origins(service._engine.kit, "b") == {"a", "b"}
