from __future__ import annotations

import ast
import asyncio
import inspect
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from burr.core import Application, ApplicationBuilder, State, action
from burr.core.action import streaming_action
from burr.core.persistence import InMemoryPersister, PersistedStateData
from burr.core.typing import DictBasedTypingSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointSchemaError,
    InvalidStateError,
    RedactedStateWarning,
)
from holdfast.integrations import burr
from holdfast.integrations.burr import HoldfastAsyncPersister, HoldfastPersister

TYPES = holdfast.TypeRegistry()


@TYPES.register
@dataclass
class Verdict:
    grade: Decimal
    seen: set[str]


@pytest.fixture(params=["file", "sqlite", "memory"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"{request.param}:{tmp_path / 'store'}"


@pytest.fixture
def folder(tmp_path):
    return f"file:{tmp_path / 'store'}"


def opened(url):
    return HoldfastPersister(url, registry=TYPES)


def save(persister, step, partition_key="p", app_id="a", status="completed", position="act", **values):
    persister.save(partition_key, app_id, step, position, State(values), status)


def loaded(persister, *args) -> PersistedStateData:
    found = persister.load(*args)
    assert found is not None
    return found


def test_what_was_saved_is_loaded_with_everything_in_it(url):
    values = {"n": 1, "verdict": Verdict(Decimal("0.5"), {"x"}), "at": datetime.now(UTC), 7: (1, 2)}
    with opened(url) as persister:
        persister.save("p", "a", 3, "judge", State(values), "completed")
        found: dict[str, Any] = {**loaded(persister, "p", "a")}
    assert datetime.fromisoformat(found.pop("created_at")).tzinfo is not None
    state = found.pop("state")
    assert isinstance(state, State) and state.get_all() == values
    assert found == {
        "partition_key": "p",
        "app_id": "a",
        "sequence_id": 3,
        "position": "judge",
        "status": "completed",
    }


def test_each_step_is_loaded_by_its_number_and_the_last_one_without(url):
    with opened(url) as persister:
        for step in range(5):
            save(persister, step, n=step)
        assert [loaded(persister, "p", "a", step)["state"]["n"] for step in range(5)] == list(range(5))
        assert loaded(persister, "p", "a")["sequence_id"] == 4
        assert persister.load("p", "a", 5) is None
        assert persister.load("p", "b") is None and persister.load("q", "a") is None


def test_applications_are_listed_by_partition_the_newest_first(url):
    with opened(url) as persister:
        save(persister, 0, "p", "first")
        save(persister, 0, "p", "second")
        save(persister, 0, "q", "third")
        save(persister, 1, "p", "first")
        assert persister.list_app_ids("p") == ["first", "second"]
        assert persister.list_app_ids("q") == ["third"]
        assert persister.list_app_ids("nobody") == []
        assert loaded(persister, "p", None)["app_id"] == "first"
        assert persister.load("nobody", None) is None


def test_no_partition_is_the_same_as_an_empty_one(url):
    with opened(url) as persister:
        save(persister, 0, None)
        assert persister.list_app_ids(None) == persister.list_app_ids("") == ["a"]
        assert loaded(persister, None, "a")["partition_key"] == ""


def test_the_same_step_again_is_stored_once(folder):
    for _ in range(2):
        with opened(folder) as persister:
            save(persister, 0, n=float("nan"))
    with holdfast.open(folder) as service:
        assert len(service.list_checkpoints("burr/p/a")) == 1


@pytest.mark.parametrize("step", [0, 1])
def test_a_step_that_another_process_recorded_differently_is_a_conflict_and_nothing_is_lost(url, step):
    with opened(url) as persister:
        save(persister, 0, n=0)
        save(persister, 1, n=1)
        with pytest.raises(holdfast.CheckpointConflictError, match="fork_from_app_id"):
            save(persister, step, n=99)
        assert [loaded(persister, "p", "a", number)["state"]["n"] for number in range(2)] == [0, 1]


def test_a_step_that_failed_is_taken_again(url):
    with opened(url) as persister:
        save(persister, 0, n=0)
        save(persister, 1, n=0, status="failed")
        assert loaded(persister, "p", "a")["status"] == "failed"
        save(persister, 1, n=1)
        found = loaded(persister, "p", "a", 1)
        assert (found["status"], found["state"]["n"]) == ("completed", 1)


def test_a_conversation_is_kept_where_holdfast_shows_messages(folder):
    history = [{"role": "user", "content": "hello"}]
    for name in ("messages", "chat_history"):
        with opened(folder) as persister:
            save(persister, 0, app_id=name, **{name: history, "n": 1})
            assert loaded(persister, "p", name)["state"].get_all() == {name: history, "n": 1}
        with holdfast.open(folder) as service:
            assert service.restore_checkpoint(f"burr/p/{name}@phase:0").messages == history


def test_a_service_that_is_open_already_stays_open(folder):
    with holdfast.open(folder, registry=TYPES) as service:
        with HoldfastPersister(service, registry=TYPES) as persister:
            assert persister.is_initialized()
            save(persister, 0, n=1)
        assert service.workflows() == ["burr/p/a"]


def test_the_async_persister_does_the_same_off_the_loop(folder):
    async def main():
        async with HoldfastAsyncPersister(folder, registry=TYPES) as persister:
            assert await persister.is_initialized() and persister.is_async()
            await persister.save("p", "a", 0, "act", State({"n": 1}), "completed")
            found = await persister.load("p", "a", sequence_id=0)
            assert found is not None
            return found["state"]["n"], await persister.list_app_ids("p")

    assert asyncio.run(main()) == (1, ["a"])


# Values


class Unknown:
    pass


@pytest.mark.parametrize("value", [Unknown(), Unknown, threading.Lock(), lambda: None])
def test_a_value_of_a_type_that_nobody_registered_is_refused_with_the_path_to_it(folder, value):
    with opened(folder) as persister:
        with pytest.raises(holdfast.UnsupportedTypeError, match=r"context\.a\[1\]\.b"):
            save(persister, 0, a=[1, {"b": value}])
        assert persister.load("p", "a") is None


def test_a_type_that_is_no_longer_registered_is_told(folder):
    with opened(folder) as persister:
        save(persister, 0, verdict=Verdict(Decimal(1), set()))
    with HoldfastPersister(folder) as persister, pytest.raises(CheckpointSchemaError, match="Verdict"):
        persister.load("p", "a")


def test_secrets_are_hidden_before_they_are_stored(folder):
    with opened(folder) as persister:
        save(persister, 0, password="hunter2-hunter2")
        with pytest.warns(RedactedStateWarning, match="password"):
            assert "hunter2" not in loaded(persister, "p", "a")["state"]["password"]
        # What is stored is not what was given, so nobody can tell that this is the same.
        with pytest.warns(RedactedStateWarning), pytest.raises(holdfast.CheckpointConflictError):
            save(persister, 0, password="hunter2-hunter2")


ODD_TEXT = st.text(st.characters(codec=None), max_size=20)
TAGS = st.sampled_from(["$hf", "t", "v", "__burr_serde__", "messages", "chat_history"])
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False)
SINGLE = st.none() | st.booleans() | NUMBERS | ODD_TEXT | st.binary(max_size=8) | st.datetimes() | st.uuids()


def nested(inner):
    return (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(TAGS | ODD_TEXT, inner, max_size=3)
    )


STATES = st.dictionaries(TAGS | ODD_TEXT, st.recursive(SINGLE, nested, max_leaves=8), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STATES, min_size=1, max_size=4))
def test_any_plain_state_comes_back_exactly(states):
    # A field that happens to be called `password` would be hidden.
    with holdfast.open("memory:", redact=False) as service:
        persister = HoldfastPersister(service)
        for step, values in enumerate(states):
            persister.save("p", "a", step, "act", State(values), "completed")
        back = [loaded(persister, "p", "a", step)["state"].get_all() for step in range(len(states))]
    assert back == states


