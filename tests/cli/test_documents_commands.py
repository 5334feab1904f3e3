"""The debug commands of the documents: by file, by UUID, by phase."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from holdfast.domain.state import WorkflowState
from tests.cli.conftest import Run


@pytest.fixture
def phases(tmp_path: Path) -> tuple[Path, list[str]]:
    """A store with one checkpoint in each of two phases; answers their UUIDs too."""
    place = tmp_path / "phases"
    with bootstrap.open(str(place)) as service:
        state = WorkflowState(phase=1, context={"n": 1})
        first = service.create_checkpoint("task", state)
        service.append_event("task", "CONTEXT_UPDATED", {"context": {"n": 2}})
        state.phase, state.context = 2, {"n": 2}
        second = service.create_checkpoint("task", state)
    return place, [first.uuid, second.uuid]


def test_a_checkpoint_file_is_validated_by_its_path(run: Run, phases: tuple[Path, list[str]]) -> None:
    [file] = phases[0].rglob("checkpoint_000001.json")
    told = run("validate", file, "--json")
    assert (told.exit_code, told.data["valid"], told.data["checkpoints"]) == (Exit.DONE, True, 1)
    file.write_bytes(file.read_bytes().replace(b'"n":1', b'"n":7'))
    spoilt = run("validate", file)
    assert spoilt.exit_code == Exit.CORRUPT and "damaged  task@1" in spoilt.out


def test_a_replay_begins_at_a_checkpoint_that_is_named_by_its_uuid(
    run: Run, phases: tuple[Path, list[str]]
) -> None:
    place, (first, second) = phases
    told = run("replay", "task", "--from", first, "--to", second, "--store", place, "--json")
    assert (told.data["from"], told.data["to"]) == ("task@1", "task@2")


def test_checkpoints_of_two_phases_are_compared(run: Run, phases: tuple[Path, list[str]]) -> None:
    out = run("diff", "task@phase:1", "task@phase:2", "--store", phases[0]).out.splitlines()
    assert out[0] == "task@1 -> task@2: 2 changes"
    assert set(out[1:]) == {"~ phase = 2, was 1", "~ context.n = 2, was 1"}
