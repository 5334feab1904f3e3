"""What an async agent gets from a call that it has to await, and how one is noticed that it did not."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

from holdfast.domain.errors import InvalidStateError


class Promise(Coroutine[Any, Any, Any]):
    """Something to be awaited. It has no truth: an approval that nobody awaited must not count as one."""

    def __init__(self, call: str, work: Coroutine[Any, Any, Any]) -> None:
        self._call = call
        self._work = work
        self._is_begun = False

    @property
    def forgotten(self) -> str | None:
        """The call that it is of, if nobody awaited it."""
        return None if self._is_begun else self._call

    def __await__(self) -> Generator[Any, Any, Any]:
        self._is_begun = True
        return self._work.__await__()

    def __bool__(self) -> bool:
        raise InvalidStateError(f"`{self._call}` was not awaited", hint=f"Write `await {self._call}(...)`.")

    def send(self, value: Any) -> Any:
        """Go on, for a loop that runs it as a task."""
        self._is_begun = True
        return self._work.send(value)

    def throw(self, *fault: Any) -> Any:
        """Fail, for a loop that runs it as a task."""
        self._is_begun = True
        return self._work.throw(*fault)

    def close(self) -> None:
        """Let it go."""
        self._work.close()


def check_kept(promises: list[Promise], agent: str) -> None:
    """Refuse the result of an agent that did not await what it asked for.

    Raises:
        InvalidStateError: names the call.
    """
    call = next((one.forgotten for one in promises if one.forgotten is not None), None)
    if call is not None:
        raise InvalidStateError(
            f"`{call}` was not awaited, and so it never happened",
            place=agent,
            hint=f"Write `await {call}(...)` in an async agent.",
        )
