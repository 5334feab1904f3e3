"""The name of an owner tells whether the owner is dead; where that cannot be known, it is not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.application.recovery import owners
from holdfast.application.recovery.owners import is_dead, own_name, process_text
from holdfast.domain.ids import check_id

CHILD = "from holdfast.application.recovery.owners import own_name; print(own_name('recovery'))"


def test_this_process_is_alive() -> None:
    assert not is_dead(own_name("recovery-1a2b"))


def test_a_process_is_told_by_what_people_look_for() -> None:
    assert process_text("run-8873b915:vm:d66c7206:4026531836:12291:154576") == "pid 12291 on vm"
    assert process_text("worker-1") == process_text("a:b:c") == ""


def test_a_name_may_be_the_owner_of_a_lease() -> None:
    assert check_id("owner", own_name("recovery"))


def test_a_process_that_ended_is_dead() -> None:
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert is_dead(child.stdout.strip())


def test_a_process_that_ended_is_dead_though_its_parent_has_not_asked_about_it() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(name)


def test_a_number_that_another_process_has_now_is_no_sign_of_life() -> None:
    start, _, ticks = own_name("recovery").rpartition(":")
    assert is_dead(f"{start}:{int(ticks) + 1}")


def test_before_the_last_start_of_the_machine_everybody_died() -> None:
    parts = own_name("recovery").split(":")
    assert is_dead(":".join([*parts[:2], "0badf00d", *parts[3:]]))


@pytest.mark.parametrize("field", [1, 3], ids=["another machine", "another container"])
def test_of_others_nothing_is_known(field: int) -> None:
    parts = own_name("recovery").split(":")
    parts[field] = "4711"
    parts[4] = "999999999"
    assert not is_dead(":".join(parts))


@pytest.mark.parametrize("name", ["alice", "", "recovery:here", "worker-7:a:b:c:d:e"])
def test_a_name_of_another_form_tells_nothing(name: str) -> None:
    assert not is_dead(name)


def test_where_the_system_tells_nothing_nobody_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "_text", lambda path: "")
    monkeypatch.setattr(owners, "_room", lambda: "")
    assert not is_dead(own_name("recovery"))


def test_a_living_process_that_the_system_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_name("recovery")
    ended = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    monkeypatch.setattr(owners, "_start", lambda pid: None)
    assert not is_dead(own)
    assert is_dead(ended.stdout.strip())
