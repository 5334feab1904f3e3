"""What a listing answers reads no state until somebody looks, and is a tuple as LangGraph knows it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple

from holdfast.application.recording import Recording
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_listing import listed
from tests.integrations.langgraph_stores import KINDS, channels, config_of, got, put, url_of


class Looks:
    """Counts how often a state is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = Recording.state

        def counting(recording: Recording, workflow_id: str, sequence: int) -> Any:
            self.count += 1
            return read(recording, workflow_id, sequence)

        monkeypatch.setattr(Recording, "state", counting)


def fill(saver: HoldfastSaver, thread_id: str = "t", count: int = 5) -> None:
    config = config_of(thread_id)
    for number in range(1, count + 1):
        config = put(
            saver, config, {"n": number, "text": "words " * 50}, number, metadata={"run_id": f"r{number}"}
        )
        saver.put_writes(config, [("n", number)], "task")


@pytest.mark.parametrize("kind", KINDS)
def test_listing_decodes_no_state(kind: str, tmp_path, monkeypatch):
    url = url_of(kind, tmp_path)
    if kind == "memory":
        with HoldfastSaver.open(url) as saver:
            fill(saver)
            check_listing(saver, Looks(monkeypatch))
        return
    with HoldfastSaver.open(url) as saver:
        fill(saver)
    with HoldfastSaver.open(url) as saver:
        check_listing(saver, Looks(monkeypatch))


def check_listing(saver: HoldfastSaver, looks: Looks) -> None:
    found = list(saver.list(config_of("t"), filter={"source": "loop"}, limit=4))
    assert [item.metadata["step"] for item in found] == [5, 4, 3, 2]
    assert all(item.config["configurable"]["checkpoint_id"] for item in found)
    assert found[0].parent_config == {"configurable": found[1].config["configurable"]}
    assert looks.count == 0
    assert found[2].checkpoint["channel_values"]["n"] == 3
    assert found[2].checkpoint["channel_values"]["n"] == 3
    assert looks.count == 1


def test_a_filter_that_nothing_fits_reads_nothing_either(monkeypatch):
    with HoldfastSaver.open("memory:") as saver:
        fill(saver)
        looks = Looks(monkeypatch)
        assert list(saver.list(None, filter={"step": 99})) == [] and looks.count == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_saver_may_be_used_inside_of_its_own_listing(kind: str, tmp_path):
    with HoldfastSaver.open(url_of(kind, tmp_path)) as saver:
        fill(saver)
        seen = []
        for found in saver.list(config_of("t")):
            assert got(saver, found.config).checkpoint == found.checkpoint
            put(saver, config_of("other"), {"n": found.checkpoint["channel_values"]["n"]})
            saver.put_writes(found.config, [("more", 1)], "later")
            seen += [inner.metadata["step"] for inner in saver.list(config_of("t"), limit=1)]
        assert seen == [5] * 5
        assert len(list(saver.list(config_of("other")))) == 5


def test_a_thread_deleted_while_it_is_listed_is_told_and_nothing_else_is_answered():
    with HoldfastSaver.open("memory:") as saver:
        fill(saver)
        items = saver.list(config_of("t"))
        assert next(items).metadata["step"] == 5
        saver.delete_thread("t")
        assert saver.get_tuple(config_of("t")) is None
        assert [item.metadata["step"] for item in items] == [4, 3, 2, 1]


def test_what_is_listed_equals_what_is_asked_for_one_by_one():
    with HoldfastSaver.open("memory:") as saver:
        fill(saver)
        for found in saver.list(config_of("t")):
            # Which of them was asked for by its id is told in the config only.
            asked = got(saver, found.config)._replace(config=found.config)
            assert found == asked and asked == found
            assert isinstance(found, CheckpointTuple) and repr(found) == repr(asked)
            assert tuple(found) == tuple(asked) and found[1] == asked.checkpoint and found[1:3] == asked[1:3]
            config, checkpoint, metadata, _, writes = found
            assert (config, checkpoint, metadata, writes) == (*asked[:3], asked.pending_writes)
            assert len(found) == 5


def test_a_part_is_made_once_and_only_when_it_is_looked_at():
    made: list[str] = []

    def make(name: str, value: Any) -> Any:
        made.append(name)
        return value

    item = listed({}, lambda: make("checkpoint", {"v": 4}), {}, None, lambda: make("writes", []))
    assert made == [] and item.metadata == {}
    assert item.checkpoint is item[1] and item.pending_writes == [] and item[-1] == []
    assert made == ["checkpoint", "writes"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(item)


def test_an_asynchronous_listing_hands_over_whole_tuples():
    async def listing() -> list[CheckpointTuple]:
        async with HoldfastSaver.open_async("memory:") as saver:
            await asyncio.to_thread(fill, saver)
            return [item async for item in saver.alist(config_of("t"), limit=2)]

    found = asyncio.run(listing())
    assert [type(item) for item in found] == [CheckpointTuple] * 2
    assert [item.checkpoint["channel_values"]["n"] for item in found] == [5, 4]


def test_channels_of_a_listed_checkpoint_belong_to_who_asked():
    with HoldfastSaver.open("memory:") as saver:
        put(saver, config_of("t"), {"items": [1]})
        [found] = saver.list(config_of("t"))
        found.checkpoint["channel_values"]["items"].append(2)
        assert channels(saver, config_of("t")) == {"items": [1]}
