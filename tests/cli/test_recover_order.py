"""What does not go together is refused before a store is opened."""

from __future__ import annotations

import pytest

from holdfast.cli.exits import Exit
from holdfast.cli.recover_order import Order
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    "args",
    [
        ("--fork", "X", "--fresh"),
        ("--fork", "X", "--mode", "full"),
        ("--fork", "X", "--take-over"),
        ("--fork", "X", "--no-checkpoint"),
        ("--skip-agent", "a", "--to", "2"),
        ("--no-resume", "--handler", "go_on"),
        ("--to", "2", "--fresh"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(run: Run, args: tuple[str, ...]) -> None:
    result = run("recover", "W", "--store", "nowhere", *args)
    assert result.exit_code == Exit.USAGE and result.out == ""


@pytest.mark.parametrize("args", [("--fork", "X"), ("--skip-agent", "a"), ("--exec", "true")])
def test_it_means_nothing_without_a_workflow(run: Run, args: tuple[str, ...]) -> None:
    result = run("recover", *args)
    assert result.exit_code == Exit.USAGE and "name the WORKFLOW" in result.err


def test_a_target_is_a_point_in_time() -> None:
    assert Order(target=3).where("W") == ("W", "point_in_time", 3)
    assert Order().where("W") == ("W", "latest", None)
