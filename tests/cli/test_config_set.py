from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, without_privileges

FILE = Path("holdfast.toml")


def value_of(run: Run, name: str) -> object:
    return run("config", "show", name, "--json").data["settings"][0]["value"]


def test_a_setting_is_written_and_holds(run: Run):
    result = run("config", "set", "retain_days", "7")
    assert (result.exit_code, result.out) == (Exit.DONE, "+retain_days = 7\n")
    assert "Changed" in result.err and FILE.read_text() == "retain_days = 7\n"
    assert value_of(run, "retain_days") == 7


@pytest.mark.parametrize(
    ("name", "text", "written"),
    [
        ("store", "on", '"on"'),
        ("retain", "off", "false"),
        ("stale_seconds", "2.5", "2.5"),
        ("checkpoint.compression", "no", "false"),
        ("checkpoint.compression", "gzip", '"gzip"'),
        ("checkpoint.checkpoint_size_limit_mb", "5", "5"),
        ("app", "a:b", '"a:b"'),
    ],
)
def test_values_are_written_as_people_write_them(run: Run, name, text, written):
    assert run("config", "set", name, text).exit_code == Exit.DONE
    assert f"{name.rpartition('.')[2]} = {written}\n" in FILE.read_text()


def test_a_setting_that_stands_in_a_table_is_changed_there(run: Run):
    FILE.write_text("[checkpoint]\nretention_days = 30 # a month\n")
    assert run("config", "set", "retain_days", "7").exit_code == Exit.DONE
    assert FILE.read_text() == "[checkpoint]\nretention_days = 7 # a month\n"


def test_a_setting_is_taken_out(run: Run):
    FILE.write_text('mode = "performance"\n# rest\n')
    result = run("config", "set", "mode", "--unset")
    assert (result.exit_code, result.out) == (Exit.DONE, '-mode = "performance"\n')
    assert FILE.read_text() == "# rest\n"
    result = run("config", "set", "mode", "--unset")
    assert result.exit_code == Exit.DONE and "says so already" in result.err


def test_the_users_own_file_holds_where_no_other_says_anything(run: Run, tmp_path: Path):
    assert run("config", "set", "retain_days", "7", "--user").exit_code == Exit.DONE
    own = tmp_path / "config" / "holdfast" / "config.toml"
    assert own.read_text() == "retain_days = 7\n" and not FILE.exists()
    assert value_of(run, "retain_days") == 7
    run("config", "set", "retain_days", "8", "--project")
    assert value_of(run, "retain_days") == 8
    origin = run("config", "show", "retain_days", "--origin").out
    assert "holdfast.toml:1 retain_days" in origin


def test_a_mistake_in_the_users_own_file_is_told_with_its_place(run: Run, tmp_path: Path):
    own = tmp_path / "config" / "holdfast" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text("retian = true\n")
    result = run("config", "show")
    assert result.exit_code == Exit.USAGE and f"{own}:1" in result.err


def test_a_value_that_a_setting_cannot_have_is_refused_and_nothing_is_changed(run: Run):
    FILE.write_text("retain_days = 3\n")
    for name, text in (
        ("retain_days", "soon"),
        ("retain_days", "-1"),
        ("mode", "quick"),
        ("retain", "maybe"),
        ("compression_level", "99"),
        ("store", ""),
        ("checkpoint.checkpoint_size_limit_mb", "much"),
    ):
        result = run("config", "set", "--json", name, "--", text)
        assert (result.exit_code, result.error["code"]) == (Exit.USAGE, "invalid_config")
        assert str(FILE.resolve()) in result.error["place"] or not result.error["place"]
        assert FILE.read_text() == "retain_days = 3\n"


def test_names_that_are_nearly_right_get_a_suggestion(run: Run):
    assert "Did you mean retain_days" in run("config", "set", "retain_day", "3").err
    assert (
        "Did you mean checkpoint.retention_days" in run("config", "set", "checkpoint.retention_day", "3").err
    )
    assert run("config", "set", "zzz", "3").exit_code == Exit.USAGE and not FILE.exists()


def test_wrong_usage_is_told(run: Run):
    for args in (("mode",), ("mode", "default", "--unset"), ("mode", "default", "--user", "--project")):
        assert run("config", "set", *args).exit_code == Exit.USAGE


def test_a_dry_run_shows_and_changes_nothing(run: Run):
    FILE.write_text("retain_days = 3\n")
    result = run("config", "set", "retain_days", "7", "--dry-run")
    assert result.out == "-retain_days = 3\n+retain_days = 7\n" and "Nothing was changed" in result.err
    data = run("config", "set", "retain_days", "7", "--dry-run", "--json").data
    assert data == {"file": str(FILE.resolve()), "name": "retain_days", "changed": True, "dry_run": True}
    assert FILE.read_text() == "retain_days = 3\n"


def test_the_file_keeps_its_mode_and_a_link_stays_a_link(run: Run):
    Path("real.toml").write_text("retain_days = 3\n")
    os.chmod("real.toml", 0o640)
    FILE.symlink_to("real.toml")
    assert run("config", "set", "retain_days", "7").exit_code == Exit.DONE
    assert FILE.is_symlink() and Path("real.toml").read_text() == "retain_days = 7\n"
    assert stat.S_IMODE(os.stat("real.toml").st_mode) == 0o640


def test_a_file_that_cannot_be_read_or_written_is_told(run: Run, public_folder: Path, monkeypatch):
    FILE.write_bytes(b"\xff\xfe")
    assert run("config", "set", "retain_days", "7").exit_code == Exit.USAGE
    monkeypatch.chdir(public_folder)
    with without_privileges():
        result = run("config", "set", "retain_days", "7")
    assert result.exit_code == Exit.UNEXPECTED and "refused" in result.err
    assert list(public_folder.iterdir()) == []


def test_without_a_home_there_is_no_file_of_ones_own(run: Run, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert run("config", "set", "retain_days", "7", "--user").exit_code == Exit.USAGE


def test_nothing_is_left_of_a_change_that_fails(run: Run, monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    FILE.write_text("retain_days = 3\n")
    monkeypatch.setattr(os, "replace", refuse)
    assert run("config", "set", "retain_days", "7").exit_code == Exit.UNEXPECTED
    assert [path.name for path in Path().iterdir() if path.suffix == ".toml"] == ["holdfast.toml"]
    assert FILE.read_text() == "retain_days = 3\n"
