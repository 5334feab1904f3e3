"""Checkpoints and points between them, as a person writes them, and the app whose reducers lead there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.cli.opening import entry_of, find, find_workflow, tell
from holdfast.domain.errors import CheckpointNotFoundError

# Imported where they are used: help must not wait for codecs and threads.
if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.kit import Kit
    from holdfast.application.travel.travelling import Point, TimeTravel
    from holdfast.cli.group import Call
    from holdfast.domain.audit_type import AuditType
    from holdfast.domain.replay import SkippedEvent

_Command = TypeVar("_Command", bound=Callable[..., Any])


def app_option(command: _Command) -> _Command:
    """Give a command the option that names a program."""
    told = "The program whose reducers replay its own events."
    return click.option("--app", metavar="MODULE:OBJECT", help=told)(command)


def app_named(text: str | None) -> App | None:
    """Load the program that a flag or the configuration names; None if neither does."""
    from holdfast.cli.app_loading import load_app
    from holdfast.config import Config

    named = text or Config.load().app
    return load_app(named) if named else None


def app_for(text: str | None, *names: str | None) -> App | None:
    """Load the program if one of the names is a point: checkpoints need no reducers."""
    return app_named(text) if text or any(is_point(name) for name in names if name) else None


def is_point(name: str) -> bool:
    """Tell whether a person wrote a point and not a checkpoint."""
    from holdfast.domain.ids import parse_ref

    return parse_ref(name).is_point


def travel_in(kit: Kit) -> TimeTravel:
    """Answer what goes to any point of a store that is open for reading."""
    from holdfast.application.reading import Reader
    from holdfast.application.travel.travelling import TimeTravel

    return TimeTravel(kit, None, Reader(kit))


def find_point(kit: Kit, text: str) -> Point:
    """Find the state at what was written; where there is none, say what may have been meant."""
    from holdfast.domain.ids import parse_ref

    travel = travel_in(kit)
    if not is_point(text):
        return travel.checkpoint(find(kit, text))
    try:
        return travel.at(text)
    except CheckpointNotFoundError:
        find_workflow(kit, parse_ref(text).workflow_id)
        raise


def tell_points(call: Call, kit: Kit, type: AuditType, looked_at: Iterable[Point]) -> None:
    """Tell in the trail that somebody looks at states, before they are shown."""
    tell(call, kit, [entry_of(kit, type, point.workflow_id, point.facts) for point in looked_at])


def point_fields(point: Point) -> dict[str, Any]:
    """Answer what is known about a point but its state, for programs."""
    return {
        "id": str(point),
        "workflow_id": point.workflow_id,
        "event_seq": point.event_seq,
        "checkpoint": str(point.found) if point.found else None,
        "events_replayed": point.replayed,
        "skipped": [skipped_fields(event) for event in point.skipped],
    }


def skipped_fields(event: SkippedEvent) -> dict[str, Any]:
    """Answer what is known about an event that could not be replayed."""
    return {"seq": event.seq, "type": event.type, "reason": event.reason}
