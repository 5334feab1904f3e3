"""HoldfastSaver beside LangGraph's own savers: the same graph, the same states, every put synced."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from benchmarks.measure import Row, disk_usage, interleaved, micros, p50, p95
from benchmarks.peers.server import Server, running
from holdfast.domain.errors import StateSizeWarning
from holdfast.integrations.langgraph import HoldfastSaver

GROUP = "langgraph"
SIZES = {"2 KB": (2_000, 300), "20 KB": (20_000, 300), "100 KB": (100_000, 150), "1 MB": (1_000_000, 60)}
TURNS = 1_000
LISTED = 100
WORKERS = 8
WORKED = 300

_WORDS = [
    "".join(random.Random(seed).choices("etaoinshrdlu", k=random.Random(seed).randint(2, 9)))
    for seed in range(3_000)
]


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]


@dataclass
class Lane:
    """One saver, and the thread that it is measured on."""

    saver: Any
    words: random.Random
    config: Any = None
    version: Any = None
    steps: int = 0

    def put(self, size: int) -> Callable[[], None]:
        """Answer a call that puts a state in which every channel is new, made beforehand."""
        made = iter([_channels(self.words, size) for _ in range(SIZES_BY_BYTES[size] + 1)])

        def call() -> None:
            checkpoint = empty_checkpoint()
            checkpoint["id"] = str(uuid6(clock_seq=-1))
            checkpoint["channel_values"] = next(made)
            self.version = self.saver.get_next_version(self.version, None)
            versions = dict.fromkeys(checkpoint["channel_values"], self.version)
            checkpoint["channel_versions"] = versions
            self.steps += 1
            metadata: Any = {"source": "loop", "step": self.steps, "parents": {}}
            self.config = self.saver.put(self.config, checkpoint, metadata, versions)

        return call


SIZES_BY_BYTES = dict(SIZES.values())


def run(folder: Path) -> list[Row]:
    folder.mkdir(parents=True)
    rows: list[Row] = []
    with warnings.catch_warnings(), running(folder / "server") as server:
        warnings.simplefilter("ignore", StateSizeWarning)
        for name, (size, rounds) in SIZES.items():
            with _lanes(folder / name.replace(" ", ""), server) as lanes:
                rows += _puts(name, size, rounds, lanes)
                rows += _reads(name, lanes)
        rows += _chats(folder / "chat")
        rows += _crowd(server)
    return rows


@contextmanager
def _lanes(folder: Path, server: Server) -> Iterator[dict[str, Lane]]:
    folder.mkdir()
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresSaver.from_conn_string(server.new_database()))
        postgres.setup()
        savers = {
            "SqliteSaver": stack.enter_context(SqliteSaver.from_conn_string(str(folder / "theirs.db"))),
            "file": stack.enter_context(HoldfastSaver.open(f"file:{folder / 'files'}")),
            "sqlite": stack.enter_context(HoldfastSaver.open(f"sqlite:{folder / 'ours.db'}")),
            "PostgresSaver": postgres,
            "postgres": stack.enter_context(HoldfastSaver.open(server.new_database())),
        }
        place = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        yield {name: Lane(saver, random.Random(7), place) for name, saver in savers.items()}


def _puts(name: str, size: int, rounds: int, lanes: dict[str, Lane]) -> list[Row]:
    times = dict(zip(lanes, interleaved(rounds, *(lane.put(size) for lane in lanes.values())), strict=True))
    rows = []
    for ours, theirs in (("file", "SqliteSaver"), ("sqlite", "SqliteSaver"), ("postgres", "PostgresSaver")):
        if size >= 1_000_000:
            ratio = p95(times[theirs]) / p95(times[ours])
            told = (
                f"p95 {micros(p95(times[ours]))}, {theirs} {micros(p95(times[theirs]))}: {ratio:.1f}x lower"
            )
            rows.append(Row(GROUP, f"put {name}, {ours}", told, "p95 at least 3x lower", ratio >= 3))
        else:
            ratio = p50(times[ours]) / p50(times[theirs])
            told = f"p50 {micros(p50(times[ours]))}, {theirs} {micros(p50(times[theirs]))}: {ratio:.2f}x"
            has_bar = size <= 20_000 and ours != "postgres"
            rows.append(
                Row(
                    GROUP,
                    f"put {name}, {ours}",
                    told,
                    "at most 1.2x" if has_bar else "",
                    ratio <= 1.2 if has_bar else None,
                )
            )
    return rows


def _reads(name: str, lanes: dict[str, Lane]) -> list[Row]:
    newest: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    gets = interleaved(100, *(_getting(lane.saver, newest) for lane in lanes.values()))
    lists = interleaved(10, *(_listing(lane.saver, newest) for lane in lanes.values()))
    get, listed = dict(zip(lanes, gets, strict=True)), dict(zip(lanes, lists, strict=True))
    rows = []
    for ours, theirs in (("file", "SqliteSaver"), ("sqlite", "SqliteSaver"), ("postgres", "PostgresSaver")):
        told = f"p50 {micros(p50(get[ours]))}, {theirs} {micros(p50(get[theirs]))}"
        has_bar = name != "1 MB"
        rows.append(
            Row(
                GROUP,
                f"get_tuple {name}, {ours}",
                told,
                "below 200 us" if has_bar else "",
                p50(get[ours]) < 2e-4 if has_bar else None,
            )
        )
        ratio = p50(listed[theirs]) / p50(listed[ours])
        bar = 10 if ours == "postgres" or name in ("100 KB", "1 MB") else 1
        told = f"p50 {micros(p50(listed[ours]))}, {theirs} {micros(p50(listed[theirs]))}: {ratio:.1f}x faster"
        rows.append(Row(GROUP, f"list({LISTED}) {name}, {ours}", told, f"at least {bar}x", ratio >= bar))
    return rows


def _getting(saver: Any, config: Any) -> Callable[[], Any]:
    return lambda: saver.get_tuple(config)


def _listing(saver: Any, config: Any) -> Callable[[], Any]:
    return lambda: list(saver.list(config, limit=LISTED))


def _chats(folder: Path) -> list[Row]:
    """Talk a thousand turns without a checkpointer, with theirs and with ours."""
    folder.mkdir()
    floor = _talk(None)
    with SqliteSaver.from_conn_string(str(folder / "theirs.db")) as saver:
        theirs = _talk(saver)
    their_bytes = disk_usage(folder)
    (folder / "theirs.db").unlink()
    rows = []
    for store, url in (
        ("file", f"file:{folder / 'files'}"),
        ("sqlite", f"sqlite:{folder / 'sqlite' / 'ours.db'}"),
    ):
        (folder / "sqlite").mkdir(exist_ok=True)
        with HoldfastSaver.open(url) as saver:
            ours = _talk(saver)
        megabytes = disk_usage(folder / ("files" if store == "file" else "sqlite")) / 1e6
        told = f"{megabytes:.1f} MB, SqliteSaver {their_bytes / 1e6:.0f} MB"
        rows.append(
            Row(GROUP, f"{TURNS:,}-turn chat, {store}, on disk", told, "at most 8 MB", megabytes <= 8)
        )
        ratio = (theirs - floor) / (ours - floor)
        told = (
            f"{ours - floor:.1f} s over {floor:.1f} s, SqliteSaver {theirs - floor:.1f} s: {ratio:.1f}x lower"
        )
        rows.append(Row(GROUP, f"{TURNS:,}-turn chat, {store}, cost", told, "at least 4x lower", ratio >= 4))
    return rows


def _talk(saver: Any) -> float:
    words = random.Random(11)

    def answer(state: Chat) -> dict[str, Any]:
        return {"messages": [AIMessage(_text(words, 1_200))]}

    graph = StateGraph(Chat)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    app = graph.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "chat"}}
    said: list[Any] = []
    began = time.perf_counter()
    for _ in range(TURNS):
        message = HumanMessage(_text(words, 600))
        if saver is None:
            said = app.invoke({"messages": [*said, message]})["messages"]
        else:
            app.invoke({"messages": [message]}, config, durability="sync")
    return time.perf_counter() - began


def _crowd(server: Server) -> list[Row]:
    """Let eight workers put states of 20 KB, each on a thread of its own, through one saver."""
    with ConnectionPool(
        server.new_database(), max_size=WORKERS, kwargs={"autocommit": True, "row_factory": dict_row}
    ) as pool:
        saver = PostgresSaver(pool)  # type: ignore[arg-type]
        saver.setup()
        theirs = _worked(saver)
    with HoldfastSaver.open(server.new_database()) as ours_saver:
        ours = _worked(ours_saver)
    told = f"{ours:.0f} puts/s, PostgresSaver on a pool {theirs:.0f}: {ours / theirs:.1f}x"
    return [Row(GROUP, f"{WORKERS} workers, 20 KB, postgres", told, "at least 2x", ours >= 2 * theirs)]


def _worked(saver: Any) -> float:
    places = [{"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}} for number in range(WORKERS)]
    puts = [Lane(saver, random.Random(at), place).put(20_000) for at, place in enumerate(places)]

    def work(put: Callable[[], None]) -> int:
        for _ in range(WORKED):
            put()
        return WORKED

    with ThreadPoolExecutor(WORKERS) as workers:
        began = time.perf_counter()
        done = sum(workers.map(work, puts))
        return done / (time.perf_counter() - began)


def _channels(words: random.Random, size: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": _text(words, 1_000)} for _ in range(max(1, size // 1_000))]
    return {"messages": messages, "topic": _text(words, 100)}


def _text(words: random.Random, length: int) -> str:
    text = " ".join(words.choices(_WORDS, k=length // 3))
    return text[:length]
