import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import ConfigError
from holdfast.execution.adaptive import AdaptiveInterval, AdaptiveSettings
from holdfast.execution.triggers import BY_STRENGTH, Moment, Trigger, Triggers, TriggerWatch, agent_finished

SWITCHES = [field.name for field in fields(Triggers) if isinstance(field.default, bool)]
NOTHING = dict.fromkeys(SWITCHES, False) | {"confidence_threshold": None, "memory_pressure": None}
TOLD = [Trigger(name) for name in SWITCHES if name != "adaptive"]
confidences = st.floats(0, 1)


def only(**wanted) -> Triggers:
    return Triggers(**{**NOTHING, **wanted})


class World:
    """A watch, with the time and the memory that it sees."""

    def __init__(self, triggers: Triggers, adaptive: AdaptiveInterval | None = None, **more) -> None:
        self.now = 1000.0
        self.share: float | None = 0.1
        self.asked = 0
        self.watch = TriggerWatch(triggers, lambda: self.now, self._gauge, adaptive, **more)

    def _gauge(self) -> float | None:
        self.asked += 1
        return self.share

    def finish(
        self, agent: str = "a", confidence: float | None = None, *, after: float = 0.0
    ) -> Trigger | None:
        self.now += after
        return self.watch.due(agent_finished(agent, confidence))


def test_every_trigger_has_its_strength():
    assert sorted(BY_STRENGTH) == sorted(Trigger)


@pytest.mark.parametrize("trigger", TOLD)
def test_what_is_told_fires_where_it_is_switched_on(trigger):
    assert World(only(**{trigger.value: True})).watch.due(Moment(trigger)) is trigger


@pytest.mark.parametrize("trigger", TOLD)
def test_what_is_told_does_not_fire_where_it_is_switched_off(trigger):
    assert World(Triggers(**{trigger.value: False})).watch.due(Moment(trigger)) is None


def test_by_default_everything_fires_but_single_agents_and_time():
    watch = World(Triggers()).watch
    silent = {trigger for trigger in TOLD if watch.due(Moment(trigger)) is None}
    assert silent == {Trigger.SPECIALIST_FINISHED}


@pytest.mark.parametrize("trigger", sorted(set(Trigger) - set(TOLD)))
def test_what_the_watch_finds_by_itself_cannot_be_told(trigger):
    with pytest.raises(ConfigError, match=f"{trigger} is found by the watch itself: Moment. Tell one of"):
        Moment(trigger)


def test_confidence_crosses_in_both_directions_and_not_by_staying():
    world = World(only(confidence_threshold=0.75))
    answers = [world.finish("a", confidence) for confidence in (0.9, 0.8, 0.7, 0.6, 0.75, 0.74)]
    fired = Trigger.CONFIDENCE_THRESHOLD_CROSSED
    assert answers == [None, None, fired, None, fired, fired]


def test_confidences_of_different_subjects_are_not_compared():
    world = World(only(confidence_threshold=0.75))
    assert world.finish("a", 0.9) is None
    assert world.finish("b", 0.5) is None
    assert world.watch.due(Moment(Trigger.PHASE_COMPLETED, confidence=0.6)) is None
    assert world.finish("a", 0.5) is Trigger.CONFIDENCE_THRESHOLD_CROSSED


def test_a_confidence_that_was_not_told_changes_nothing():
    world = World(only(confidence_threshold=0.75))
    answers = [world.finish("a", confidence) for confidence in (0.9, None, 0.5)]
    assert answers == [None, None, Trigger.CONFIDENCE_THRESHOLD_CROSSED]


def test_confidences_of_an_earlier_process_count():
    world = World(only(confidence_threshold=0.75), confidences={"a": 0.9})
    assert world.finish("a", 0.5) is Trigger.CONFIDENCE_THRESHOLD_CROSSED


@given(st.lists(st.tuples(st.sampled_from("ab"), confidences), max_size=30), st.floats(0.01, 1))
def test_crossings_alternate_between_down_and_up_for_each_subject(told, threshold):
    world = World(only(confidence_threshold=threshold))
    sides: dict[str, bool] = {}
    for agent, confidence in told:
        high = confidence >= threshold
        crossed = world.finish(agent, confidence) is Trigger.CONFIDENCE_THRESHOLD_CROSSED
        assert crossed == (sides.get(agent, high) != high)
        sides[agent] = high


