"""LangGraph under one saver: its own, or Holdfast's; `langgraph_savers` has them.

A state is put as a superstep of a graph puts it, one channel for each key, the changed ones with a new
version; the graph's own work is not in it. A chat is a real graph, invoked once for each turn: that is three
checkpoints and two sets of writes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from benchmarks.compare.contender import Contender, NoneSuchError, Work
from benchmarks.compare.states import Changed, State

#: Steps of one run; LangGraph stops at 25 unless told otherwise.
RECURSION_LIMIT = 1_000_000


def _appended(messages: list[Any] | None, writes: Any) -> list[Any]:
    return [*(messages or []), *(message for write in writes for message in write)]


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]


class DeltaChat(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_appended)]


class Looping(TypedDict):
    messages: list[Any]
    plan: str
    done: int


class LangGraph(Contender):
    def __init__(self, saver: AbstractContextManager[Any], chat: type = Chat) -> None:
        self._stack = ExitStack()
        self._saver = self._stack.enter_context(saver)
        if hasattr(self._saver, "setup"):
            self._saver.setup()
        self._chat_type = chat
        self._app: Any = None
        self._answer: list[Any] = []
        self._configs: dict[str, Any] = {}
        self._versions: dict[str, dict[str, Any]] = {}

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        config = self._configs.get(workflow) or _newest(workflow)
        versions = self._versions.setdefault(workflow, {})
        written = changed | (state.keys() - versions.keys())
        new = {key: self._saver.get_next_version(versions.get(key), None) for key in written}
        versions |= new
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=-1))
        checkpoint["channel_values"] = dict(state)
        checkpoint["channel_versions"] = dict(versions)
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        self._configs[workflow] = self._saver.put(config, checkpoint, metadata, new)

    def restore(self, workflow: str) -> State | None:
        found = self._saver.get_tuple(_newest(workflow))
        return dict(found.checkpoint["channel_values"]) if found else None

    def say(self, workflow: str, step: int, state: State, added: list[dict[str, str]]) -> None:
        asked, answered = added
        self._answer = [AIMessage(answered["content"])]
        update: Any = {"messages": [HumanMessage(asked["content"])]}
        self._chat().invoke(update, _newest(workflow), durability="sync")

    def heard(self, workflow: str) -> list[dict[str, str]]:
        messages = self._chat().get_state(_newest(workflow)).values["messages"]
        roles = {"human": "user", "ai": "assistant"}
        return [{"role": roles[one.type], "content": one.content} for one in messages]

    def listed(self, workflow: str, limit: int) -> int:
        return len(list(self._saver.list(_newest(workflow), limit=limit)))

    def prune(self, workflow: str, keep: int) -> str:
        try:
            self._saver.prune([workflow], strategy="keep_latest")
        except NotImplementedError as error:
            raise NoneSuchError("none: a thread is deleted as a whole") from error
        return "the newest alone"

    def proceed(self, workflow: str, first: State, work: Work, steps: int, *, resume: bool) -> None:
        app = _looping(work, steps).compile(checkpointer=self._saver)
        config: Any = {**_newest(workflow), "recursion_limit": RECURSION_LIMIT}
        app.invoke(None if resume else first, config, durability="sync")

    def close(self) -> None:
        self._stack.close()

    def _chat(self) -> Any:
        if self._app is None:
            self._app = _chatting(self._chat_type, lambda: self._answer).compile(checkpointer=self._saver)
        return self._app


def _newest(workflow: str) -> Any:
    return {"configurable": {"thread_id": workflow, "checkpoint_ns": ""}}


def _chatting(chat: type, answer: Callable[[], list[Any]]) -> Any:
    graph: Any = StateGraph(chat)
    graph.add_node("answer", lambda state: {"messages": answer()})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph


def _looping(work: Work, steps: int) -> Any:
    graph: Any = StateGraph(Looping)
    graph.add_node("work", lambda state: work(state["done"], state))
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["done"] < steps else END)
    return graph


class Unsaved(Contender):
    """The chat without a checkpointer: what LangGraph itself takes for a turn."""

    def __init__(self, url: str, writers: int) -> None:
        self._said: list[Any] = []
        self._answer: list[Any] = []
        self._app = _chatting(Chat, lambda: self._answer).compile()

    def say(self, workflow: str, step: int, state: State, added: list[dict[str, str]]) -> None:
        asked, answered = added
        self._answer = [AIMessage(answered["content"])]
        self._said = self._app.invoke({"messages": [*self._said, HumanMessage(asked["content"])]})["messages"]

    def heard(self, workflow: str) -> list[dict[str, str]]:
        raise NoneSuchError("none")

    def close(self) -> None:
        self._said = []
