"""States to save: none of them compresses away, none of them stays the same."""

from __future__ import annotations

import base64
import random
from typing import Any

from holdfast import WorkflowState


def text(source: random.Random, length: int) -> str:
    """Letters that no compressor shrinks much, made quickly: the makers' CPU is measured too."""
    return base64.b64encode(source.randbytes(length * 3 // 4 + 1)).decode()[:length]


def message(source: random.Random, length: int) -> dict[str, Any]:
    return {"role": source.choice(("user", "assistant")), "content": text(source, length)}


class ChangingState:
    """A state of about `size` bytes in messages of 600; each step rewrites at least 1 KB of it."""

    def __init__(self, workflow_id: str, size: int, seed: int = 1, session_id: str = "bench") -> None:
        self._source = random.Random(seed)
        count = max(size // 640, 2)
        self.state = WorkflowState(workflow_id=workflow_id, session_id=session_id)
        self.state.messages = [message(self._source, 600) for _ in range(count)]
        self.state.context = {"plan": text(self._source, 200), "done": 0}

    def step(self) -> WorkflowState:
        """Two edits of 600 bytes each, anywhere, and a counter."""
        for _ in range(2):
            at = self._source.randrange(len(self.state.messages))
            self.state.messages[at] = message(self._source, 600)
        self.state.context["done"] += 1
        return self.state


def tasks_state(workflow_id: str, count: int) -> WorkflowState:
    """A workflow of many tasks, each with a result."""
    source = random.Random(7)
    tasks = [
        {"task_id": f"T-{n:04d}", "status": "done", "result": text(source, 60), "duration": n / 7}
        for n in range(count)
    ]
    return WorkflowState(workflow_id=workflow_id, session_id="bench", tasks=tasks, total_steps=count)
