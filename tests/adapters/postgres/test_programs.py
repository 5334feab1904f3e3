"""The programs of the wheel, and as whom they run."""

from __future__ import annotations

import os
import pwd

import pytest

from holdfast.adapters.postgres import programs
from holdfast.domain.errors import ConfigError, PermissionDeniedError, UnsupportedVersionError


def test_the_wheel_brings_a_server_and_its_tools():
    known = programs.installations()
    assert known
    for folder in known.values():
        assert all((folder / name).is_file() for name in ("postgres", "initdb", "pg_ctl", "pg_dump"))


def test_without_the_wheel_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(programs, "WHEEL", "a_package_that_is_not_there")
    with pytest.raises(ConfigError, match="pip install"):
        programs.installations()


def test_data_is_served_by_the_version_that_made_it(tmp_path):
    known = programs.installations()
    assert programs.choose(tmp_path) == known[max(known)]
    (tmp_path / "PG_VERSION").write_text(f"{min(known)}\n")
    assert programs.choose(tmp_path) == known[min(known)]
    (tmp_path / "PG_VERSION").write_text("9\n")
    with pytest.raises(UnsupportedVersionError, match="PostgreSQL 9"):
        programs.choose(tmp_path)


def test_a_folder_is_served_by_its_owner(tmp_path):
    user, _ = programs.owner_of(tmp_path)
    assert user == (os.geteuid() or programs.substitute(("postgres", "nobody"))[0])
    assert programs.owner_of(tmp_path / "new")[0] == user


def test_root_needs_somebody_else():
    me = pwd.getpwuid(os.getuid())
    assert programs.substitute(("nobody at all", me.pw_name)) == (me.pw_uid, me.pw_gid)
    with pytest.raises(PermissionDeniedError, match="does not run as root"):
        programs.substitute(("nobody at all",))


def test_a_program_that_may_not_be_run_is_told(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "tool").write_text("no program")
    tools = programs.Programs(tmp_path, data, os.geteuid(), os.getegid())
    with pytest.raises(PermissionDeniedError, match="cannot be run"):
        tools.run("tool")
