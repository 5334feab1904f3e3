"""`HoldfastSnapshots`: Haystack's callback, runs step by step, and stores that were tampered with."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from haystack.core.errors import BreakpointException, PipelineRuntimeError
from haystack.core.serialization_security import allow_deserialization_module
from haystack.dataclasses import Breakpoint, ChatMessage
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import CheckpointConflictError, CheckpointCorruptError, WorkflowState
from holdfast.domain.errors import CheckpointNotFoundError, LeaseHeldError, UnsupportedTypeError
from holdfast.integrations.haystack import HoldfastSnapshots
from tests.integrations.haystack_pipelines import (
    INPUTS,
    Reading,
    Tide,
    adding_pipeline,
    looping_pipeline,
    passing_pipeline,
    question_pipeline,
    ran,
)


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@pytest.fixture(params=["memory:", "file:{}/store", "sqlite:{}/store.db"], ids=["memory", "file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


def test_a_breakpoint_is_kept_and_resumed_from(url: str) -> None:
    pipeline, expected = question_pipeline(), question_pipeline().run(INPUTS)
    with HoldfastSnapshots(url, "run") as snapshots:
        assert snapshots.latest() is None
        with pytest.raises(BreakpointException) as halted:
            pipeline.run(INPUTS, break_point=Breakpoint("model"), snapshot_callback=snapshots)
        assert halted.value.pipeline_snapshot_file_path == "haystack/run@1"
        snapshot = snapshots.latest()
        assert snapshot is not None and snapshot.break_point == Breakpoint("model")
        made: Any = halted.value.pipeline_snapshot
        assert snapshot.to_dict() == made.to_dict()
        assert snapshots.at("haystack/run@1").to_dict() == snapshots.at(1).to_dict() == snapshot.to_dict()
        assert pipeline.run({}, pipeline_snapshot=snapshot) == expected
    assert ran == ["archive", "archive"]


def test_a_failure_is_kept_and_tried_again(url: str) -> None:
    pipeline = question_pipeline(failures=1)
    with HoldfastSnapshots(url, "run") as snapshots:
        with pytest.raises(PipelineRuntimeError, match="closed"):
            pipeline.run(INPUTS, snapshot_callback=snapshots)
        snapshot = snapshots.latest()
        assert snapshot is not None
        assert pipeline.run({}, pipeline_snapshot=snapshot) == question_pipeline().run(INPUTS)


def test_a_run_step_by_step_ends_like_any_other_and_tells_its_end_again(url: str) -> None:
    expected = question_pipeline().run(INPUTS, {"archive"})
    with HoldfastSnapshots(url, "run") as snapshots:
        pipeline = question_pipeline()
        assert snapshots.run(pipeline, INPUTS, {"archive"}) == expected
        assert snapshots.run(pipeline, INPUTS, {"archive"}) == expected
        assert snapshots.latest() is None
        with pytest.raises(CheckpointNotFoundError, match="end of a run"):
            snapshots.at(5)
        assert "run" not in vars(pipeline.get_component("archive"))
    assert ran == ["archive", "archive"]


def test_the_state_before_each_component_is_a_checkpoint_that_names_it() -> None:
    with holdfast.open("memory:") as service:
        HoldfastSnapshots(service, "run").run(question_pipeline(), INPUTS)
        listed = service.list_checkpoints("haystack/run")
        assert [meta.stage_id for meta in reversed(listed)] == ["archive", "prompt", "model", "answer", None]
        state = service.restore_checkpoint("haystack/run@stage:model")
        assert state.current_step == 2 and state.total_steps == 4


def test_a_breakpoint_inside_of_a_component_is_told_to_the_caller() -> None:
    pipeline = passing_pipeline(1)

    def halted(value: Any) -> Any:
        raise BreakpointException.from_triggered_breakpoint(Breakpoint("takes"))

    vars(pipeline.get_component("takes"))["run"] = halted
    with HoldfastSnapshots("memory:", "run") as snapshots:
        with pytest.raises(BreakpointException):
            snapshots.run(pipeline, {"answers": {"go": True}})
        del vars(pipeline.get_component("takes"))["run"]
        assert snapshots.run(pipeline, {}) == {"takes": {"told": "1"}}
    assert ran == ["answers", "takes"]


def test_a_component_that_fails_is_tried_again_and_nothing_before_it(url: str) -> None:
    pipeline, visits = looping_pipeline(), []
    judge = pipeline.get_component("judge")
    original = judge.run

    def failing(text: str) -> Any:
        visits.append(text)
        if len(visits) == 3:
            raise RuntimeError("tired")
        return original(text=text)

    vars(judge)["run"] = failing
    with HoldfastSnapshots(url, "run") as snapshots:
        with pytest.raises(PipelineRuntimeError, match="tired"):
            snapshots.run(pipeline, {"join": {"value": "a"}})
        snapshot = snapshots.latest()
        assert snapshot is not None and snapshot.break_point == Breakpoint("judge", 2)
        assert snapshots.run(pipeline, {}) == {"judge": {"good": "axxx"}}
    assert vars(judge)["run"] is failing
    assert visits == ["a", "ax", "axx", "axx", "axxx"]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_graph_gives_what_it_gives_without_steps(data: st.DataObject) -> None:
    senders_of = [
        data.draw(st.lists(st.integers(0, at - 1), unique=True, max_size=3)) if at else [] for at in range(5)
    ]
    inputs = {f"c{at}": {"in0": at} for at, senders in enumerate(senders_of) if not senders}
    expected = adding_pipeline(senders_of).run(inputs)
    ran.clear()
    with HoldfastSnapshots("memory:", "run") as snapshots:
        assert snapshots.run(adding_pipeline(senders_of), inputs) == expected
    assert sorted(ran) == [f"c{at}" for at in range(5)]


@pytest.mark.parametrize("value", [object(), b"bytes", print], ids=["object", "bytes", "function"])
def test_what_could_not_be_made_again_is_an_error_and_not_left_out(value: Any) -> None:
    with HoldfastSnapshots("memory:", "run") as snapshots:
        with pytest.raises(PipelineRuntimeError) as failed:
            snapshots.run(passing_pipeline(value), {"answers": {"go": True}})
        assert isinstance(failed.value.__cause__, UnsupportedTypeError)
        assert ran == ["answers"]
        with pytest.raises(UnsupportedTypeError, match="the inputs"):
            HoldfastSnapshots(snapshots._service, "other").run(
                passing_pipeline(1), {"answers": {"go": value}}
            )


def test_classes_of_the_application_are_made_again_once_they_are_allowed(url: str) -> None:
    allow_deserialization_module("tests.integrations.haystack_pipelines")
    value = [
        Tide.HIGH,
        Reading(depth_metres=2.5),
        ChatMessage.from_user("hi"),
        {"a": (1, frozenset(["\ud800"]))},
    ]
    with HoldfastSnapshots(url, "run", types=[Tide, Reading]) as snapshots:
        outputs = snapshots.run(passing_pipeline(value), {"answers": {"go": True}})
        assert outputs == {"takes": {"told": repr(value)}}
    with HoldfastSnapshots("memory:", "run") as snapshots:
        with pytest.raises(PipelineRuntimeError) as failed:
            snapshots.run(passing_pipeline(value), {"answers": {"go": True}})
        assert "haystack_pipelines.Tide" in str(failed.value.__cause__) or "Reading" in str(
            failed.value.__cause__
        )


@pytest.mark.parametrize(
    "kind",
    ["os.system", "subprocess.Popen", "typing.Callable", "haystack.utils.auth.EnvVarSecret", "builtins.eval"],
)
def test_a_store_that_names_a_type_nobody_allowed_makes_nothing(kind: str) -> None:
    with holdfast.open("memory:") as service:
        snapshots = HoldfastSnapshots(service, "run")
        with pytest.raises(BreakpointException):
            question_pipeline().run(INPUTS, break_point=Breakpoint("prompt"), snapshot_callback=snapshots)
        for place in ("inputs", "original_input_data", "outputs"):
            state = service.restore_checkpoint("haystack/run@1")
            inner = state.context["pipeline_state"]
            envelope = {"inputs": inner.get("inputs"), "outputs": state.outputs}.get(place) or state.context[
                place
            ]
            envelope["serialization_schema"]["properties"]["x"] = {
                "type": "array",
                "prefixItems": [{"type": "array", "items": {"type": kind}}],
            }
            envelope["serialized_data"]["x"] = [["echo hacked"]]
            service.create_checkpoint("haystack/run", state)
            with pytest.raises(UnsupportedTypeError, match="not allowed"):
                HoldfastSnapshots(service, "run").latest()
        ended = WorkflowState(
            status="completed",
            metadata={"run_id": "run"},
            outputs={"serialization_schema": {"type": kind}, "serialized_data": "echo hacked"},
        )
        service.create_checkpoint("haystack/run", ended)
        with pytest.raises(UnsupportedTypeError, match="not allowed"):
            HoldfastSnapshots(service, "run").run(question_pipeline(), INPUTS)


def test_a_state_that_is_no_snapshot_or_of_another_run_is_refused() -> None:
    with holdfast.open("memory:") as service:
        HoldfastSnapshots(service, "other").run(question_pipeline(), INPUTS)
        stolen = service.restore_checkpoint("haystack/other@2")
        stolen.workflow_id = ""
        service.create_checkpoint("haystack/run", stolen)
        with pytest.raises(CheckpointCorruptError, match="another run"):
            HoldfastSnapshots(service, "run").latest()
        service.create_checkpoint("haystack/run", WorkflowState(metadata={"run_id": "run"}))
        with pytest.raises(CheckpointCorruptError, match="no snapshot"):
            HoldfastSnapshots(service, "run").run(question_pipeline(), INPUTS)


def test_a_second_runner_of_the_same_run_is_kept_out(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/store"
    told: list[Exception] = []

    class Meddler:
        def __repr__(self) -> str:
            with HoldfastSnapshots(url, "run") as other, pytest.raises(LeaseHeldError) as held:
                other.run(passing_pipeline(1), {"answers": {"go": True}})
            told.append(held.value)
            return "meddled"

    pipeline = passing_pipeline(1)
    takes = pipeline.get_component("takes")
    with HoldfastSnapshots(url, "run") as snapshots:
        vars(takes)["run"] = lambda value: {"told": repr(Meddler())}
        assert snapshots.run(pipeline, {"answers": {"go": True}}) == {"takes": {"told": "meddled"}}
    assert len(told) == 1 and ran == ["answers"]


def test_two_callbacks_of_one_run_never_overwrite_each_other_unseen() -> None:
    with holdfast.open("memory:") as service:
        ours, theirs = HoldfastSnapshots(service, "run"), HoldfastSnapshots(service, "run")
        assert ours.latest() is None and theirs.latest() is None
        for snapshots, expected in ((ours, BreakpointException), (theirs, CheckpointConflictError)):
            with pytest.raises(expected):
                question_pipeline().run(INPUTS, break_point=Breakpoint("model"), snapshot_callback=snapshots)


def test_two_processes_may_take_turns(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/store"
    with HoldfastSnapshots(url, "run") as ours, HoldfastSnapshots(url, "run") as theirs:
        for number, snapshots in enumerate((ours, theirs, ours, theirs), 1):
            snapshots.latest()
            with pytest.raises(BreakpointException) as halted:
                question_pipeline().run(INPUTS, break_point=Breakpoint("model"), snapshot_callback=snapshots)
            assert halted.value.pipeline_snapshot_file_path == f"haystack/run@{number}"


def test_eight_threads_run_one_pipeline_beside_plain_runs(url: str) -> None:
    pipeline, expected = question_pipeline(), question_pipeline().run(INPUTS)
    together = threading.Barrier(8)
    with holdfast.open(url) as service:

        def run(at: int) -> Any:
            together.wait()
            if at % 4 == 3:
                return pipeline.run(INPUTS)
            return HoldfastSnapshots(service, f"run {at}").run(pipeline, INPUTS)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(run, range(8))) == [expected] * 8
    assert "run" not in vars(pipeline.get_component("archive"))


def test_a_callback_that_cannot_store_does_not_hide_why_a_component_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with HoldfastSnapshots("memory:", "run") as snapshots:
        snapshots._seen = 7
        with caplog.at_level(logging.ERROR), pytest.raises(PipelineRuntimeError, match="closed"):
            question_pipeline(failures=1).run(INPUTS, snapshot_callback=snapshots)
        assert "not 7" in caplog.text


@pytest.mark.parametrize("hostile", ["../..", "~" * 300, "a\x00b\n", "\ud800", "x" * 5000, "'; --", ""])
def test_hostile_names_are_names_like_any_other(hostile: str, tmp_path: Path) -> None:
    with HoldfastSnapshots(f"file:{tmp_path}/store", hostile) as snapshots:
        outputs = snapshots.run(looping_pipeline(), {"join": {"value": "long enough"}})
        assert snapshots.run(looping_pipeline(), {}) == outputs
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_components_may_have_any_name() -> None:
    pipeline = looping_pipeline()
    renamed = type(pipeline)()
    renamed.add_component("a\x00" * 300, passing_pipeline(1).get_component("takes").__class__())
    with HoldfastSnapshots("memory:", "run") as snapshots:
        assert snapshots.run(renamed, {"a\x00" * 300: {"value": 1}}) == {"a\x00" * 300: {"told": "1"}}
