"""What executors of steps share: the state is what a step answers, and a chat is all their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.compare.contender import Contender, Work
from benchmarks.compare.states import Changed, State


class Steps(Contender):
    """Hands a step what it is to answer; the executor is told a number, so that it can know it again."""

    is_executor = True

    def __init__(self) -> None:
        self._answers: dict[tuple[str, int], Callable[[], Any]] = {}
        self._bodies: dict[str, Callable[[], Any]] = {}

    def call_step(self, workflow: str, step: int) -> Any:
        """Have the executor call `answer`, or give back what was recorded."""
        raise NotImplementedError

    def answers(self, workflow: str) -> list[Any]:
        """Give back what the newest step answered, in a list of one, or what all of them did."""
        raise NotImplementedError

    def answer(self, workflow: str, step: int) -> Any:
        return self._answers.pop((workflow, step))()

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        self.asked(workflow, step, lambda: state)

    def say(self, workflow: str, step: int, state: State, added: list[dict[str, str]]) -> None:
        self.asked(workflow, step, lambda: added)

    def heard(self, workflow: str) -> list[dict[str, str]]:
        return [message for added in self.answers(workflow) for message in added]

    def restore(self, workflow: str) -> State | None:
        answers = self.answers(workflow)
        return answers[-1] if answers else None

    def asked(self, workflow: str, step: int, answer: Callable[[], Any]) -> Any:
        self._answers[workflow, step] = answer
        return self.call_step(workflow, step)

    def body_of(self, workflow: str, first: State, work: Work, steps: int) -> Callable[[], None]:
        """Make the body of a workflow whose steps are recorded: those that were are not done again."""

        def body() -> None:
            state = first
            for step in range(steps):
                state = self.asked(workflow, step, _doing(work, step, state))

        return body


def _doing(work: Work, step: int, state: State) -> Callable[[], State]:
    return lambda: work(step, state)
