"""Help texts are part of the interface: each is kept beside the tests, and every option is documented.

`WRITE_HELP=1 pytest tests/cli/test_help.py` writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
import pytest

from holdfast.cli.group import HELP_WIDTH
from holdfast.cli.shared_options import VARIABLES, root_options
from tests.cli.conftest import COMMANDS, Run, load

HELP = Path(__file__).with_name("help")
PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SHARED = {
    "--help",
    "-h",
    *(word for option in root_options() if isinstance(option, click.Option) for word in option.opts),
}
#: What every command has that changes something.
CHANGES = {"--dry-run", "--yes", "--reason"}
#: What a command has of its own under the name of a shared option.
OWN = {"resume": {"--config"}, "run": {"--config"}}


def options(name: str) -> set[str]:
    return {word for option in load(name).params if isinstance(option, click.Option) for word in option.opts}


def section(title: str) -> str:
    """Cut one section out of the page."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section {title}"
    return found[1]


@pytest.mark.parametrize("name", ["holdfast", *COMMANDS])
def test_help_is_what_was_agreed_on(run: Run, name):
    shown = run(*([] if name == "holdfast" else name.split()), "--help").out
    kept = HELP / f"{name.replace(' ', '_')}.txt"
    if os.environ.get("WRITE_HELP"):
        kept.write_text(shown, encoding="utf-8")
    assert shown == kept.read_text(encoding="utf-8")


def test_no_help_is_left_of_a_command_that_is_gone():
    assert {path.stem.replace("_", " ") for path in HELP.glob("*.txt")} == {"holdfast", *COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_page_and_has_an_example_with_long_flags(name):
    text = (HELP / f"{name.replace(' ', '_')}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= HELP_WIDTH
    (example,) = re.findall(rf"  Example:\n    holdfast {name} (.*)\n", text)
    assert "--" in example and not re.search(r"(^| )-[a-z]\b", example)
    assert set(re.findall(r"--[a-z-]+", example)) <= options(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = section(f"holdfast {name}")
    own = options(name) - (SHARED - OWN.get(name, set())) - CHANGES
    assert {option for option in own if option not in text} == set()


def test_shared_options_and_variables_are_documented():
    text = section("Options of every command")
    assert {option for option in SHARED | CHANGES if option not in text} == set()
    for variable in ("HOLDFAST_STORE", "NO_COLOR", "FORCE_COLOR", *VARIABLES.values()):
        assert variable in text


def test_the_page_has_no_section_for_a_command_that_is_gone():
    assert set(re.findall(r"^## holdfast ([\w -]+)$", PAGE, flags=re.MULTILINE)) == set(COMMANDS)