def test_memory_pressure_fires_once_and_again_only_after_it_has_clearly_fallen():
    world = World(only(memory_pressure=0.9))
    answers = []
    for world.share in (0.5, 0.9, 0.95, 0.88, 0.92, 0.85, 0.89, 0.9):
        answers.append(world.finish())
    fired = Trigger.MEMORY_PRESSURE_HIGH
    assert answers == [None, fired, None, None, None, None, None, fired]


@given(st.lists(st.floats(0, 1), max_size=40), st.floats(0.05, 1))
def test_between_two_fires_of_memory_pressure_it_was_clearly_below(shares, limit):
    world = World(only(memory_pressure=limit))
    lowest = 0.0
    for world.share in shares:
        lowest = min(lowest, world.share)
        if world.finish() is Trigger.MEMORY_PRESSURE_HIGH:
            assert world.share >= limit and lowest < limit * 0.95
            lowest = 1.0


def test_memory_that_nobody_can_tell_never_fires():
    world = World(only(memory_pressure=0.9))
    world.share = None
    assert world.finish() is None


def test_memory_is_not_asked_about_where_it_does_not_count():
    world = World(only())
    world.finish()
    assert world.asked == 0


def test_an_interval_fires_when_an_agent_finishes_after_it():
    world = World(only(interval_seconds=60))
    assert world.finish(after=59) is None
    assert world.finish(after=1) is Trigger.INTERVAL


def test_time_alone_fires_only_where_an_agent_finishes():
    world = World(only(interval_seconds=60, adaptive=True))
    world.now += 1e6
    for trigger in TOLD:
        if trigger is not Trigger.SPECIALIST_FINISHED:
            assert world.watch.due(Moment(trigger)) is None


def test_time_counts_from_the_end_of_the_last_checkpoint_whatever_caused_it():
    world = World(only(interval_seconds=60))
    world.now += 50
    world.watch.checkpointed(2.0)
    assert world.finish(after=59) is None
    assert world.finish(after=1) is Trigger.INTERVAL


def test_neighbours_who_finish_while_a_checkpoint_is_written_do_not_ask_for_another():
    world = World(only(interval_seconds=60))
    assert world.finish("a", after=60) is Trigger.INTERVAL
    assert world.finish("b", after=1) is None


def test_a_checkpoint_that_could_not_be_made_is_due_again_an_interval_later():
    world = World(only(interval_seconds=60))
    assert world.finish(after=60) is Trigger.INTERVAL
    assert world.finish(after=60) is Trigger.INTERVAL


def test_adaptive_waits_as_long_as_was_learnt():
    settings = AdaptiveSettings(prior_mtbf_seconds=1e9, min_seconds=30, max_seconds=40)
    world = World(only(adaptive=True), AdaptiveInterval(settings))
    world.watch.checkpointed(100.0)
    assert world.finish(after=39.9) is None
    assert world.finish(after=0.2) is Trigger.ADAPTIVE


def test_cheaper_checkpoints_and_more_failures_make_adaptive_fire_sooner():
    def waits(cost: float, failures: int) -> int:
        world = World(only(adaptive=True))
        world.watch.checkpointed(cost)
        for _ in range(failures):
            world.watch.failed()
        return next(n for n in range(1, 10_000) if world.finish(after=1))

    assert waits(0.01, 0) < waits(1.0, 0)
    assert waits(1.0, 10) < waits(1.0, 0)


def test_what_was_learnt_counts_the_time_up_to_now_once():
    world = World(only(adaptive=True))
    world.finish(after=0.5)
    world.watch.checkpointed(0.25)
    world.now += 10
    world.watch.failed(ran_seconds=3.0)
    expected = {"failures": 1, "ran_seconds": 13.5, "cost_seconds": 0.25}
    assert world.watch.learnt() == expected
    assert world.watch.learnt() == expected


def test_what_was_learnt_is_counted_even_while_adaptive_is_switched_off():
    world = World(only())
    world.now += 7
    assert world.watch.learnt()["ran_seconds"] == 7.0


