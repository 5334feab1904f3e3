"""Agents for the tests: real ones, whose models are functions that note what they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from holdfast.integrations.pydantic_ai import HoldfastDurability

#: What a model answers, given what tools have returned so far.
Answer = Callable[[list[Any]], ModelResponse]


def returned(messages: list[ModelMessage]) -> list[Any]:
    """Answer what tools returned, in order."""
    return [part.content for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]


def model(answer: Answer, noted: list[str]) -> FunctionModel:
    """Make a model that notes each time it is asked."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        noted.append("model")
        return answer(returned(messages))

    return FunctionModel(respond)


def calls(*calls: tuple[str, dict[str, Any]]) -> ModelResponse:
    """Make an answer that calls tools, all at once."""
    return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in calls])


def says(text: object) -> ModelResponse:
    """Make an answer that is the end."""
    return ModelResponse(parts=[TextPart(str(text))])


def durable_agent(
    answer: Answer, noted: list[str], *tools: Callable[..., Any], **more: Any
) -> Agent[None, Any]:
    """Make an agent whose operations are recorded in whichever workflow it runs."""
    given = {"name": "clerk", "capabilities": [HoldfastDurability()], **more}
    return Agent(model(answer, noted), toolsets=[FunctionToolset(list(tools), id="shop")], **given)
