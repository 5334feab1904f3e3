"""Speculative branches: work that is done ahead, and recorded only once somebody confirms it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_STARTED
from holdfast.execution.driving import Asking, Call, Together, nothing
from holdfast.execution.frame import Notes
from holdfast.execution.given import check_given
from holdfast.execution.journal import Fact, Pad


@dataclass(slots=True)
class Branch:
    """The result of a speculation. Nothing of it is stored before it is confirmed.

    Attributes:
        result: what the function answered.
        is_confirmed: whether it is recorded; after a restart, a branch that was is not run again.
    """

    result: Any
    is_confirmed: bool
    _asking: Callable[[], Asking]
    _answer: Callable[[Asking, str], Any]
    _check: Callable[[], None]

    def confirm(self) -> Any:
        """Record the branch as a step of the workflow, with all that its function said.

        Raises:
            AttemptOverError: the attempt that made it was given up; another one may have made its own.
        """
        self._check()
        return self._answer(self._confirmed(), "branch.confirm")

    def _confirmed(self) -> Asking:
        if not self.is_confirmed:
            yield from self._asking()
            self.is_confirmed = True
        return copy.deepcopy(self.result)


class Shadow(Protocol):
    """What a branch has in hand instead of the context of a step."""

    @property
    def step_id(self) -> str:
        """The step that it becomes if it is confirmed."""

    @property
    def parent_id(self) -> str | None:
        """The step that asked for it."""

    @property
    def agent(self) -> str:
        """The agent that asked for it."""

    @property
    def notes(self) -> Notes:
        """What its function said."""


class Draft:
    """What a speculative branch writes on: kept here until it is confirmed."""

    def __init__(self, journal: Pad, known: tuple[Any] | None = None, given: str | None = None) -> None:
        """Begin one.

        Args:
            journal: that of the run.
            known: the result of its step, alone in a tuple, if that was confirmed before.
            given: tells its item from others; None where it is known by a key of its own.
        """
        self._journal = journal
        self.known = known
        self.given = given
        self.workflow_id = journal.workflow_id
        self.types = journal.types
        self.hidden = journal.hidden
        self.noted: list[Fact] = []

    @property
    def fields(self) -> dict[str, Any]:
        """The state of the run."""
        return self._journal.fields

    def agent_state(self, step_id: str) -> Mapping[str, Any]:
        """Answer what is known of a step: of one that is not confirmed, nothing."""
        return {}

    def check_given(self, step_id: str) -> None:
        """Make sure that the step was confirmed for the same item.

        Raises:
            GraphChangedError: it was for another one.
        """
        recorded = self._journal.agent_state(step_id)
        check_given(f"the branch {step_id!r}", recorded, self.given, self.workflow_id)

    def note(self, fact: Fact) -> None:
        """Keep a fact."""
        self.noted.append(fact)

    def tell(self, kind: str, **particulars: Any) -> None:
        """Tell nobody: it may never have happened."""


class Refusing:
    """Drives what may be done ahead: nothing that changes anything, here or outside."""

    def drive(self, asking: Asking) -> Any:
        """Refuse.

        Raises:
            InvalidStateError: always.
        """
        asking.close()
        raise InvalidStateError(
            "a speculative branch cannot wait for anything durable",
            hint="Do effects, milestones and approvals after it is confirmed.",
        )

    async def drive_async(self, asking: Asking) -> Any:
        """Refuse."""
        self.drive(asking)

    def end(self) -> None:
        """Have nothing to end."""


def speculate(
    function: Callable[..., Any],
    item: Any,
    shadow: Shadow,
    draft: Draft,
    answer: Callable[[Asking, str], Any],
    check: Callable[[], None],
) -> Asking:
    """Run a function ahead, unless its step was confirmed before.

    Raises:
        GraphChangedError: it was, for another item.
    """
    if draft.known is not None:
        draft.check_given(shadow.step_id)
        return Branch(copy.deepcopy(draft.known[0]), True, nothing, answer, check)
    result = yield Call(function, (shadow,) if item is None else (shadow, item))

    def record() -> Asking:
        data = {"attempt": 1, "result": result, **shadow.notes.told()}
        begun: dict[str, Any] = {"attempt": 1, "speculative": True}
        if draft.given is not None:
            begun["given"] = draft.given
        started, completed = (
            Fact(kind, told, shadow.step_id, shadow.agent, parent_id=shadow.parent_id)
            for kind, told in ((AGENT_STARTED, begun), (AGENT_COMPLETED, data))
        )
        yield Together((started, *draft.noted, completed))

    return Branch(result, False, record, answer, check)
