"""Graphs as people write them: an agent with tools, questions to a person, graphs in graphs, branches."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Send, interrupt

Told = Callable[[str], None]


class ScriptedModel(BaseChatModel):
    """A model that says the same to the same messages: it asks for a tool, then it tells what that said."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    last = messages[-1]
    number = len(messages)
    if isinstance(last, ToolMessage):
        return AIMessage(f"It is {last.content}.", id=f"ai-{number}")
    asked = {"name": "multiply", "args": {"a": number, "b": 6}, "id": f"call-{number}"}
    return AIMessage("", tool_calls=[asked], id=f"ai-{number}")


@tool(response_format="content_and_artifact")
def multiply(a: int, b: int) -> tuple[str, dict[str, Any]]:
    """Multiply two numbers."""
    return str(a * b), {"factors": [a, b]}


def once_each(known: list[str], more: list[str]) -> list[str]:
    """Add what is not known yet: a graph inside answers with what it was given, too."""
    return [*known, *(name for name in more if name not in known)]


class Talk(TypedDict, total=False):
    """What an agent keeps."""

    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[str], once_each]
    approved: str
    parts: Annotated[list[int], operator.add]


def silent(_: str) -> None:
    """Tell nobody."""


def agent(told: Told = silent) -> StateGraph:
    """Make an agent that calls a tool."""
    model, tools = ScriptedModel(), ToolNode([multiply])

    def think(state: Talk) -> Any:
        label = f"think {len(state['messages'])}"
        told(label)
        return {"messages": [model.invoke(state["messages"])], "done": [label]}

    def act(state: Talk, config: RunnableConfig) -> Any:
        label = f"act {len(state['messages'])}"
        told(label)
        said = tools.invoke(state, config)["messages"]
        return {"messages": [said[0].model_copy(update={"id": f"tool-{label}"})], "done": [label]}

    graph = StateGraph(Talk)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition, {"tools": "act", END: END})
    graph.add_edge("act", "think")
    return graph


def whole_agent(told: Told = silent, *, inner_checkpointer: bool | None = None) -> StateGraph:
    """Make an agent with a tool, a person who is asked, a graph inside that asks too, and branches."""
    graph = agent(told)
    inner = StateGraph(Talk)
    inner.add_node("draft", _noting("draft", told))
    inner.add_node("check", _asking("check", told))
    inner.add_edge(START, "draft")
    inner.add_edge("draft", "check")
    graph.add_node("review", _asking("review", told))
    graph.add_node("inner", inner.compile(checkpointer=inner_checkpointer))
    graph.add_node("part", _part(told))
    graph.add_node("sum", _sum(told))
    graph.branches["think"].clear()
    graph.add_conditional_edges("think", tools_condition, {"tools": "act", END: "review"})
    graph.add_edge("review", "inner")
    graph.add_conditional_edges("inner", _spread, ["part"])
    graph.add_edge("part", "sum")
    return graph


def _noting(name: str, told: Told) -> Callable[[Talk], Any]:
    def node(state: Talk) -> Any:
        told(name)
        return {"done": [name]}

    return node


def _asking(name: str, told: Told) -> Callable[[Talk], Any]:
    def node(state: Talk) -> Any:
        answer = interrupt({"question": name, "last": state["messages"][-1]})
        told(name)
        return {"done": [name], "approved": f"{name}: {answer}"}

    return node


def _spread(state: Talk) -> list[Send]:
    return [Send("part", {"number": number}) for number in range(3)]


def _part(told: Told) -> Callable[[Any], Any]:
    def node(state: Any) -> Any:
        label = f"part {state['number']}"
        told(label)
        return {"done": [label], "parts": [state["number"] ** 2]}

    return node


def _sum(told: Told) -> Callable[[Talk], Any]:
    def node(state: Talk) -> Any:
        told("sum")
        return {"done": ["sum"], "messages": [AIMessage(f"{sum(state['parts'])} in all", id="sum")]}

    return node


def asked(text: str = "What is it?") -> dict[str, Any]:
    """Begin a talk."""
    return {"messages": [HumanMessage(text, id=f"human-{text}")]}


class Counting(TypedDict):
    """Something to count with."""

    items: Annotated[list[Any], operator.add]


def counter(steps: int = 3, kept: type = Counting) -> StateGraph:
    """Make a graph of some steps one after another, each of which adds its name."""
    graph: StateGraph = StateGraph(kept)
    names = [f"step{number}" for number in range(1, steps + 1)]
    for name in names:
        graph.add_node(name, _adding(name))
    for one, next_one in pairwise([START, *names]):
        graph.add_edge(one, next_one)
    return graph


def _adding(name: str) -> Callable[[Any], Any]:
    def node(state: Any) -> Any:
        return {"items": [name]}

    return node


def joined(left: list[Any], writes: Sequence[Sequence[Any]]) -> list[Any]:
    """Add all that was written to a delta channel; in which batches does not matter."""
    return [*left, *(item for write in writes for item in write)]


def delta_counter(frequency: int, steps: int = 3) -> StateGraph:
    """Make the same graph over a channel whose value is rebuilt from what was written."""
    items = Annotated[list[Any], DeltaChannel(joined, list, snapshot_frequency=frequency)]
    kept: Any = TypedDict("kept", {"items": items})
    return counter(steps, kept)
