"""The append lock: whatever goes wrong on the way in or inside, the next one gets in."""

from __future__ import annotations

import threading

import pytest

from holdfast.adapters.filesystem.append_lock import AppendLock


class Steps:
    """Stands for the journal and what is done around it; one step may fail."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.taken: list[str] = []

    def _take(self, name: str) -> None:
        self.taken.append(name)
        if name == self.failing:
            raise OSError(name)

    def check_open(self) -> None:
        self._take("check")

    def follow(self) -> None:
        self._take("follow")

    def lock(self) -> None:
        self._take("lock")

    def unlock(self) -> None:
        self._take("unlock")


def made(steps: Steps) -> tuple[AppendLock, threading.RLock]:
    mutex = threading.RLock()
    return AppendLock(mutex, steps, steps.check_open, steps.follow), mutex


def is_free(mutex: threading.RLock) -> bool:
    """Tell whether another thread would get in."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(mutex.acquire(blocking=False)))
    thread.start()
    thread.join()
    return found[0]


def test_what_others_committed_is_known_before_anybody_is_inside():
    steps = Steps()
    lock, mutex = made(steps)
    with lock:
        assert steps.taken == ["check", "lock", "follow"]
        assert not is_free(mutex)
    assert steps.taken[-1] == "unlock" and is_free(mutex)


@pytest.mark.parametrize(
    ("failing", "taken"),
    [
        ("check", ["check"]),
        ("lock", ["check", "lock"]),
        ("follow", ["check", "lock", "follow", "unlock"]),
        ("unlock", ["check", "lock", "follow", "unlock"]),
    ],
)
def test_a_failure_on_the_way_leaves_nothing_locked(failing, taken):
    steps = Steps(failing)
    lock, mutex = made(steps)
    with pytest.raises(OSError, match=failing), lock:
        pass
    assert steps.taken == taken and is_free(mutex)


def test_a_failure_inside_leaves_nothing_locked():
    steps = Steps()
    lock, mutex = made(steps)
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    assert steps.taken[-1] == "unlock" and is_free(mutex)