def test_data_that_looks_like_something_to_be_revived_stays_data(folder):
    values = {
        "x": {"__burr_serde__": "pickle", "value": "gA=="},
        "y": {"$hf": "obj", "t": "Verdict", "v": {}},
    }
    with opened(folder) as persister:
        save(persister, 0, **values)
        assert loaded(persister, "p", "a")["state"].get_all() == values


def test_neither_pickle_nor_burrs_own_serialization_is_used():
    source = inspect.getsource(burr)
    assert not {"pickle", "serialize", "deserialize", "importlib"} & set(
        ast.dump(ast.parse(source)).split("'")
    )


# Names

HOSTILE = [
    ("a/b", "c"),
    ("a", "b/c"),
    ("a:b", "c"),
    ("a", "b:c"),
    ("../..", "x/../y"),
    ("", " x "),
    ("x" * 400, "y" * 400),
    ("x" * 400, "y" * 401),
    ("\ud800", "\x00@latest"),
    ("%2F", "~"),
]


def test_hostile_names_are_stored_and_told_apart(folder):
    with opened(folder) as persister:
        for number, (partition_key, app_id) in enumerate(HOSTILE):
            save(persister, 0, partition_key, app_id, n=number)
    with opened(folder) as persister:
        for number, (partition_key, app_id) in enumerate(HOSTILE):
            assert loaded(persister, partition_key, app_id)["state"]["n"] == number
            assert app_id in persister.list_app_ids(partition_key)


