"""An agent that goes on where it was, for processes that may be killed after any commit.

It tells in a file what it does: `ran NAME` when a step runs, `kept NAME` once the saver has answered for it,
or when a new process finds it kept, and `ended STATE`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_graphs import asked, whole_agent

ANSWERS = {"review": "yes", "check": "fine"}
T: Any = {"configurable": {"thread_id": "t"}}
#: So many times a person is asked, and some more.
ORDERS_MAX = 10


def main(url: str, log: str, forget_after: int = 0) -> None:
    """Talk to the end; `forgets:` is a saver that keeps nothing, and is killed after so many writes."""
    told = _telling(log)
    if url == "forgets:":
        talk(_ForgetfulSaver(told, forget_after), told)
        return
    with HoldfastSaver.open(url) as saver:
        talk(_ToldSaver(saver._service, told), told)


def _telling(log: str) -> Callable[[str], None]:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return lambda text: _tell(handle, text)


def _tell(handle: int, text: str) -> None:
    os.write(handle, text.encode() + b"\n")


def talk(saver: BaseCheckpointSaver, told: Callable[[str], None]) -> None:
    """Give the agent what it needs until it has ended."""
    for item in saver.list(T):
        writes = [value for _, channel, value in item.pending_writes or () if channel == "done"]
        for names in (*writes, item.checkpoint["channel_values"].get("done", [])):
            _tell_kept(told, names)
    graph = whole_agent(lambda name: told(f"ran {name}")).compile(checkpointer=saver)
    for _ in range(ORDERS_MAX):
        snapshot = graph.get_state(T)
        # What is next leaves out a task whose writes were kept, and the step after it was not.
        if snapshot.created_at is not None and not snapshot.tasks:
            told("ended " + json.dumps(_ended(snapshot.values)))
            return
        graph.invoke(_order(snapshot), T, durability="sync")


def _order(snapshot: Any) -> Any:
    if snapshot.created_at is None:
        return asked()
    if snapshot.interrupts:
        return Command(resume=ANSWERS[snapshot.interrupts[0].value["question"]])
    return None


def _ended(values: Any) -> dict[str, Any]:
    said = [[message.type, message.id, message.content] for message in values["messages"]]
    return {**values, "messages": said}


def _tell_kept(told: Callable[[str], None], names: Sequence[str]) -> None:
    for name in names:
        told(f"kept {name}")


class _ToldSaver(HoldfastSaver):
    """Tells what it has answered for."""

    def __init__(self, service: Any, told: Callable[[str], None]) -> None:
        super().__init__(service)
        self._told = told

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        super().put_writes(config, writes, task_id, task_path)
        for channel, value in writes:
            if channel == "done":
                _tell_kept(self._told, value)


class _ForgetfulSaver(InMemorySaver):
    """Answers as if it had kept something."""

    def __init__(self, told: Callable[[str], None], forget_after: int) -> None:
        super().__init__()
        self._told = told
        self._left = forget_after

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        super().put_writes(config, writes, task_id, task_path)
        for channel, value in writes:
            if channel == "done":
                _tell_kept(self._told, value)
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
