"""`holdfast resume`: a store never names the code that goes on, and forks leave their origin alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import write_program


@pytest.fixture
def failed(run: Run, tmp_path: Path) -> str:
    """A run that failed at its second agent; answers the program."""
    program = f"{write_program(tmp_path)}:failing"
    assert run("run", program, "--id", "W", "--config", "tone=dry").exit_code == Exit.RUN_FAILED
    return program


@pytest.fixture
def done(run: Run, tmp_path: Path) -> str:
    """A run that ended; answers the program."""
    program = f"{write_program(tmp_path)}:plain"
    inputs = ("--input", "question=why", "--config", "tone=dry")
    assert run("run", program, "--id", "W", *inputs).exit_code == Exit.DONE
    return program


def test_a_run_goes_on_where_it_was(run: Run, failed: str) -> None:
    Path("mended").touch()
    result = run("resume", "W", "--app", failed)
    assert result.exit_code == Exit.DONE
    assert "agents       1 run, 1 kept" in result.out


def test_the_program_is_named_by_a_person_and_what_the_store_remembers_is_a_hint(
    run: Run, failed: str
) -> None:
    result = run("resume", "W")
    assert result.exit_code == Exit.USAGE
    assert f"It was begun with {failed}: give `--app {failed}`" in result.err
    assert "in holdfast.toml" in result.err


def test_the_environment_or_the_configuration_may_name_the_program(
    run: Run, failed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("holdfast.toml").write_text(f"[run]\nprogram = {failed!r}\n")
    assert run("resume", "W").exit_code == Exit.RUN_FAILED
    monkeypatch.setenv("HOLDFAST_PROGRAM", "nothing_there:team")
    assert "there is no module nothing_there" in run("resume", "W").err
    Path("mended").touch()
    assert run("resume", "W", "--app", failed).exit_code == Exit.DONE


def test_a_workflow_that_no_run_began_has_no_program(run: Run, store: Path) -> None:
    result = run("resume", "WF-1", "--store", store)
    assert result.exit_code == Exit.USAGE
    assert "Give --app module:workflow" in result.err


def test_what_the_agents_were_told_is_told_again(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:panel"
    assert run("run", program, "--id", "W", "--no-wait", "--config", "tone=dry").exit_code == Exit.WAITING
    again = run("resume", "W", "--app", program, "--no-wait", "--config", "depth=2")
    assert again.exit_code == Exit.WAITING
    config = run("show", "W@1", "--state=/execution_config/config", "--json").data["state"]
    assert config == {"tone": "dry", "program": program}


def test_a_checkpoint_is_gone_on_with_under_another_name(run: Run, done: str) -> None:
    result = run("resume", "W@2", "--as", "W-b", "--app", done, "--json")
    assert result.exit_code == Exit.DONE
    assert (result.data["workflow_id"], result.data["ran"], result.data["kept"]) == ("W-b", 4, 1)
    assert result.data["value"] == {"found": ["kelp why", "tide why", "reef why"], "tone": "dry"}
    assert run("list", "W", "--json").data["total"] == 4


def test_an_agent_and_all_after_it_are_run_again_with_other_inputs(run: Run, done: str) -> None:
    words = ("--from", "research", "--as", "W-c", "--input", "question=how", "--app", done)
    result = run("resume", "W", *words, "--json")
    assert result.exit_code == Exit.DONE
    assert (result.data["ran"], result.data["kept"]) == (4, 1)
    assert result.data["value"]["found"] == ["kelp how", "tide how", "reef how"]


def test_an_agent_that_is_not_there_is_told(run: Run, done: str) -> None:
    result = run("resume", "W", "--from", "resarch", "--as", "W-c", "--app", done)
    assert result.exit_code == Exit.USAGE
    assert "there is no such agent" in result.err and "research" in result.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("W", "--from", "plan"), "--from needs --as"),
        (("W@2", "--from", "plan", "--as", "X"), "not with a checkpoint"),
        (("W@2",), "give --as"),
        (("W@event:3", "--as", "X"), "holdfast fork"),
        (("W", "--as", "X"), "from where"),
        (("W", "--input", "a=1"), "--input needs --from"),
        (("W", "--events"), "--events needs --json"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(run: Run, args: tuple[str, ...], said: str) -> None:
    result = run("resume", *args)
    assert result.exit_code == Exit.USAGE and said in result.err


def test_a_name_that_is_nearly_right_gets_a_suggestion(run: Run, store: Path) -> None:
    result = run("resume", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean" in result.err
    assert run("resume", "WF-1@9", "--as", "X", "--store", store).exit_code == Exit.NOT_FOUND


def test_an_id_may_hold_what_marks_a_checkpoint(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:panel"
    assert run("run", program, "--id", "ada@home", "--no-wait").exit_code == Exit.WAITING
    assert run("approve", "ada@home").exit_code == Exit.DONE
    assert run("resume", "ada@home", "--app", program).exit_code == Exit.DONE


def test_a_store_that_is_not_there_is_not_made(run: Run) -> None:
    assert run("resume", "W", "--app", "a:b").exit_code == Exit.NO_STORE
    assert not Path(".holdfast").exists()
