"""Rooms that are made late: once, also for threads that ask at once, and anew in a forked child."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.application.engine import Engine
from holdfast.application.late_rooms import LateRoom, LateRooms
from tests.application.services import make_kit

NAMES = sorted(name for name, found in vars(LateRooms).items() if isinstance(found, LateRoom))
THREADS = 8


@pytest.mark.parametrize("name", NAMES)
def test_a_room_is_made_when_first_asked_for_and_kept(name: str) -> None:
    engine = Engine(make_kit())
    assert not engine.has_made(name)
    room = getattr(engine, name)
    assert engine.has_made(name) and getattr(engine, name) is room


def test_threads_that_ask_at_once_get_the_same_rooms() -> None:
    engine, start = Engine(make_kit()), threading.Barrier(THREADS)

    def ask(first: int) -> list[object]:
        start.wait()
        # Each begins with another room, and so makes what that one needs in another order.
        return [getattr(engine, name) for name in (*NAMES[first:], *NAMES[:first])]

    with ThreadPoolExecutor(THREADS) as pool:
        asked = list(pool.map(ask, range(0, 2 * THREADS, 2)))
    assert len({id(room) for rooms in asked for room in rooms}) == len(NAMES)


def test_beginning_anew_makes_every_room_anew() -> None:
    engine = Engine(make_kit())
    before = {name: getattr(engine, name) for name in NAMES}
    engine.begin()
    assert [name for name in NAMES if engine.has_made(name)] == []
    assert [name for name in NAMES if getattr(engine, name) is before[name]] == []


def test_a_child_that_is_forked_while_a_room_is_made_can_make_it_too() -> None:
    inside, out = threading.Event(), threading.Event()

    class House(LateRooms):
        @LateRoom
        def slow(self) -> str:
            inside.set()
            out.wait()
            return f"made by {os.getpid()}"

    house = House()
    thread = threading.Thread(target=lambda: house.slow)
    thread.start()
    inside.wait()
    threading.Timer(0.05, out.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if "slow" in vars(house) and House().slow == f"made by {os.getpid()}" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
