"""Pipelines for the tests of the integration with Haystack, and components that tell when they run."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"

from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.components.joiners import BranchJoiner
from haystack.dataclasses import ChatMessage
from pydantic import BaseModel

#: Names of the components that ran, in order.
ran: list[str] = []

QUESTION = "How does kelp hold on?"
INPUTS = {"archive": {"query": "kelp"}, "prompt": {"question": QUESTION}, "answer": {"query": QUESTION}}


class Tide(Enum):
    """A type of the application's own."""

    HIGH = "high"


class Reading(BaseModel):
    """Another."""

    depth_metres: float


@component
class Archive:
    """Finds a document, unless it is told to fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        """Find it."""
        ran.append("archive")
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the archive is closed")
        return {"documents": [Document(content=f"About {query} \x00", meta={"type": "os.system"})]}


@component
class Judge:
    """Sends a text around until it is long enough."""

    @component.output_types(again=str, good=str)
    def run(self, text: str) -> dict[str, Any]:
        """Judge it."""
        ran.append(f"judge {text}")
        return {"good": text} if len(text) >= 4 else {"again": text + "x"}


@component
class Adder:
    """Adds what it gets from any number of senders."""

    def __init__(self, name: str, senders: int) -> None:
        self.name = name
        component.set_input_types(self, **{f"in{at}": int for at in range(senders)})

    @component.output_types(total=int)
    def run(self, **numbers: int) -> dict[str, Any]:
        """Add them up."""
        ran.append(self.name)
        return {"total": 1 + sum(numbers.values())}


@component
class Answers:
    """Answers whatever it was made with."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @component.output_types(value=object)
    def run(self, go: bool) -> dict[str, Any]:
        """Answer it."""
        ran.append("answers")
        return {"value": self.value}


@component
class Takes:
    """Tells what it was given."""

    @component.output_types(told=str)
    def run(self, value: object) -> dict[str, Any]:
        """Tell it."""
        ran.append("takes")
        return {"told": repr(value)}


def question_pipeline(failures: int = 0) -> Pipeline:
    """Make a pipeline that answers a question out of an archive."""
    pipeline = Pipeline()
    template = "{% for document in documents %}{{ document.content }}{% endfor %} {{ question }}"
    pipeline.add_component("archive", Archive(failures))
    pipeline.add_component(
        "prompt", ChatPromptBuilder([ChatMessage.from_user(template)], required_variables="*")
    )
    pipeline.add_component("model", MockChatGenerator("With a holdfast."))
    pipeline.add_component("answer", AnswerBuilder())
    pipeline.connect("archive.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    pipeline.connect("model.replies", "answer.replies")
    pipeline.connect("archive.documents", "answer.documents")
    return pipeline


def looping_pipeline() -> Pipeline:
    """Make a pipeline with a loop, whose components are visited several times."""
    pipeline = Pipeline()
    pipeline.add_component("join", BranchJoiner(str))
    pipeline.add_component("judge", Judge())
    pipeline.connect("join.value", "judge.text")
    pipeline.connect("judge.again", "join.value")
    return pipeline


def adding_pipeline(senders_of: list[list[int]]) -> Pipeline:
    """Make a pipeline in which each number is added up from those of the senders that are listed for it."""
    pipeline = Pipeline()
    for at, senders in enumerate(senders_of):
        pipeline.add_component(f"c{at}", Adder(f"c{at}", len(senders) or 1))
        for socket, sender in enumerate(senders):
            pipeline.connect(f"c{sender}.total", f"c{at}.in{socket}")
    return pipeline


def passing_pipeline(value: Any) -> Pipeline:
    """Make a pipeline that passes a value on."""
    pipeline = Pipeline()
    pipeline.add_component("answers", Answers(value))
    pipeline.add_component("takes", Takes())
    pipeline.connect("answers.value", "takes.value")
    return pipeline
