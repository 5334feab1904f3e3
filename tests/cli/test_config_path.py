from __future__ import annotations

from pathlib import Path

from holdfast.cli.exits import Exit
from holdfast.config_sources import user_file
from tests.cli.conftest import Run


def test_both_files_are_told_and_whether_they_are_there(run: Run, tmp_path: Path):
    Path("holdfast.toml").touch()
    result = run("config", "path")
    _, project, user = (line.split() for line in result.out.splitlines())
    assert project == ["project", str(tmp_path / "holdfast.toml"), "yes"]
    assert user == ["user", str(tmp_path / "config" / "holdfast" / "config.toml"), "no"]


def test_one_path_alone_is_for_scripts(run: Run, tmp_path: Path):
    assert run("config", "path", "--project").out == f"{tmp_path / 'holdfast.toml'}\n"
    assert run("config", "path", "--user").out == f"{tmp_path / 'config/holdfast/config.toml'}\n"
    assert run("config", "path", "--user", "--project").exit_code == Exit.USAGE


def test_programs_are_told_the_same(run: Run, tmp_path: Path):
    [project, user] = run("config", "path", "--json").data["files"]
    assert project == {"which": "project", "path": str(tmp_path / "holdfast.toml"), "exists": False}
    assert user["which"] == "user"


def test_another_file_takes_the_place_of_the_projects(run: Run, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    assert run("config", "path", "--project").out == f"{tmp_path / 'other.toml'}\n"


def test_the_users_own_file_is_where_the_specification_says():
    own = Path("holdfast", "config.toml")
    assert user_file({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x") / own
    assert user_file({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}) == Path("/h/.config") / own
    assert user_file({"HOME": "/h"}) == Path("/h/.config") / own
    assert user_file({}) is None


def test_without_a_home_there_is_only_the_projects(run: Run, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert [one["which"] for one in run("config", "path", "--json").data["files"]] == ["project"]
    assert run("config", "path", "--user").exit_code == Exit.USAGE