# What an attacker can write


def test_bytes_that_were_changed_in_the_store_are_refused(tmp_path, folder):
    with opened(folder) as persister:
        save(persister, 0, said="pay Ann")
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file() and b"pay Ann" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"pay Ann", b"pay Bob"))
    with opened(folder) as persister, pytest.raises(CheckpointError):
        persister.load("p", "a")


@pytest.mark.parametrize(("partition_key", "app_id"), [("p", "b"), ("q", "a")])
def test_a_state_that_was_put_into_the_place_of_another_is_refused(folder, partition_key, app_id):
    with opened(folder) as persister:
        save(persister, 0, amount=1)
    with holdfast.open(folder) as service:
        state = service.restore_checkpoint("burr/p/a@latest")
        state.workflow_id = ""
        service.create_checkpoint(f"burr/{partition_key}/{app_id}", state)
    with opened(folder) as persister, pytest.raises(holdfast.CheckpointCorruptError):
        persister.load(partition_key, app_id)


# Burr's own runner


@action(reads=["n"], writes=["n", "history"])
def count(state: State) -> State:
    return state.update(n=state["n"] + 1).append(history=f"step {state['n']}")


@action(reads=["n"], writes=["n"])
def fail(state: State) -> State:
    raise RuntimeError(f"cannot at {state['n']}")


def builder(persister, app_id, options: dict[str, Any]) -> ApplicationBuilder[Any]:
    start = {"n": 0, "history": []}
    return (
        ApplicationBuilder()
        .with_typing(options.pop("typing", DictBasedTypingSystem()))
        .with_actions(count=options.pop("act", count))
        .with_transitions(("count", "count"))
        .with_identifiers(app_id=app_id, partition_key="p")
        .initialize_from(
            persister, resume_at_next_action=True, default_state=start, default_entrypoint="count", **options
        )
        .with_state_persister(persister)
    )


def build(persister, app_id="a", **options: Any) -> Application[Any]:
    return builder(persister, app_id, options).build()


def run(app, steps):
    for _ in range(steps):
        app.step()
    return app.state["n"], app.sequence_id


def test_an_application_goes_on_in_another_process_as_with_burrs_own_persister(url):
    own = InMemoryPersister()
    wanted = [run(build(own), 3), run(build(own), 2)]
    if url == "memory:":
        with opened(url) as persister:
            assert [run(build(persister), 3), run(build(persister), 2)] == wanted
        return
    for number, steps in enumerate((3, 2)):
        with opened(url) as persister:
            assert run(build(persister), steps) == wanted[number]


def test_an_application_is_forked_from_any_step_and_the_first_one_stays(url):
    with opened(url) as persister:
        run(build(persister), 4)
        fork = {"fork_from_app_id": "a", "fork_from_partition_key": "p"}
        assert run(build(persister, "late", **fork), 1) == (5, 4)
        assert run(build(persister, "early", **fork, fork_from_sequence_id=1), 1) == (3, 2)
        assert loaded(persister, "p", "a")["state"]["n"] == 4
        assert loaded(persister, "p", "early")["state"]["history"] == ["step 0", "step 1", "step 2"]
        assert set(persister.list_app_ids("p")) == {"a", "late", "early"}


