"""A forked child lets go of what it inherited, and of nothing that was given up before."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.adapters.filesystem import inherited
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.staging import Staging, sweep_staged


class Held:
    """Counts how often it lets go."""

    count = 0

    def let_go(self) -> None:
        self.count += 1


def in_a_child(first: Held, second: Held) -> tuple[int, int]:
    """Answer how often each let go in a forked child."""
    child = os.fork()
    if not child:
        os._exit(first.count * 10 + second.count)
    return divmod(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 10)


def test_what_is_held_at_a_fork_is_let_go_of_in_the_child() -> None:
    held, dropped = Held(), Held()
    for one in (held, dropped):
        inherited.hold(one)
    inherited.drop(dropped)
    assert in_a_child(held, dropped) == (1, 0)
    assert held.count == 0
    inherited.drop(held)


def test_a_child_does_not_keep_what_its_dead_parent_staged(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    disk = Disk(str(tmp_path))
    parent = Staging(disk)
    parent.add(1, "blobs/aa/file", b"data")
    (wait, go), (is_there, there) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        os.write(there, b"1")
        os.read(wait, 1)
        os._exit(0)
    os.read(is_there, 1)
    parent.let_go()
    assert sweep_staged(disk) == 4
    os.close(go)
    os.waitpid(child, 0)
    for handle in (wait, is_there, there):
        os.close(handle)
