"""States of CrewAI flows are kept, methods with `once` are not repeated, and what is read is plain data."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import holdfast
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    InvalidStateError,
    UnsupportedTypeError,
)
from holdfast.domain.state import WorkflowState

with warnings.catch_warnings():
    # CrewAI's own modules warn while they are imported.
    warnings.simplefilter("ignore")
    from crewai.flow.async_feedback.types import HumanFeedbackPending, PendingFeedbackContext
    from crewai.flow.flow import Flow, listen, router, start
    from crewai.flow.human_feedback import human_feedback
    from crewai.flow.persistence import persist
    from crewai.memory.storage.factory import set_memory_storage_factory

    from holdfast.integrations import crewai as translation
    from holdfast.integrations.crewai import HoldfastPersistence


@pytest.fixture(autouse=True, scope="module")
def silence() -> Iterator[None]:
    """Let CrewAI call nobody, and give flows no memory: each would make a database beside the program."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CREWAI_DISABLE_TELEMETRY", "OTEL_SDK_DISABLED", "CREWAI_DISABLE_VERSION_CHECK"):
            patch.setenv(name, "true")
        patch.setenv("CREWAI_TRACING_ENABLED", "false")
        set_memory_storage_factory(lambda spec: object())
        yield
        set_memory_storage_factory(None)