@given(
    moment=st.builds(Moment, st.sampled_from(TOLD), st.just("a"), st.none() | confidences),
    triggers=st.builds(
        Triggers,
        **dict.fromkeys(SWITCHES, st.booleans()),
        confidence_threshold=st.none() | st.floats(0.01, 1),
        memory_pressure=st.none() | st.floats(0.01, 1),
        interval_seconds=st.none() | st.floats(1, 1e4),
    ),
    share=st.none() | st.floats(0, 1),
    waited=st.floats(0, 1e5),
)
def test_the_strongest_of_all_reasons_is_answered(moment, triggers, share, waited):
    def answer(chosen: Triggers) -> Trigger | None:
        world = World(chosen, confidences={"a": 0.5})
        world.share, world.now = share, world.now + waited
        return world.watch.due(moment)

    plain = triggers.as_plain()
    alone = [answer(only(**{name: value})) for name, value in plain.items() if value]
    reasons = [reason for reason in alone if reason is not None]
    assert answer(triggers) is min(reasons, key=BY_STRENGTH.index, default=None)


def test_a_weaker_reason_is_remembered_while_a_stronger_one_is_answered():
    world = World(Triggers(), confidences={"a": 0.9})
    world.share = 0.95
    error = Moment(Trigger.ERROR_ENCOUNTERED, "a", 0.5)
    assert world.watch.due(error) is Trigger.ERROR_ENCOUNTERED
    assert world.finish("a", 0.5) is None


def in_threads(count: int, deed: Callable[[int], object]) -> None:
    start = threading.Barrier(count)

    def wait_and_do(number: int) -> None:
        start.wait()
        deed(number)

    threads = [threading.Thread(target=wait_and_do, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_many_threads_one_is_told_of_what_happened_once():
    world = World(only(memory_pressure=0.9, interval_seconds=60))
    world.share, world.now = 0.95, world.now + 60
    answers: list[Trigger | None] = []
    in_threads(8, lambda number: answers.extend(world.finish(f"agent-{number}") for _ in range(200)))
    # Both reasons held at once, so the first to ask took both, with the stronger name.
    assert [answer for answer in answers if answer] == [Trigger.MEMORY_PRESSURE_HIGH]
    assert len(answers) == 1600


def test_no_two_threads_are_ever_inside_at_once():
    inside, met = threading.Lock(), []

    def clock() -> float:
        if not inside.acquire(blocking=False):
            met.append(threading.current_thread())
            return 0.0
        # Gives up the processor, so that whoever could come in does.
        time.sleep(0)
        inside.release()
        return 0.0

    watch = TriggerWatch(only(adaptive=True), clock, lambda: None)
    deeds: list[Callable[[], object]] = [
        lambda: watch.due(agent_finished("a")),
        lambda: watch.checkpointed(0.1),
        watch.failed,
        watch.learnt,
    ]
    in_threads(8, lambda number: [deeds[number % 4]() for _ in range(200)])
    assert met == []


@given(st.builds(Triggers, **dict.fromkeys(SWITCHES, st.booleans()), interval_seconds=st.floats(1, 1e6)))
def test_settings_survive_being_stored_as_json(triggers):
    assert Triggers.from_plain(json.loads(json.dumps(triggers.as_plain()))) == triggers


def test_stored_settings_of_an_older_or_a_later_version_are_read():
    assert Triggers.from_plain({"specialist_finished": True, "moon_full": True}) == Triggers(
        specialist_finished=True
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("confidence_threshold", 1.1),
        ("confidence_threshold", 0.0),
        ("confidence_threshold", "high"),
        ("confidence_threshold", True),
        ("memory_pressure", 0),
        ("memory_pressure", -0.5),
        ("memory_pressure", math.nan),
        ("interval_seconds", 0),
        ("interval_seconds", math.inf),
        ("phase_completed", None),
        ("adaptive", 1),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(ConfigError) as refused:
        Triggers(**{name: value})
    assert refused.value.place == f"Triggers.{name}"
    assert str(refused.value).startswith(f"{name} is {value!r}: Triggers.{name}. Use ")
