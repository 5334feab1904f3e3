"""The states that every contender is given. Needs the standard library alone."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

State = dict[str, Any]
#: The keys that a step gave a new value.
Changed = frozenset[str]

MESSAGE_CHARACTERS = 600
IMAGE_CHARACTERS = 200_000
#: An image is kept for so many steps, then a new one comes.
IMAGE_STEPS = 5
ASKED_CHARACTERS, ANSWERED_CHARACTERS = 600, 1_200


def text(source: random.Random, length: int) -> str:
    """Letters that no compressor shrinks much."""
    return base64.b64encode(source.randbytes(length * 3 // 4 + 1)).decode()[:length]


def message(source: random.Random, length: int, role: str = "assistant") -> dict[str, str]:
    return {"role": role, "content": text(source, length)}


def first_state(size: int) -> State:
    """Make a state of about so many bytes, most of them in messages."""
    source = random.Random(size)
    count = max(size // (MESSAGE_CHARACTERS + 40), 2)
    messages = [message(source, MESSAGE_CHARACTERS) for _ in range(count)]
    return {"messages": messages, "plan": text(source, 200), "done": 0}


def next_state(state: State, step: int) -> State:
    """Rewrite two messages and a counter; the same step does the same in every process."""
    source = random.Random(step)
    messages = list(state["messages"])
    for _ in range(2):
        messages[source.randrange(len(messages))] = message(source, MESSAGE_CHARACTERS)
    return {**state, "messages": messages, "done": step + 1}


def constant(size: int, steps: int) -> Iterator[tuple[State, Changed]]:
    """A state that stays as large as it is, and whose every step changes about 1 KB."""
    state = first_state(size)
    for step in range(steps):
        state = next_state(state, step)
        yield state, frozenset({"messages", "done"})


def with_images(steps: int) -> Iterator[tuple[State, Changed]]:
    """One base64 image in five fields, as agents hand it on; a new one every few steps."""
    source = random.Random(5)
    state: State = {"notes": text(source, 500), "done": 0}
    for step in range(steps):
        changed = {"done", "notes"}
        state = {**state, "done": step + 1, "notes": text(source, 500)}
        if step % IMAGE_STEPS == 0:
            # Through JSON, as such fields come from tools and models: equal, and five objects.
            fields = json.loads(json.dumps(_image_fields(text(source, IMAGE_CHARACTERS))))
            changed |= fields.keys()
            state |= fields
        yield state, frozenset(changed)


def _image_fields(image: str) -> State:
    return {
        "upload": image,
        "messages": [{"role": "user", "content": "what is this?", "image": image}],
        "vision": {"tool": "describe", "input": image},
        "crop": {"box": [0, 0, 64, 64], "of": image},
        "report": {"figures": [image], "pages": 1},
    }


def turns(count: int) -> Iterator[list[dict[str, str]]]:
    """What each turn of a chat adds: a question and its answer."""
    source = random.Random(11)
    for _ in range(count):
        yield [message(source, ASKED_CHARACTERS, "user"), message(source, ANSWERED_CHARACTERS)]
