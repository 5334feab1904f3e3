"""The saver's own surface, method by method, called as a program without coroutines calls it."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

import holdfast
from holdfast.domain.errors import (
    CheckpointConflictError,
    InvalidIdError,
    StoreClosedError,
    UnsupportedTypeError,
)
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_stores import (
    KINDS,
    LASTING,
    channels,
    checkpoint_of,
    config_of,
    got,
    id_of,
    metadata_of,
    put,
    url_of,
)

MISSING = "1f0fffff-ffff-6fff-bfff-ffffffffffff"


@pytest.fixture(params=KINDS)
def saver(request: pytest.FixtureRequest, tmp_path: Path):
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as opened:
        yield opened


def chain(saver: HoldfastSaver, thread_id: str = "t", count: int = 3, ns: str = "", **metadata: Any) -> list:
    """Put checkpoints that follow each other; answer where they are, the oldest first."""
    configs, config = [], config_of(thread_id, ns)
    for number in range(1, count + 1):
        config = put(saver, config, {"n": number, "fixed": "same"}, number, metadata=metadata)
        configs.append(config)
    return configs


def ids(found: Any) -> list[str]:
    return [id_of(item.config) for item in found]


# -- put and get_tuple -------------------------------------------------------------------------------


def test_a_checkpoint_comes_back_with_everything_that_was_said_of_it(saver):
    checkpoint = checkpoint_of(
        {"n": 1, "text": "x"}, versions_seen={"node": {"n": 1}, "__input__": {}}, updated_channels=None
    )
    answer = saver.put(config_of("t"), checkpoint, metadata_of(3, run_id="r", score=1.5), {"n": 1, "text": 1})
    assert answer == config_of("t", checkpoint_id=checkpoint["id"])
    found = got(saver, answer)
    assert found.checkpoint == checkpoint
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "run_id": "r", "score": 1.5}
    assert found.parent_config is None and found.pending_writes == []
    assert saver.get(answer) == checkpoint


def test_without_an_id_the_newest_of_the_namespace_is_answered(saver):
    first, second, third = chain(saver)
    inner = chain(saver, ns="child:1", count=1)
    assert id_of(got(saver, config_of("t")).config) == id_of(third)
    assert id_of(got(saver, config_of("t", "child:1")).config) == id_of(inner[0])
    assert got(saver, second).parent_config == first
    assert got(saver, {"configurable": {"thread_id": "t"}}).checkpoint == got(saver, third).checkpoint


@pytest.mark.parametrize(
    "config",
    [
        config_of("nobody"),
        config_of("nobody", checkpoint_id=MISSING),
        config_of("t", checkpoint_id=MISSING),
        config_of("t", "elsewhere"),
    ],
)
def test_what_is_not_there_is_none(saver, config):
    chain(saver, count=1)
    assert saver.get_tuple(config) is None and saver.get(config) is None
    assert list(saver.list(config)) == []
    saver.delete_thread("nobody")


def test_a_new_process_reads_what_an_old_one_put(tmp_path):
    for kind in LASTING:
        url = url_of(kind, tmp_path)
        with HoldfastSaver.open(url) as saver:
            configs = chain(saver)
            saver.put_writes(configs[-1], [("n", 9)], "task", "path")
            before = [tuple(item) for item in saver.list(config_of("t"))]
        with HoldfastSaver.open(url) as saver:
            assert [tuple(item) for item in saver.list(config_of("t"))] == before
            put(saver, configs[-1], {"n": 4}, 4)
            assert channels(saver, config_of("t")) == {"n": 4}


def test_only_the_channels_of_a_checkpoint_come_back(saver):
    first = put(saver, config_of("t"), {"a": 1, "b": 2}, 1)
    second = checkpoint_of({"b": 2}, channel_versions={"b": 1})
    at = saver.put(first, second, metadata_of(2), {})
    assert channels(saver, at) == {"b": 2}
    third = checkpoint_of({"b": 3, "c": None}, channel_versions={"b": 2, "c": 2})
    assert channels(saver, saver.put(at, third, metadata_of(3), {"b": 2, "c": 2})) == {"b": 3, "c": None}
    assert channels(saver, first) == {"a": 1, "b": 2}


def test_a_channel_may_have_a_version_and_no_value(saver):
    checkpoint = checkpoint_of({"a": 1}, channel_versions={"a": 1, "gone": 2})
    at = saver.put(config_of("t"), checkpoint, metadata_of(1), {"a": 1, "gone": 2})
    assert got(saver, at).checkpoint == checkpoint


def test_channels_that_did_not_change_are_those_of_the_parent_also_on_a_branch(saver):
    first, second, _third = chain(saver)
    left = checkpoint_of({"n": 20, "fixed": "same"}, channel_versions={"n": 4, "fixed": 2})
    at = saver.put(second, left, metadata_of(3), {"n": 4})
    assert channels(saver, at) == {"n": 20, "fixed": "same"}
    other = put(saver, first, {"n": 30, "fixed": "other"}, 5)
    assert channels(saver, other) == {"n": 30, "fixed": "other"}
    assert channels(saver, at) == {"n": 20, "fixed": "same"} and got(saver, at).parent_config == second


def test_scalars_of_the_config_are_metadata_and_secret_keys_are_not(saver):
    config = {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", "user": "ann", "__inner": "x"},
        "metadata": {"tag": "blue", "long": {"no": "scalar"}},
    }
    put(saver, config, {"n": 1})
    metadata: Any = got(saver, config_of("t")).metadata
    assert metadata["tag"] == "blue" and metadata["user"] == "ann"
    assert "__inner" not in metadata and "thread_id" not in metadata and "checkpoint_ns" not in metadata


# -- an id that was put ------------------------------------------------------------------------------


def test_the_same_put_again_changes_nothing(saver):
    first, second, third = chain(saver)
    before = [tuple(item) for item in saver.list(config_of("t"))]
    checkpoint = got(saver, second).checkpoint
    assert saver.put(first, checkpoint, metadata_of(2), {"n": 2}) == second
    assert [tuple(item) for item in saver.list(config_of("t"))] == before
    assert id_of(got(saver, config_of("t")).config) == id_of(third)


def test_another_checkpoint_under_an_id_that_was_put_is_refused_and_history_stays(saver):
    first, second, _third = chain(saver)
    before = [tuple(item) for item in saver.list(config_of("t"))]
    checkpoint = got(saver, second).checkpoint
    changed = {**checkpoint, "channel_values": {"n": 99, "fixed": "same"}}
    with pytest.raises(CheckpointConflictError, match="put before"):
        saver.put(first, changed, metadata_of(2), {"n": 2})
    with pytest.raises(CheckpointConflictError, match="put before"):
        saver.put(config_of("t"), checkpoint, metadata_of(2), {"n": 2})
    assert [tuple(item) for item in saver.list(config_of("t"))] == before


def test_one_id_may_be_in_two_threads_and_in_two_namespaces(saver):
    checkpoint = checkpoint_of({"n": 1})
    for config in (config_of("t"), config_of("u"), config_of("t", "child:1")):
        saver.put(config, checkpoint, metadata_of(1), {"n": 1})
    other = {**checkpoint, "channel_values": {"n": 2}}
    saver.put(config_of("v"), other, metadata_of(1), {"n": 1})
    assert [channels(saver, config_of(name))["n"] for name in "tuv"] == [1, 1, 2]


# -- writes ------------------------------------------------------------------------------------------


def test_writes_come_in_the_order_of_path_task_and_index_and_only_on_their_checkpoint(saver):
    first, second = chain(saver, count=2)
    saver.put_writes(first, [("z", 1), ("a", 2)], "task-2", "b")
    saver.put_writes(first, [("m", 3)], "task-1", "b")
    saver.put_writes(first, [("last", HumanMessage("hi"))], "task-9", "a")
    assert got(saver, first).pending_writes == [
        ("task-9", "last", HumanMessage("hi")),
        ("task-1", "m", 3),
        ("task-2", "z", 1),
        ("task-2", "a", 2),
    ]
    assert got(saver, second).pending_writes == []


def test_a_write_that_is_there_stays_and_reserved_ones_are_replaced(saver):
    [at] = chain(saver, count=1)
    saver.put_writes(at, [("a", 1), ("b", 2)], "task")
    saver.put_writes(at, [("a", 10), ("b", 20), ("c", 30)], "task")
    assert got(saver, at).pending_writes == [("task", "a", 1), ("task", "b", 2), ("task", "c", 30)]
    saver.put_writes(at, [("__interrupt__", "first")], "task")
    saver.put_writes(at, [("__interrupt__", "second"), ("__error__", "e"), ("__resume__", [1])], "task")
    assert got(saver, at).pending_writes == [
        ("task", "__resume__", [1]),
        ("task", "__interrupt__", "second"),
        ("task", "__error__", "e"),
        ("task", "a", 1),
        ("task", "b", 2),
        ("task", "c", 30),
    ]
    saver.put_writes(at, [("d", 4), ("__error__", "other")], "task")
    assert [write[2] for write in got(saver, at).pending_writes or []] == [[1], "second", "other", 1, 2, 30]


def test_of_answers_that_come_with_the_same_update_the_last_one_stays_in_every_process(tmp_path):
    for kind in LASTING:
        url = url_of(kind, tmp_path)
        with HoldfastSaver.open(url) as saver:
            [at] = chain(saver, count=1)
            for answer in ("Ada", "no", "no"):
                saver.put_writes(at, [("log", ["note"]), ("__resume__", answer)], "task")
                assert got(saver, at).pending_writes == [
                    ("task", "__resume__", answer),
                    ("task", "log", ["note"]),
                ]
        with HoldfastSaver.open(url) as other:
            assert (got(other, at).pending_writes or [])[0] == ("task", "__resume__", "no")


def test_writes_may_come_before_the_checkpoint_they_belong_to(saver):
    checkpoint = checkpoint_of({"n": 1})
    at = config_of("t", checkpoint_id=checkpoint["id"])
    saver.put_writes(at, [("n", 5)], "task")
    assert saver.get_tuple(at) is None and list(saver.list(config_of("t"))) == []
    saver.put(config_of("t"), checkpoint, metadata_of(1), {"n": 1})
    assert got(saver, at).pending_writes == [("task", "n", 5)]


def test_writes_without_a_checkpoint_are_refused(saver):
    with pytest.raises(InvalidIdError, match="none is named"):
        saver.put_writes(config_of("t"), [("n", 1)], "task")


def test_the_same_write_again_records_nothing(saver):
    [at] = chain(saver, count=1)
    saver.put_writes(at, [("n", 5)], "task")
    before = saver._service.recording.event_seq("langgraph/t")
    saver.put_writes(at, [("n", 5)], "task")
    assert saver._service.recording.event_seq("langgraph/t") == before


# -- list ----------------------------------------------------------------------------------------------


def test_a_listing_is_the_newest_first_of_one_thread_or_of_all(saver):
    mine, other, inner = chain(saver), chain(saver, "u"), chain(saver, ns="child:1")
    everything = [*mine, *other, *inner]
    assert ids(saver.list(None)) == [id_of(config) for config in reversed(everything)]
    assert [item.config for item in saver.list(None)] == list(reversed(everything))
    assert ids(saver.list({"configurable": {"thread_id": "t"}})) == ids(
        item for item in saver.list(None) if item.config["configurable"]["thread_id"] == "t"
    )
    assert ids(saver.list(config_of("t", "child:1"))) == [id_of(config) for config in reversed(inner)]
    assert ids(saver.list(config_of("t"))) == [id_of(config) for config in reversed(mine)]
    assert [item.config["configurable"]["thread_id"] for item in saver.list(None, limit=4)] == [
        "t",
        "t",
        "t",
        "u",
    ]


def test_a_listing_is_bounded_by_before_limit_filter_and_id(saver):
    first, second, third = chain(saver, count=3, colour="red")
    blue = put(saver, third, {"n": 4}, 4, metadata={"colour": "blue", "step": 4})
    asked = config_of("t")
    assert ids(saver.list(asked, before=third)) == [id_of(second), id_of(first)]
    assert ids(saver.list(asked, before=third, limit=1)) == [id_of(second)]
    assert ids(saver.list(asked, limit=0)) == []
    assert ids(saver.list(asked, limit=99)) == [id_of(config) for config in (blue, third, second, first)]
    assert ids(saver.list(asked, filter={"colour": "red"})) == [
        id_of(config) for config in (third, second, first)
    ]
    assert ids(saver.list(asked, filter={"colour": "red", "step": 2})) == [id_of(second)]
    assert ids(saver.list(asked, filter={"colour": "red"}, before=third, limit=1)) == [id_of(second)]
    assert ids(saver.list(asked, filter={"absent": None, "colour": "blue"})) == [id_of(blue)]
    assert ids(saver.list(None, filter={"step": 1}, before=blue)) == [id_of(first)]
    assert ids(saver.list(second)) == [id_of(second)]


@pytest.mark.parametrize("key", ["'; drop table checkpoints; --", "a.b", "$", "\x00", "step') or 1=1 --"])
def test_a_filter_is_a_name_and_nothing_is_made_of_it(saver, key):
    chain(saver, count=1, **{key: "x"})
    put(saver, config_of("u"), {"n": 1})
    assert len(ids(saver.list(None, filter={key: "x"}))) == 1
    assert ids(saver.list(None, filter={key: "' or '1'='1"})) == []


# -- keeping (LangGraph's own suite calls the coroutines only) -----------------------------------------


def test_a_deleted_thread_is_gone_with_its_namespaces_and_may_begin_anew(saver):
    chain(saver), chain(saver, ns="child:1"), chain(saver, "u")
    [at] = chain(saver, "w", count=1)
    saver.put_writes(at, [("n", 1)], "task")
    saver.delete_thread("t")
    saver.delete_thread("w")
    assert list(saver.list(config_of("t"))) == [] and saver.get_tuple(config_of("t", "child:1")) is None
    assert {item.config["configurable"]["thread_id"] for item in saver.list(None)} == {"u"}
    chain(saver, count=1)
    assert channels(saver, config_of("t")) == {"n": 1, "fixed": "same"}
    assert got(saver, config_of("t")).pending_writes == []


def test_the_checkpoints_of_a_run_are_removed_in_every_thread_and_namespace(saver):
    first = chain(saver, count=2, run_id="r1")
    put(saver, first[-1], {"n": 3}, 3, metadata={"run_id": "r2"})
    chain(saver, ns="child:1", count=2, run_id="r1")
    chain(saver, "u", count=2, run_id="r1")
    saver.delete_for_runs(["r1", "nobody"])
    assert [item.metadata["run_id"] for item in saver.list(None)] == ["r2"]
    assert channels(saver, config_of("t")) == {"n": 3}
    saver.delete_for_runs([])


def test_a_copied_thread_is_the_same_under_another_name(saver):
    mine = [*chain(saver), *chain(saver, ns="child:1")]
    for config in mine:
        saver.put_writes(config, [("n", HumanMessage("w"))], "task", "p")
        saver.put_writes(config, [("__resume__", 1)], "task", "p")
    saver.copy_thread("t", "copy")
    originals, copies = (
        list(saver.list({"configurable": {"thread_id": "t"}})),
        list(saver.list({"configurable": {"thread_id": "copy"}})),
    )
    assert [item.checkpoint for item in copies] == [item.checkpoint for item in originals]
    assert [item.metadata for item in copies] == [item.metadata for item in originals]
    assert [item.pending_writes for item in copies] == [item.pending_writes for item in originals]
    assert ids(copies) == ids(originals)
    put(saver, copies[0].config, {"n": 99}, 9)
    assert len(ids(saver.list({"configurable": {"thread_id": "t"}}))) == 6
    saver.delete_thread("t")
    assert len(ids(saver.list({"configurable": {"thread_id": "copy"}}))) == 7


def test_a_copy_of_a_copy_takes_further_writes_where_the_first_had_them(saver):
    [at] = chain(saver, count=1)
    saver.put_writes(at, [("__interrupt__", "?")], "task")
    saver.put_writes(at, [("n", 5)], "task")
    saver.copy_thread("t", "copy")
    copied = got(saver, config_of("copy"))
    saver.put_writes(config_of("copy", checkpoint_id=id_of(copied.config)), [("n", 6)], "task")
    assert got(saver, config_of("copy")).pending_writes == copied.pending_writes


def test_pruning_keeps_the_newest_of_each_namespace_or_nothing(saver):
    mine, inner = chain(saver), chain(saver, ns="child:1")
    saver.put_writes(mine[-1], [("n", 5)], "task")
    other = chain(saver, "u")
    saver.prune(["t", "nobody"])
    left = saver.list({"configurable": {"thread_id": "t"}})
    assert ids(left) == [id_of(inner[-1]), id_of(mine[-1])]
    assert got(saver, config_of("t")).pending_writes == [("task", "n", 5)]
    assert saver.get_tuple(mine[0]) is None and len(ids(saver.list(config_of("u")))) == len(other)
    saver.prune(["t"], strategy="delete")
    assert list(saver.list(config_of("t"))) == []
    with pytest.raises(ValueError, match="keep_latest or delete"):
        saver.prune(["u"], strategy="everything")


def test_a_pruned_thread_goes_on(saver):
    mine = chain(saver)
    saver.prune(["t"])
    after = put(saver, mine[-1], {"n": 4, "fixed": "same"}, 4)
    assert channels(saver, after) == {"n": 4, "fixed": "same"}
    assert got(saver, after).parent_config == mine[-1]


# -- versions, copies, opening -------------------------------------------------------------------------


def test_versions_grow_and_those_of_other_savers_are_carried_on():
    with HoldfastSaver.open("memory:") as saver:
        assert [saver.get_next_version(None, None), saver.get_next_version(4, None)] == [1, 5]
        theirs = f"{7:032}.{0.5:016}"
        after = saver.get_next_version(theirs, None)
        assert isinstance(after, str) and after > theirs and after.startswith(f"{8:032}.")


def test_a_shallow_copy_with_an_allow_list_is_a_saver_of_the_same_store():
    with HoldfastSaver.open("memory:") as saver:
        twin, listed = copy.copy(saver), saver.with_allowlist([("tests.some", "Thing")])
        chain(twin, count=1)
        assert isinstance(listed, BaseCheckpointSaver)
        assert got(listed, config_of("t")).checkpoint == got(saver, config_of("t")).checkpoint
        assert saver.config_specs == []


def test_an_open_service_stays_open_and_its_own_is_closed(tmp_path):
    with holdfast.open(url_of("file", tmp_path)) as service:
        chain(HoldfastSaver(service))
        assert channels(HoldfastSaver(service), config_of("t"))["n"] == 3
        state = service.load_latest("langgraph/t")
        assert state is not None and state.context == {"n": 3, "fixed": "same"}
    with HoldfastSaver.open(url_of("file", tmp_path)) as saver:
        pass
    with pytest.raises(StoreClosedError):
        chain(saver)


def test_messages_are_messages_of_the_workflow(tmp_path):
    with HoldfastSaver.open(url_of("file", tmp_path)) as saver:
        put(saver, config_of("t"), {"messages": [HumanMessage("hi", id="1")], "n": 1})
        state = saver._service.load_latest("langgraph/t")
    assert state is not None
    assert [message["content"] for message in state.messages] == ["hi"] and state.context == {"n": 1}


def test_the_trail_tells_what_was_done_to_a_thread(tmp_path):
    with HoldfastSaver.open(url_of("file", tmp_path)) as saver:
        [at] = chain(saver, count=1)
        saver.put_writes(at, [("n", 1)], "task")
        kinds = [event.type for event in saver._service.events("langgraph/t")]
        assert kinds == ["CHECKPOINT_CREATED", "LANGGRAPH_WRITES"]
        saver.delete_thread("t")


def test_coroutines_do_what_the_methods_do(tmp_path):
    async def use() -> None:
        async with HoldfastSaver.open_async(url_of("sqlite", tmp_path)) as saver:
            checkpoint = checkpoint_of({"n": 1})
            at = await saver.aput(config_of("t"), checkpoint, metadata_of(1, run_id="r"), {"n": 1})
            await saver.aput_writes(at, [("n", 2)], "task")
            found = await saver.aget_tuple(config_of("t"))
            assert found is not None and found.checkpoint == checkpoint
            assert found.pending_writes == [("task", "n", 2)] and await saver.aget(at) == checkpoint
            await saver.acopy_thread("t", "u")
            assert len([item async for item in saver.alist(None)]) == 2
            history = await saver.aget_delta_channel_history(config=at, channels=["n"])
            assert history == {"n": {"writes": []}}
            await saver.aprune(["u"])
            await saver.adelete_thread("u")
            await saver.adelete_for_runs(["r"])
            assert [item async for item in saver.alist(None)] == []

    asyncio.run(use())


def test_what_is_refused_inside_of_a_coroutine_is_told_there():
    async def use() -> None:
        async with HoldfastSaver.open_async("memory:") as saver:
            checkpoint = checkpoint_of({"odd": object()})
            with pytest.raises(UnsupportedTypeError):
                await saver.aput(config_of("t"), checkpoint, metadata_of(1), {"odd": 1})

    asyncio.run(use())
