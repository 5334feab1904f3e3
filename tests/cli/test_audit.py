from __future__ import annotations

import click
import pytest

from holdfast.cli.audit import AUDIT_COMMANDS, command
from tests.cli.conftest import Run


def test_the_commands_are_told_with_their_summaries(run: Run):
    shown = run("audit", "--help").out
    assert all(name in shown and summary in shown for name, (_, summary) in AUDIT_COMMANDS.items())


@pytest.mark.parametrize("name", AUDIT_COMMANDS)
def test_each_is_loaded_by_its_name(name: str):
    found = command.get_command(click.Context(command), name)
    assert found is not None and found.name == name