@pytest.fixture(params=["file", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HoldfastPersistence]:
    urls = {"file": f"file:{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/s.db", "memory": "memory:"}
    with HoldfastPersistence(urls[request.param]) as opened:
        yield opened


@pytest.fixture
def kept() -> Iterator[HoldfastPersistence]:
    with HoldfastPersistence("memory:") as opened:
        yield opened


class Offer(BaseModel):
    vendor: str
    price: int = 0


class Deal(BaseModel):
    id: str = ""
    offers: list[Offer] = []
    messages: list[dict[str, str]] = []
    due: date | None = None


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The contract, call by call


def test_the_newest_state_of_a_flow_is_answered(store: HoldfastPersistence):
    assert store.load_state("f") is None
    store.init_db()
    store.save_state("f", "one", {"id": "f", "n": 1})
    store.save_state("f", "two", {"id": "f", "n": 2, "messages": [{"role": "user", "content": "hello"}]})
    assert store.load_state("f") == {"id": "f", "n": 2, "messages": [{"role": "user", "content": "hello"}]}
    assert store.load_state("g") is None


def test_a_state_that_is_a_model_is_answered_as_its_class_reads_it(store: HoldfastPersistence):
    deal = Deal(id="f", offers=[Offer(vendor="B", price=3)], due=date(2026, 2, 1))
    store.save_state("f", "one", deal)
    loaded = store.load_state("f")
    assert loaded is not None and Deal.model_validate(loaded) == deal


def test_a_dict_keeps_its_types_and_models_in_it_become_plain(kept: HoldfastPersistence):
    state = {"id": "f", "due": date(2026, 2, 1), "tags": {"a"}, "raw": b"\xff", "offers": [Offer(vendor="B")]}
    kept.save_state("f", "one", state)
    assert kept.load_state("f") == {**state, "offers": [{"vendor": "B", "price": 0}]}


def test_what_nobody_can_read_again_is_refused_with_its_place(kept: HoldfastPersistence):
    with pytest.raises(UnsupportedTypeError, match="lock"):
        kept.save_state("f", "one", {"id": "f", "lock": threading.Lock()})
    with pytest.raises(InvalidStateError, match="a list is no state"):
        kept.save_state("f", "one", [1])
    assert kept.load_state("f") is None


def asked(flow_id: str = "f") -> PendingFeedbackContext:
    return PendingFeedbackContext(
        flow_id, "app.Review", "draft", {"title": "kelp"}, "publish?", emit=["yes", "no"]
    )


def test_what_is_asked_of_a_person_is_kept_until_it_is_cleared(store: HoldfastPersistence):
    assert store.load_pending_feedback("f") is None
    store.clear_pending_feedback("f")
    store.save_pending_feedback("f", asked(), {"id": "f", "n": 1})
    state, context = store.load_pending_feedback("f") or ({}, None)
    assert state == {"id": "f", "n": 1} and context is not None
    assert context.to_dict() == {**asked().to_dict(), "requested_at": context.requested_at.isoformat()}
    # A state that follows before it is cleared: what was asked stays, as it was asked.
    store.save_state("f", "draft", {"id": "f", "n": 2})
    assert (store.load_pending_feedback("f") or ({}, None))[0] == {"id": "f", "n": 1}
    store.clear_pending_feedback("f")
    assert store.load_pending_feedback("f") is None
    assert store.load_state("f") == {"id": "f", "n": 2}


def test_a_service_that_was_given_stays_open_and_the_definition_of_a_flow_names_no_secret():
    with holdfast.open("memory:") as service:
        persistence = HoldfastPersistence(service)
        persistence.close()
        persistence.save_state("f", "one", {"id": "f"})
        assert persistence.model_dump() == {"persistence_type": "HoldfastPersistence", "url": "memory:"}


def test_a_persistence_is_made_again_from_the_definition_of_a_flow(tmp_path: Path):
    with HoldfastPersistence(f"file:{tmp_path}/store") as first:
        first.save_state("f", "one", {"id": "f"})
        with HoldfastPersistence.model_validate(first.model_dump()) as second:
            assert second.load_state("f") == {"id": "f"}


# With CrewAI's own engine


def counting(store: HoldfastPersistence, ran: list[str], *, fails: bool) -> Flow[Any]:
    """Make a flow of four methods with a router, an async one and a loop; the last one may fail."""

    @persist(store)
    class Counting(Flow[Any]):
        @start()
        @store.once
        def begin(self) -> Offer:
            ran.append("begin")
            self.state["n"] = 0
            return Offer(vendor="B", price=3)

        @listen(begin)
        @store.once
        async def look(self, offer: Offer):
            ran.append("look")
            self.state["price"] = offer.price
            return {"price": offer.price}

        @router("again")
        @store.once
        def repeat(self):
            return self.counted()

        @router(look)
        @store.once
        def judge(self, found):
            found["price"] = "changed by who got it"
            return self.counted()

        def counted(self):
            ran.append("count")
            self.state["n"] += 1
            return "again" if self.state["n"] < 3 else "enough"

        @listen("enough")
        @store.once
        def end(self):
            ran.append("end")
            if fails:
                raise ValueError("not yet")
            return self.state["n"]

    return Counting(suppress_flow_events=True)


def test_methods_that_were_completed_answer_again_and_do_not_run(store: HoldfastPersistence):
    ran: list[str] = []
    with pytest.raises(ValueError, match="not yet"):
        counting(store, ran, fails=True).kickoff(inputs={"id": "f"})
    assert ran == ["begin", "look", "count", "count", "count", "end"]
    ran.clear()
    flow = counting(store, ran, fails=False)
    assert flow.kickoff(inputs={"id": "f"}) == 3
    assert ran == ["end"] and flow.state == {"id": "f", "n": 3, "price": 3}
    ran.clear()
    assert counting(store, ran, fails=False).kickoff(inputs={"id": "f"}) == 3
    assert ran == []


def test_each_completed_method_is_one_checkpoint(kept: HoldfastPersistence):
    with holdfast.open("memory:") as service:
        persistence = HoldfastPersistence(service)
        counting(persistence, [], fails=False).kickoff(inputs={"id": "f"})
        counting(persistence, [], fails=False).kickoff(inputs={"id": "f"})
        stages = [meta.stage_id for meta in service.list_checkpoints("crewai-flow:f")]
        assert stages == ["end", "repeat", "repeat", "judge", "look", "begin"]
        state = service.load_latest("crewai-flow:f")
        assert state is not None
        assert state.outputs["begin"] == [{"vendor": "B", "price": 3}]
        assert state.outputs["look"] == [{"price": 3}]
        assert state.metadata == {"flow_uuid": "f"}


def test_without_once_crewai_runs_every_method_again_on_the_state_that_came_back(kept: HoldfastPersistence):
    @persist(kept)
    class Adding(Flow[Deal]):
        @start()
        def add(self):
            self.state.offers.append(Offer(vendor="B"))
            return len(self.state.offers)

    assert Adding(suppress_flow_events=True).kickoff(inputs={"id": "f"}) == 1
    assert Adding(suppress_flow_events=True).kickoff(inputs={"id": "f"}) == 2


def test_a_flow_without_an_id_is_kept_under_the_one_it_made(kept: HoldfastPersistence):
    flow = counting(kept, [], fails=False)
    flow.kickoff()
    assert kept.load_state(flow.flow_id) == flow.state


def test_an_answer_that_cannot_be_kept_is_told(kept: HoldfastPersistence):
    @persist(kept)
    class Odd(Flow[Any]):
        @start()
        @kept.once
        def odd(self):
            return Offer(vendor="the method does not say that it answers one")

    with pytest.raises(RuntimeError, match="persistence failed") as told:
        Odd(suppress_flow_events=True).kickoff(inputs={"id": "f"})
    assert isinstance(told.value.__cause__, UnsupportedTypeError)
    assert "outputs" in str(told.value.__cause__)


class AskLater:
    """Pauses the flow: somebody answers another day."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


def reviewing(store: HoldfastPersistence, ran: list[str]) -> type[Flow[Any]]:
    @persist(store)
    class Reviewing(Flow[Any]):
        @start()
        @human_feedback(message="publish?", provider=AskLater())
        def draft(self):
            ran.append("draft")
            self.state["text"] = "kelp holds on"
            return self.state["text"]

        @listen(draft)
        def publish(self, result):
            ran.append("publish")
            return f"{result.output}: {result.feedback}"

    return Reviewing


def test_a_person_answers_in_another_process(tmp_path: Path):
    ran: list[str] = []
    with HoldfastPersistence(f"sqlite:{tmp_path}/s.db") as store:
        paused = reviewing(store, ran)(suppress_flow_events=True).kickoff(inputs={"id": "f"})
        assert isinstance(paused, HumanFeedbackPending)
    with HoldfastPersistence(f"sqlite:{tmp_path}/s.db") as store:
        flow = reviewing(store, ran).from_pending("f", store, suppress_flow_events=True)
        assert flow.state["text"] == "kelp holds on"
        assert flow.resume("yes, do") == "kelp holds on: yes, do"
        assert ran == ["draft", "publish"]
        assert store.load_pending_feedback("f") is None


# Concurrency


def test_two_runs_of_one_flow_in_one_process_do_not_overwrite_each_other(kept: HoldfastPersistence):
    kept.save_state("f", "one", {"id": "f", "n": 0})
    both_read, answers = threading.Barrier(2), []

    def run(n: int) -> None:
        state = kept.load_state("f")
        both_read.wait()
        try:
            kept.save_state("f", "two", {**(state or {}), "n": n})
            answers.append(n)
        except CheckpointConflictError:
            answers.append(0)

    threads = [threading.Thread(target=run, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers)[0] == 0
    assert kept.load_state("f") == {"id": "f", "n": sorted(answers)[1]}


def test_two_processes_with_one_flow_do_not_overwrite_each_other(tmp_path: Path):
    with (
        HoldfastPersistence(f"sqlite:{tmp_path}/s.db") as mine,
        HoldfastPersistence(f"sqlite:{tmp_path}/s.db") as yours,
    ):
        assert mine.load_state("f") is None and yours.load_state("f") is None
        mine.save_state("f", "one", {"id": "f", "n": 1})
        with pytest.raises(CheckpointConflictError):
            yours.save_state("f", "one", {"id": "f", "n": 2})
        assert yours.load_state("f") == {"id": "f", "n": 1}
        yours.save_state("f", "two", {"id": "f", "n": 2})
        with pytest.raises(CheckpointConflictError):
            mine.save_state("f", "two", {"id": "f", "n": 3})


def test_methods_at_once_in_one_flow_are_all_kept(store: HoldfastPersistence):
    @persist(store)
    class Wide(Flow[Any]):
        @start()
        @store.once
        def one(self):
            self.state["one"] = 1

        @start()
        @store.once
        def two(self):
            self.state["two"] = 2

        @start()
        @store.once
        async def three(self):
            self.state["three"] = 3

    asyncio.run(Wide(suppress_flow_events=True).kickoff_async(inputs={"id": "f"}))
    assert store.load_state("f") == {"id": "f", "one": 1, "two": 2, "three": 3}


def test_eight_threads_with_many_flows_keep_them_all(store: HoldfastPersistence):
    def run(n: int) -> int:
        return counting(store, [], fails=False).kickoff(inputs={"id": f"flow {n}"})

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(8))) == [3] * 8
    for n in range(8):
        assert store.load_state(f"flow {n}") == {"id": f"flow {n}", "n": 3, "price": 3}


def test_a_persistence_is_not_mistaken_for_one_that_is_gone():
    for n in range(50):
        with HoldfastPersistence("memory:") as opened:
            opened.save_state("f", "one", {"id": "f", "n": n})


def test_a_flow_that_was_forgotten_is_read_again(kept: HoldfastPersistence, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(translation, "_REMEMBERED_MAX", 2)

    def save(n: int, turn: int) -> None:
        kept.save_state(f"f{n}", "one", {"id": f"f{n}", "turn": turn})

    with ThreadPoolExecutor(1) as thread:
        for turn in range(2):
            for n in range(5):
                # Each in a context of its own, as CrewAI does it.
                thread.submit(save, n, turn).result()
    assert [(kept.load_state(f"f{n}") or {})["turn"] for n in range(5)] == [1] * 5


def test_a_history_that_grows_costs_what_was_added(tmp_path: Path):
    messages: list[dict[str, str]] = []
    with holdfast.open(f"file:{tmp_path}/store", warn_bytes=2**20) as service:
        persistence = HoldfastPersistence(service)
        for turn in range(300):
            text = f"{turn:4} " + "".join(chr(97 + (turn * 7 + n * n) % 26) for n in range(2000))
            messages.append({"role": "user", "content": text})
            persistence.save_state("f", "turn", {"id": "f", "messages": messages})
    assert sum(len(data) for data in contents(tmp_path).values()) < 3 * 300 * 2005 + 300 * 2048


# What an attacker could write


def test_the_state_of_one_flow_is_not_accepted_as_another():
    with holdfast.open("memory:") as service:
        persistence = HoldfastPersistence(service)
        persistence.save_state("mine", "one", {"id": "mine", "is_admin": True})
        service.fork_workflow("crewai-flow:mine@latest", "crewai-flow:yours")
        with pytest.raises(CheckpointCorruptError, match="another flow"):
            persistence.load_state("yours")
        with pytest.raises(CheckpointCorruptError, match="another flow"):
            persistence.load_pending_feedback("yours")


@pytest.mark.parametrize(
    "pending",
    [
        {"context": {"flow_id": "f"}, "state": {}},
        {"context": 7, "state": {}},
        {"state": {}},
        7,
        {"context": {**asked().to_dict(), "requested_at": "never"}, "state": {}},
        {"context": {**asked().to_dict(), "method_name": ["os.system"]}, "state": {}},
        {"context": asked().to_dict(), "state": 7},
    ],
)
def test_a_question_that_is_none_is_refused(pending: Any):
    with holdfast.open("memory:") as service:
        state = WorkflowState(pending_events=[pending], metadata={"flow_uuid": "f"})
        service.create_checkpoint("crewai-flow:f", state)
        with pytest.raises(CheckpointCorruptError, match="what it asks cannot be read"):
            HoldfastPersistence(service).load_pending_feedback("f")


def test_an_answer_that_is_not_of_the_type_the_method_says_is_refused(kept: HoldfastPersistence):
    with holdfast.open("memory:") as service:
        persistence = HoldfastPersistence(service)
        state = WorkflowState(
            context={"id": "f"}, outputs={"begin": [{"vendor": ["os.system"]}]}, metadata={"flow_uuid": "f"}
        )
        service.create_checkpoint("crewai-flow:f", state)
        ran: list[str] = []
        with pytest.raises(ValueError, match="vendor"):
            counting(persistence, ran, fails=False).kickoff(inputs={"id": "f"})
        assert ran == []


@pytest.mark.parametrize("outputs", [7, ["begin"], {"begin": "not a list"}])
def test_answers_that_are_none_are_refused(outputs: Any):
    with holdfast.open("memory:") as service:
        state = WorkflowState(context={"id": "f"}, outputs=outputs, metadata={"flow_uuid": "f"})
        service.create_checkpoint("crewai-flow:f", state)
        with pytest.raises(CheckpointCorruptError, match="answered cannot be read"):
            HoldfastPersistence(service).load_state("f")


def test_bytes_that_were_changed_in_the_store_are_found(tmp_path: Path):
    with HoldfastPersistence(f"file:{tmp_path}/store") as store:
        store.save_state("f", "one", {"id": "f", "text": "a value to be changed"})
    found = {path: data for path, data in contents(tmp_path).items() if b"a value to be changed" in data}
    assert found
    for path, data in found.items():
        path.write_bytes(data.replace(b"to be changed", b"that was here"))
    with HoldfastPersistence(f"file:{tmp_path}/store") as store, pytest.raises(holdfast.CheckpointError):
        store.load_state("f")


# Properties

TAGS = ["__is_pydantic", "__type__", "lc", "py/object", "$type", "messages", "id", "state"]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(TAGS), inner, max_size=3)
    ),
    max_leaves=12,
)
STATES = st.dictionaries(st.text(max_size=5) | st.sampled_from(TAGS), PLAIN, max_size=4)


@given(STATES)
@settings(max_examples=60, deadline=None)
def test_any_plain_state_comes_back_as_it_was_whatever_it_looks_like(state: dict[str, Any]):
    with holdfast.open("memory:", redact=False) as service:
        persistence = HoldfastPersistence(service)
        for given_state in (state, {**state, "\ud800 lone": "nul \0 \udfff"}):
            persistence.save_state("f", "one", given_state)
            assert HoldfastPersistence(service).load_state("f") == given_state


@pytest.mark.parametrize("name", ["../../x", "a\0b", "\ud800", "@latest", "n" * 5000, " ", "flow:a/b%2F"])
def test_a_hostile_id_is_just_an_id(name: str, tmp_path: Path):
    with HoldfastPersistence(f"file:{tmp_path}/store") as store:
        store.save_state(name, "one", {"id": name})
        assert store.load_state(name) == {"id": name}
    assert all(path.is_relative_to(tmp_path / "store") for path in contents(tmp_path))
