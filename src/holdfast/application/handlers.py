"""Handlers: what a program does to go on from a checkpoint, found by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.application.fork_gate import GATE
from holdfast.domain.errors import ConfigError, HandlerNotFoundError

if TYPE_CHECKING:
    from holdfast.application.execution_context import ExecutionContext

    #: Takes an ExecutionContext; answers the id of the workflow that goes on, or nothing for the same.
    ResumeHandler = Callable[[ExecutionContext], Awaitable[str | None] | str | None]
else:
    ResumeHandler = Callable[..., Any]

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class HandlerRegistry:
    """Handlers by their names. Fill it while the program starts; it may be read from any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, ResumeHandler] = {}

    def register(self, name: str, handler: Any) -> None:
        """Add a handler, in place of an earlier one of that name.

        Args:
            name: what checkpoints call it: `resume_handler`.
            handler: a function, or an object with a `resume` method; a coroutine function is welcome.

        Raises:
            ConfigError: the name is empty, or there is nothing to call.
        """
        if not isinstance(name, str) or not name.strip():
            raise ConfigError("a handler needs a name", hint="Name it as checkpoints will: `resume_handler`.")
        chosen = getattr(handler, "resume", handler)
        if not callable(chosen):
            raise ConfigError(
                f"a {type(handler).__name__} cannot resume anything",
                place=name,
                hint="Register a function that takes an ExecutionContext, or an object with `resume`.",
            )
        self._handlers[name] = chosen

    def handler(self, name: str) -> Callable[[_Handler], _Handler]:
        """Register the decorated function as the handler of a name."""

        def register(handler: _Handler) -> _Handler:
            self.register(name, handler)
            return handler

        return register

    def get(self, name: str) -> ResumeHandler:
        """Answer the handler of a name.

        Raises:
            HandlerNotFoundError: nobody registered one.
        """
        try:
            return self._handlers[name]
        except KeyError:
            raise HandlerNotFoundError(
                "nobody registered the handler that should resume the work",
                place=name,
                hint=self._suggestion(name),
            ) from None

    def has(self, name: str) -> bool:
        """Tell whether there is a handler of that name."""
        return name in self._handlers

    def list_handlers(self) -> list[str]:
        """Name all handlers, in order."""
        return sorted(self._handlers)

    def _suggestion(self, name: str) -> str:
        known = self.list_handlers()
        if not known:
            return "Register it with `@app.handler(name)`, and give the app: `--app module:object`."
        with GATE:
            import difflib
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        return f"{meant}Register it, or name one of those that are: {', '.join(known)}."
