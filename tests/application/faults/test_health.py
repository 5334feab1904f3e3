"""What is told of steps and of late writes, to whom, and that no listener can do harm."""

from __future__ import annotations

import threading
from typing import Any

from holdfast.application.faults.health import Health, Step, Tales, Written
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.ladder import Mode
from holdfast.testing import FixedClock

NOW = FixedClock().now()
DOWN = Step(Mode.FULL, Mode.EMERGENCY, NOW, "no space left", ("A", "B"), "file:/second")
UP = Step(Mode.EMERGENCY, Mode.MEMORY_ONLY, NOW, "the store can be written again", ("A",))


def test_health_says_whether_everything_acknowledged_is_durable():
    assert Health().is_durable and not Health(held_commits=1).is_durable


def test_a_step_knows_its_direction():
    assert DOWN.is_down and not UP.is_down
    assert DOWN.data() == {
        "from": "full",
        "to": "emergency",
        "reason": "no space left",
        "emergency_place": "file:/second",
    }
    assert "emergency_place" not in UP.data()


def test_a_step_is_an_event_of_each_workflow_a_log_line_and_a_call(caplog):
    recorded: list[Any] = []
    heard: list[Any] = []
    tales = Tales(lambda *told: recorded.append(told))
    tales.listeners.on_mode_change.append(heard.append)
    tales.step(DOWN)
    tales.step(UP)
    tales.tell()
    assert [told[0] for told in recorded] == ["A", "B", "A"] and heard == [DOWN, UP]
    assert "full -> emergency (no space left); what waits is kept in file:/second" in caplog.text
    tales.tell()
    assert len(heard) == 2


def test_what_was_written_late_is_told_once_for_each_workflow(caplog):
    recorded: list[Any] = []
    heard: list[Any] = []
    woken: list[int] = []
    tales = Tales(lambda *told: recorded.append(told))
    tales.on_news = lambda: woken.append(1)
    tales.listeners.on_written.append(heard.append)
    for moved in (None, (3, 4), (4, 5)):
        tales.written("WF", moved)
    tales.tell()
    assert heard == [Written("WF", 3, {3: 4, 4: 5})] and woken
    assert recorded == [("WF", "HELD_WRITTEN", {"commits": 3, "moved": {"3": 4, "4": 5}, "refused": 0})]
    assert "other numbers: {3: 4, 4: 5}" in caplog.text


def test_what_is_refused_or_lost_is_said_aloud(caplog):
    tales = Tales(lambda *told: None)
    tales.refused("WF", CheckpointWriteError("lease lost"), "file:/second", None)
    tales.refused("WF", CheckpointWriteError("lease lost"), None, OSError("full"))
    tales.end(3, "file:/second", 0, None)
    tales.end(0, None, 3, OSError("full"))
    assert caplog.text.count("kept in file:/second") == 2 and caplog.text.count("LOST") == 2
    caplog.clear()
    tales.end(0, None, 0, None)
    assert caplog.text == ""
    tales.end(2, "file:/second", 3, OSError("full"))
    assert "2 commits could not be written; they are kept" in caplog.text
    assert "3 commits could not be written and are LOST: full" in caplog.text


def test_a_listener_or_a_store_that_fails_stops_nothing(caplog):
    heard: list[Any] = []

    def record(*_):
        raise CheckpointWriteError("no room")

    def listener(step):
        raise ValueError("mine")

    tales = Tales(record)
    tales.listeners.on_mode_change.extend([listener, heard.append])
    tales.step(DOWN)
    tales.tell()
    assert heard == [DOWN] and "is not recorded" in caplog.text and "listener" in caplog.text


def test_what_comes_up_while_somebody_tells_is_told_by_that_one():
    heard: list[Any] = []
    tales = Tales(lambda *told: None)
    others: list[threading.Thread] = []

    def listen(step: Step) -> None:
        heard.append(step)
        if step is DOWN:
            tales.step(UP)
            # Does not wait for this one, and tells nothing out of order.
            others.append(threading.Thread(target=tales.tell_if_nobody_does))
            others[0].start()
            others[0].join()
            assert heard == [DOWN]

    tales.listeners.on_mode_change.append(listen)
    tales.step(DOWN)
    tales.tell()
    assert others and heard == [DOWN, UP] and not tales.is_due
