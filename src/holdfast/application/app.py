"""What a program brings along so that its workflows can be recovered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.application.handlers import HandlerRegistry, ResumeHandler
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import ConfigError
from holdfast.domain.migration import Migrate, MigrationRegistry, check_version
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.reducers import REDUCERS, Reducer
from holdfast.domain.run_events import RUN_REDUCERS

if TYPE_CHECKING:
    from holdfast.domain.telemetry import Observer

_Handler = TypeVar("_Handler", bound=ResumeHandler)
_Reducer = TypeVar("_Reducer", bound=Reducer)
_Migrate = TypeVar("_Migrate", bound=Migrate)


class App:
    """Handlers that resume work, reducers that replay events, migrations of states, and types they hold.

    Attributes:
        schema_version: version of the shape that this program gives its states.
        handlers: what resumes work, by name.
        migrations: steps from older versions of the shape.
        types: the application's own types; None where it has none.
        observer: counts what happens, in place of what the setting `metrics` chooses; None where it has none.
    """

    def __init__(
        self,
        *,
        schema_version: str = SCHEMA_VERSION,
        handlers: HandlerRegistry | None = None,
        types: TypeRegistry | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.schema_version = check_version(schema_version)
        self.handlers = handlers or HandlerRegistry()
        self.migrations = MigrationRegistry()
        self.types = types
        self.observer = observer
        self._reducers = {**REDUCERS, **RUN_REDUCERS}

    @property
    def reducers(self) -> Mapping[str, Reducer]:
        """What replays events, by their type; those that come with Holdfast included."""
        return self._reducers

    def handler(self, name: str) -> Callable[[_Handler], _Handler]:
        """Register the decorated function as the handler of a name."""

        def register(handler: _Handler) -> _Handler:
            self.handlers.register(name, handler)
            return handler

        return register

    def reducer(self, type: str) -> Callable[[_Reducer], _Reducer]:
        """Register the decorated function for events of a type: it answers the fields with the event in."""

        def register(reducer: _Reducer) -> _Reducer:
            self._reducers[type] = reducer
            return reducer

        return register

    def migration(self, source: str, target: str) -> Callable[[_Migrate], _Migrate]:
        """Register the decorated function as the step from one version of the state's shape to another."""

        def register(step: _Migrate) -> _Migrate:
            self.migrations.register(source, target, step)
            return step

        return register


def check_brought(app: Any, registry: Any, resolver: Any) -> None:
    """Refuse what cannot be what a program brings along when it opens a store; None is nothing.

    Raises:
        ConfigError: one of them is something else.
    """
    for name, given, fits, wanted in (
        ("app", app, isinstance(app, App), "a holdfast.App"),
        ("registry", registry, isinstance(registry, TypeRegistry), "a holdfast.TypeRegistry"),
        ("resolver", resolver, callable(resolver), "a function"),
    ):
        if given is not None and not fits:
            raise ConfigError(
                f"{name} is of type {type(given).__qualname__}",
                place="the arguments",
                hint=f"Give {wanted} itself, not what names it.",
            )
