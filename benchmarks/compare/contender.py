"""What a contender is asked to do. Needs the standard library alone: every environment imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.compare.states import Changed, State

#: Does a step: from its number and the state before it, the state after it.
Work = Callable[[int, State], State]


class NoneSuchError(Exception):
    """The contender has no such thing; the text says what it has instead."""


class NotEqualError(Exception):
    """What was restored is not what was saved."""


class Contender:
    """One way to keep the state of workflows, opened on one place.

    A contender has `save`, `restore` and `close` at least; whoever has a way of its own for the rest
    says so.
    """

    #: Whether steps are saved only while a workflow is under way, so that it cannot be closed meanwhile.
    is_executor = False

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        """Make the state after a step durable."""
        raise NotImplementedError

    def restore(self, workflow: str) -> State | None:
        """Give back the newest state; None if there is none."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def say(self, workflow: str, step: int, state: State, added: list[dict[str, str]]) -> None:
        """Make a turn of a chat durable: the state is all of it, `added` what is new."""
        self.save(workflow, step, state, frozenset({"messages"}))

    def heard(self, workflow: str) -> list[dict[str, str]]:
        """Give back all messages of a chat."""
        state = self.restore(workflow)
        messages: list[dict[str, str]] = state["messages"] if state else []
        return messages

    def listed(self, workflow: str, limit: int) -> int:
        """List the newest checkpoints; answer how many there were."""
        raise NoneSuchError("none")

    def differences(self, workflow: str) -> int:
        """Tell what the last step changed; answer how many changes."""
        raise NoneSuchError("none")

    def prune(self, workflow: str, keep: int) -> str:
        """Remove what is older than the last few; answer what was kept."""
        raise NoneSuchError("none")

    def leave_thread(self) -> None:
        """Let go of what belongs to the calling thread alone, before it ends."""

    def within(self, workflow: str, body: Callable[[], Any]) -> None:
        """Save what the body saves as steps of one workflow."""
        body()

    def proceed(self, workflow: str, first: State, work: Work, steps: int, *, resume: bool) -> None:
        """Do the steps of a workflow, or go on with one whose process was killed."""
        state = (self.restore(workflow) if resume else None) or first
        for step in range(state["done"], steps):
            state = work(step, state)
            self.save(workflow, step, state, frozenset({"messages", "done"}))


def path_of(url: str) -> str:
    """Tell the path in `file:PATH` and `sqlite:PATH`."""
    return url.partition(":")[2]
