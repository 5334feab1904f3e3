from __future__ import annotations

import fcntl
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.cli import machine

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
MOUNTS = [("/", "ext4"), ("/data", "nfs4"), ("/data/fast", "xfs"), ("/tmp", "ext4"), ("/tmp", "tmpfs")]


def disk(free_bytes: int, free_files: int = 10_000_000) -> SimpleNamespace:
    return SimpleNamespace(
        f_bavail=free_bytes // 4096, f_frsize=4096, f_blocks=10**9, f_files=10**7, f_favail=free_files
    )


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (disk(10**12), machine.OK),
        (disk(machine.FREE_BYTES_WARN - 4096), machine.WARN),
        (disk(machine.FREE_BYTES_FAIL - 4096), machine.FAIL),
        (disk(10**12, free_files=3), machine.WARN),
    ],
)
def test_a_disk_that_fills_up_is_told(monkeypatch, found, status):
    monkeypatch.setattr(os, "statvfs", lambda folder: found)
    check = machine.disk_space("/")
    assert check.status == status
    assert bool(check.hint) == (status != machine.OK)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/x", "ext4"),
        ("/data", "nfs4"),
        ("/data/fast/x", "xfs"),
        ("/database", "ext4"),
        ("/tmp/x", "tmpfs"),
    ],
)
def test_a_folder_is_on_the_nearest_mount_above(folder, kind):
    assert machine.file_system_kind(folder, MOUNTS) == kind
    assert machine.file_system_kind(folder, []) == ""


@pytest.mark.parametrize(
    ("kind", "status"), [("ext4", "ok"), ("nfs4", "warn"), ("tmpfs", "warn"), ("fuse.sshfs", "warn")]
)
def test_file_systems_that_promise_less_are_told(monkeypatch, tmp_path: Path, kind, status):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"device / {kind} rw 0 0\nbroken line\ndevice /with\\040space ext4 rw 0 0\n")
    monkeypatch.setattr(machine, "_MOUNTS", str(mounts))
    assert machine.file_system("/").status == status
    assert ("/with space", "ext4") in machine._mounts()


def test_a_system_without_a_list_of_mounts_is_no_failure(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(machine, "_MOUNTS", str(tmp_path / "none"))
    assert machine.file_system("/").status == machine.INFO


def test_a_sync_is_measured(tmp_path: Path):
    check = machine.sync_time(str(tmp_path))
    assert check.status in (machine.OK, machine.WARN)
    assert "fdatasync of 4 KB takes" in check.detail
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("seconds", "status"), [(1e-6, machine.WARN), (1e-3, machine.OK)])
def test_a_sync_that_takes_no_time_is_told(monkeypatch, tmp_path: Path, seconds, status):
    monkeypatch.setattr(machine, "_median_sync_seconds", lambda folder: seconds)
    assert machine.sync_time(str(tmp_path)).status == status


def test_where_nothing_can_be_written_a_sync_is_not_measured(tmp_path: Path):
    assert machine.sync_time(str(tmp_path / "none")).status == machine.INFO


def test_files_that_others_may_read_are_told(tmp_path: Path):
    place = tmp_path / "store"
    place.mkdir(mode=0o700)
    (place / "a").touch(mode=0o600)
    assert machine.permissions(str(place)).status == machine.OK
    (place / "a").chmod(0o644)
    check = machine.permissions(str(place))
    assert (check.status, check.detail) == (machine.WARN, "writable; 1 of 2 open to others")


def test_the_clock_is_compared_with_the_newest_checkpoint():
    assert machine.clock(NOW, None).status == machine.OK
    assert machine.clock(NOW, NOW + timedelta(seconds=1)).status == machine.OK
    ahead = machine.clock(NOW, NOW + timedelta(minutes=1))
    assert ahead.status == machine.WARN and "60 s ahead" in ahead.detail
    assert machine.clock(datetime(1970, 1, 1, tzinfo=UTC), None).status == machine.FAIL


def test_who_holds_a_lock_is_told_without_taking_it(tmp_path: Path):
    path = tmp_path / "users"
    with path.open("w") as file:
        assert machine.lock_holders(str(path)) == []
        fcntl.flock(file, fcntl.LOCK_SH)
        assert machine.lock_holders(str(path)) == [os.getpid()]
    assert machine.lock_holders(str(tmp_path / "none")) == []


def test_what_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(machine, "_DISTRIBUTIONS", ("click", "no-such-distribution"))
    assert "click" in machine.versions() and "no-such-distribution" not in machine.versions()