def test_a_state_has_the_types_of_its_application_after_a_fork(url):
    typing = DictBasedTypingSystem()
    with opened(url) as persister:
        run(build(persister), 1)
        fork = {"fork_from_app_id": "a", "fork_from_partition_key": "p", "typing": typing}
        assert build(persister, "b", **fork).state.typing_system is typing


def test_an_action_that_raised_is_run_again_from_the_state_before_it(url):
    def failing(persister, act):
        return (
            ApplicationBuilder()
            .with_actions(count=count, then=act)
            .with_transitions(("count", "then"), ("then", "count"))
            .with_identifiers(app_id="a", partition_key="p")
            .initialize_from(
                persister,
                resume_at_next_action=True,
                default_state={"n": 0, "history": []},
                default_entrypoint="count",
            )
            .with_state_persister(persister)
            .build()
        )

    with opened(url) as persister:
        app = failing(persister, fail)
        app.step()
        with pytest.raises(RuntimeError, match="cannot at 1"):
            app.step()
        found = loaded(persister, "p", "a")
        assert (found["position"], found["status"]) == ("then", "failed")
        assert run(failing(persister, count), 1)[0] == 2


@action(reads=["n"], writes=["n", "history"])
async def count_async(state: State) -> State:
    return state.update(n=state["n"] + 1).append(history=f"step {state['n']}")


async def stepped(folder, act):
    async with HoldfastAsyncPersister(folder) as persister:
        app = await builder(persister, "a", {"act": act}).abuild()
        await app.astep()
        return app.state["n"], app.sequence_id


def test_an_async_application_goes_on_in_another_process(folder):
    found = [asyncio.run(stepped(folder, count_async)) for _ in range(3)]
    assert found == [(1, 0), (2, 1), (3, 2)]


def test_a_state_that_burr_hands_over_without_what_the_step_did_is_refused(folder):
    with pytest.raises(InvalidStateError, match="make every action async"):
        asyncio.run(stepped(folder, count))
    with opened(folder) as persister:
        assert persister.load("p", "a") is None


@streaming_action(reads=["n"], writes=["n", "history"])
def count_in_parts(state: State) -> Generator[tuple[dict[str, Any], State | None], None, None]:
    yield {"part": 1}, None
    yield {"part": 2}, state.update(n=state["n"] + 1).append(history="streamed")


def test_the_state_after_a_stream_is_kept(folder):
    with opened(folder) as persister:
        app = build(persister, act=count_in_parts)
        _, stream = app.stream_result(halt_after=["count"])
        assert [part["part"] for part in stream] == [1]
        assert stream.get()[1]["n"] == 1
        assert loaded(persister, "p", "a")["state"]["history"] == ["streamed"]


def at_once(work: Callable[[int], None], workers: int = 8) -> list[BaseException]:
    problems: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def test_eight_threads_that_run_one_application_never_lose_a_step_silently(url):
    with opened(url) as persister:
        problems = at_once(lambda number: save(persister, 0, n=number))
        assert len(problems) == 7
        assert all(isinstance(problem, holdfast.CheckpointConflictError) for problem in problems)
        assert loaded(persister, "p", "a")["state"]["n"] in range(8)


def test_eight_threads_run_eight_applications_side_by_side(url):
    with opened(url) as persister:
        assert at_once(lambda number: run(build(persister, f"app-{number}"), 10)) == []
        assert len(persister.list_app_ids("p")) == 8
        for number in range(8):
            assert loaded(persister, "p", f"app-{number}")["state"]["n"] == 10


# Cost


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.StateSizeWarning")
def test_a_growing_state_costs_what_was_added(tmp_path, folder):
    steps, text = 300, "x%05d" * 340
    with opened(folder) as persister:
        history: list[str] = []
        for step in range(steps):
            history.append(text.replace("%05d", f"{step:05d}"))
            save(persister, step, chat_history=list(history))
    stored = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert stored <= steps * (3 * len(text.replace("%05d", "00000")) + 2048)
