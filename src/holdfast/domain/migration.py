"""Migrations: single steps between versions of a shape, and the shortest way through them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from holdfast.domain.errors import (
    CheckpointError,
    ConfigError,
    MigrationFailedError,
    UnsupportedVersionError,
)
from holdfast.domain.value import value

#: Takes the fields of a state in one version, as a plain tree, and answers them in the next.
#: The fields are the step's to change; what it does not answer is gone.
Migrate = Callable[[dict[str, Any]], Mapping[str, Any]]

_Migrate = TypeVar("_Migrate", bound=Migrate)
#: Three numbers, short enough for every place that a version is written to.
_VERSION = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})", re.ASCII)


@value
class Step:
    """How to come from one version to another."""

    source: str
    target: str
    migrate: Migrate

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


class MigrationRegistry:
    """The steps that a program knows."""

    def __init__(self) -> None:
        #: By the version they start from, in the order in which they were registered.
        self._from: dict[str, list[Step]] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, those from one version together."""
        return tuple(step for steps in self._from.values() for step in steps)

    def register(self, source: str, target: str, step: Migrate) -> None:
        """Add the step from one version to another.

        Raises:
            ConfigError: one of them is no version, both are the same, or there is such a step already.
        """
        check_version(source)
        check_version(target)
        place = f"{source} -> {target}"
        if source == target:
            raise ConfigError("a migration leads to another version than it starts from", place=place)
        steps = self._from.setdefault(source, [])
        if any(known.target == target for known in steps):
            raise ConfigError("there are two migrations between the same versions", place=place)
        steps.append(Step(source, target, step))

    def migration(self, source: str, target: str) -> Callable[[_Migrate], _Migrate]:
        """Register the decorated function as the step from one version to another."""

        def register(step: _Migrate) -> _Migrate:
            self.register(source, target, step)
            return step

        return register

    def chain(self, source: str, target: str, *, place: str = "") -> tuple[Step, ...]:
        """Find the fewest steps to a version that is asked for; among equals, those registered first.

        Args:
            place: what is of the source version, for the error.

        Raises:
            UnsupportedVersionError: no steps lead there.
        """
        steps = self._way(source, target)
        if steps is None:
            raise _no_way(source, target, place, is_known=self._knows(source))
        return steps

    def _way(self, source: str, target: str) -> tuple[Step, ...] | None:
        came_by: dict[str, Step | None] = {source: None}
        todo = deque([source])
        while todo and target not in came_by:
            for step in self._from.get(todo.popleft(), ()):
                if step.target not in came_by:
                    came_by[step.target] = step
                    todo.append(step.target)
        if target not in came_by:
            return None
        steps: list[Step] = []
        while (last := came_by[steps[-1].source if steps else target]) is not None:
            steps.append(last)
        return tuple(reversed(steps))

    def _knows(self, version: str) -> bool:
        """Tell whether a step leads to a version, or away from it."""
        return any(version in (step.source, step.target) for step in self.steps)

    def migrate(self, fields: dict[str, Any], source: str, target: str, *, place: str = "") -> dict[str, Any]:
        """Bring fields from one version to another; they belong to the steps from now on.

        Raises:
            UnsupportedVersionError: no steps lead there.
            MigrationFailedError: a step raised, or answered no fields.
        """
        steps = self._way(source, target)
        if steps is None:
            # What is to be read has to be of a version that the program has, whatever else it knows.
            raise _no_way(source, target, place, is_known=False)
        for step in steps:
            fields = _taken(step, fields, place)
        return fields


def check_version(text: str) -> str:
    """Answer a version if it is one: three numbers, as in `1.0.0`.

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(text, str) or _VERSION.fullmatch(text) is None:
        raise ConfigError(f"{text!r} is no version", hint="Write three numbers: 1.2.0.")
    return text


def is_newer(version: str, than: str) -> bool:
    """Tell whether a version comes after another; what is no version is later than any."""
    parts = [_VERSION.fullmatch(text) for text in (version, than)]
    if parts[0] is None or parts[1] is None:
        return parts[0] is None
    one, other = (tuple(map(int, part.groups())) for part in parts if part is not None)
    return one > other


def _taken(step: Step, fields: dict[str, Any], place: str) -> dict[str, Any]:
    hint = "What is stored is as it was. Correct the migration and try again."
    try:
        answer = step.migrate(fields)
    except CheckpointError as problem:
        message = f"the migration {step} failed: {problem.message}"
        raise MigrationFailedError(message, place=place, hint=problem.hint or hint) from problem
    except Exception as fault:
        message = f"the migration {step} failed ({type(fault).__name__}: {fault})"
        raise MigrationFailedError(message, place=place, hint=hint) from fault
    if not isinstance(answer, Mapping) or not all(isinstance(name, str) for name in answer):
        message = f"the migration {step} answered a {type(answer).__name__}, not the fields"
        raise MigrationFailedError(message, place=place, hint="Let it return the fields.")
    return dict(answer)


def _no_way(source: str, target: str, place: str, *, is_known: bool) -> UnsupportedVersionError:
    if is_known and is_newer(source, target):
        return UnsupportedVersionError(
            f"it is of version {source}, which is newer than the version asked for, {target}",
            place=place,
            hint=f"No migrations lead back. Ask for {source}, or for a newer version.",
        )
    if is_newer(source, target):
        return UnsupportedVersionError(
            f"it is of version {source}, and this program knows versions up to {target}",
            place=place,
            hint="Use the program that wrote it, or a newer one; on the command line name it with --app.",
        )
    return UnsupportedVersionError(
        f"it is of version {source}, and no migrations lead from there to {target}",
        place=place,
        hint=f'Register the missing step: @app.migration("{source}", "{target}").',
    )
