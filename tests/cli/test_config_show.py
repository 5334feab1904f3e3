"""`holdfast config show`: every setting, where it comes from, and nothing that is secret."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from holdfast.config import Config, shown
from holdfast.config_sources import TABLES
from tests.cli.conftest import Run

PAGE = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")
FILE = """\
[checkpoint]
storage_path = ".holdfast"
retention_days = 7

[recovery]
auto_recovery = true
"""


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: re.split(r" {2,}", line)[1:] for line in text.splitlines()[1:]}


def test_each_source_is_named(run: Run, monkeypatch):
    Path("holdfast.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_STALE_SECONDS", "60")
    told = rows(run("config", "show", "--origin", "--store", "here").out)
    assert len(told) == len(fields(Config))
    assert told["store"] == ["here", "flag --store"]
    assert told["stale_seconds"] == ["60", "HOLDFAST_STALE_SECONDS"]
    assert told["retain_days"] == ["7", "holdfast.toml:3 [checkpoint] retention_days"]
    assert told["auto_recovery"] == ["true", "holdfast.toml:6 [recovery] auto_recovery"]
    assert told["limit_bytes"] == ["104857600", "default"]


def test_what_nobody_changed_can_be_left_out_and_single_settings_asked_for(run: Run):
    Path("holdfast.toml").write_text(FILE, encoding="utf-8")
    assert set(rows(run("config", "show", "--changed").out)) == {"store", "retain_days", "auto_recovery"}
    assert rows(run("config", "show", "retain_days", "mode").out) == {
        "retain_days": ["7"],
        "mode": ["default"],
    }
    wrong = run("config", "show", "retian_days")
    assert wrong.exit_code == Exit.USAGE and "Did you mean retain_days" in wrong.err


def test_programs_get_values_as_they_are(run: Run):
    Path("other.toml").write_text(FILE, encoding="utf-8")
    told = run("config", "show", "--file", "other.toml", "--origin", "--json").data["settings"]
    assert {one["name"]: one["value"] for one in told}["retain_days"] == 7
    assert {one["name"]: one["origin"] for one in told}["retain_days"] == {
        "source": "file",
        "key": "[checkpoint] retention_days",
        "place": "other.toml:3",
    }
    plain = run("config", "show", "app", "--json").data
    assert plain == {"settings": [{"name": "app", "value": None}]}


def test_no_secret_is_shown(run: Run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", "postgresql://me:hunter2@host/db")
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEY", "command:echo hunter2")
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEY_NEXT", "hunter2hunter2")
    monkeypatch.setenv("HOLDFAST_ACTOR", "ghp_0123456789abcdefghijABCDEFGHIJ012345")
    for words in (["--origin"], ["--json"]):
        out = run("config", "show", *words).out
        assert "hunter2" not in out and "0123456789abcdef" not in out
    assert "postgresql://***@host/db" in out


@pytest.mark.parametrize(
    ("text", "line"), [("[recovery]\nauto_recover = true\n", 2), ("\nmode = 3\n", 2), ("= =\n", None)]
)
def test_a_wrong_file_ends_it_with_where_it_is_wrong(run: Run, text: str, line: int | None):
    Path("holdfast.toml").write_text(text, encoding="utf-8")
    for command in (["config", "show"], ["list"]):
        refused = run(*command, "--json")
        assert refused.exit_code == Exit.USAGE
        assert refused.error["place"].startswith("holdfast.toml" if line is None else f"holdfast.toml:{line}")


def test_a_terminal_obeys_nothing_that_a_file_says(run: Run):
    Path("holdfast.toml").write_text('actor = "\\u001b[31mred"\n', encoding="utf-8")
    assert "\x1b" not in run("config", "show", "--origin").out


def test_the_page_has_every_setting_with_its_default_and_every_key():
    documented = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \| [^|]+ \|$", PAGE, flags=re.MULTILINE))
    assert documented == {item.name: shown(item.name, item.default) for item in fields(Config)}
    for table, keys in TABLES.items():
        section = PAGE.split(f"### [{table}]")[1].split("##")[0]
        found = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section, flags=re.MULTILINE)
        assert dict(found) == {name: key.setting for name, key in keys.items()}


def test_the_file_on_the_page_is_a_right_one(run: Run):
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    Path("holdfast.toml").write_text(text, encoding="utf-8")
    told = run("config", "show", "--changed", "--json").data["settings"]
    assert {one["name"] for one in told} == {key.setting for keys in TABLES.values() for key in keys.values()}
