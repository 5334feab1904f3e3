import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.execution.memory_pressure import MemoryGauge, address_limit_bytes, memory_share

MIB = 1024 * 1024
NO_LIMIT_OF_VERSION_1 = 9223372036854771712


@pytest.fixture
def root(tmp_path):
    """A machine of 1000 MiB, 400 of them available, without any limit."""
    write(tmp_path / "proc/meminfo", f"MemTotal: {1000 * 1024} kB\nMemAvailable:  {400 * 1024} kB\nHuge: 0\n")
    write(tmp_path / "proc/self/cgroup", "")
    write(tmp_path / "proc/self/status", f"Name:\tpython\nVmSize:\t  {30 * 1024} kB\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def join(root: Path, *lines: str) -> None:
    write(root / "proc/self/cgroup", "".join(f"{line}\n" for line in lines))


def group_2(root: Path, name: str, limit: int | str, usage: int, inactive: int = 0) -> None:
    folder = root / "sys/fs/cgroup" / name
    write(folder / "memory.max", f"{limit}\n")
    write(folder / "memory.current", f"{usage}\n")
    write(folder / "memory.stat", f"anon 1\nfile 5\ninactive_file {inactive}\n")


def group_1(root: Path, name: str, limit: int, usage: int, inactive: int = 0) -> None:
    folder = root / "sys/fs/cgroup/memory" / name
    write(folder / "memory.limit_in_bytes", f"{limit}\n")
    write(folder / "memory.usage_in_bytes", f"{usage}\n")
    write(folder / "memory.stat", f"inactive_file 7\ntotal_inactive_file {inactive}\n")


def unlimited() -> None:
    return None


def share(root: Path) -> float | None:
    return memory_share(root, unlimited)


def test_without_limits_the_machine_counts(root):
    assert share(root) == pytest.approx(0.6)


def test_where_nothing_can_be_read_nothing_is_told(tmp_path):
    assert share(tmp_path) is None


def test_a_machine_that_does_not_say_what_is_available_tells_nothing(root):
    write(root / "proc/meminfo", "MemTotal: 1024 kB\n")
    assert share(root) is None


def test_a_limit_of_version_2_counts_before_the_machine(root):
    join(root, "0::/app")
    group_2(root, "app", 100 * MIB, 80 * MIB)
    assert share(root) == pytest.approx(0.8)


def test_cached_files_that_can_be_dropped_are_not_in_use(root):
    join(root, "0::/app")
    group_2(root, "app", 100 * MIB, 80 * MIB, inactive=30 * MIB)
    assert share(root) == pytest.approx(0.5)


def test_a_group_of_version_2_without_a_limit_leaves_the_machine(root):
    join(root, "0::/app")
    group_2(root, "app", "max", 80 * MIB)
    assert share(root) == pytest.approx(0.6)


def test_an_outer_group_binds_the_inner_one(root):
    join(root, "0::/pod/app")
    group_2(root, "pod", 100 * MIB, 95 * MIB)
    group_2(root, "pod/app", 100 * MIB, 10 * MIB)
    assert share(root) == pytest.approx(0.95)


def test_inside_a_container_the_group_is_the_mount_itself(root):
    join(root, "0::/")
    group_2(root, "", 100 * MIB, 70 * MIB)
    assert share(root) == pytest.approx(0.7)


def test_a_path_that_leads_out_of_the_container_is_not_followed(root):
    join(root, "0::/../elsewhere")
    group_2(root, "", 100 * MIB, 70 * MIB)
    group_2(root, "../elsewhere", 100 * MIB, 99 * MIB)
    assert share(root) == pytest.approx(0.7)


def test_a_limit_of_version_1_counts(root):
    join(root, "9:name=systemd:/", "4:cpu,memory:/app", "0::/")
    group_1(root, "app", 200 * MIB, 150 * MIB, inactive=50 * MIB)
    assert share(root) == pytest.approx(0.5)


def test_version_1_without_a_limit_leaves_the_machine(root):
    join(root, "4:memory:/app")
    group_1(root, "app", NO_LIMIT_OF_VERSION_1, 150 * MIB)
    assert share(root) == pytest.approx(0.6)


def test_a_limit_above_what_the_machine_has_is_none(root):
    join(root, "0::/app")
    group_2(root, "app", 2000 * MIB, 100 * MIB)
    assert share(root) == pytest.approx(0.6)


def test_of_several_limits_the_nearest_to_be_met_counts(root):
    join(root, "0::/app")
    group_2(root, "app", 100 * MIB, 20 * MIB)
    assert memory_share(root, lambda: 40 * MIB) == pytest.approx(0.75)
    assert memory_share(root, lambda: 300 * MIB) == pytest.approx(0.2)


def test_an_address_space_whose_size_is_unknown_tells_nothing(tmp_path):
    assert memory_share(tmp_path, lambda: 40 * MIB) is None


def test_more_than_everything_is_everything(root):
    join(root, "0::/app")
    group_2(root, "app", 100 * MIB, 101 * MIB)
    assert share(root) == 1.0


@pytest.mark.parametrize("broken", ["memory.max", "memory.current"])
def test_a_group_that_tells_nonsense_is_passed_over(root, broken):
    join(root, "0::/app")
    group_2(root, "app", 100 * MIB, 80 * MIB)
    write(root / "sys/fs/cgroup/app" / broken, "many\n")
    assert share(root) == pytest.approx(0.6)


@given(st.text(max_size=200))
def test_no_text_in_any_file_raises(tmp_path_factory, text):
    root = tmp_path_factory.mktemp("any")
    for name in ("proc/meminfo", "proc/self/cgroup", "proc/self/status", "sys/fs/cgroup/memory.max"):
        write(root / name, text)
    told = memory_share(root, lambda: 40 * MIB)
    assert told is None or told <= 1


def test_a_linux_machine_tells_a_share_and_others_nothing():
    told = memory_share()
    assert (told is not None and 0 < told <= 1) == sys.platform.startswith("linux")


def test_a_limit_that_a_process_was_really_given_is_seen():
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n"
        "from holdfast.execution.memory_pressure import address_limit_bytes\n"
        "print(address_limit_bytes())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=dict(os.environ)
    )
    assert int(told.stdout) == 1 << 40


def test_the_gauge_reads_anew_only_after_a_while(root):
    now = 5.0
    gauge = MemoryGauge(root, clock=lambda: now, fresh_seconds=1.0)
    first = gauge()
    write(root / "proc/meminfo", f"MemTotal: {1000 * 1024} kB\nMemAvailable: {100 * 1024} kB\n")
    write(root / "proc/self/status", "")
    now = 5.9
    assert gauge() == first
    now = 6.0
    expected = memory_share(root, address_limit_bytes)
    assert gauge() == expected != first
