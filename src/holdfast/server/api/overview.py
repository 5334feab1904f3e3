"""The whole store at a glance."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from holdfast.application.insight.overview import Need, NeedAction, NeedKind, Overview, overview
from holdfast.domain.access import Scope
from holdfast.server.api.audit import anchored_size
from holdfast.server.api.reading import without_quotes
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation


def show_overview(desk: Desk, asked: Asked[None, None]) -> Overview:
    """Tell how many workflows stand how, what is at work, and what needs somebody."""
    found = overview(desk.kit, desk.runs)
    need = _unanchored(desk)
    needs = [replace(one, reason=without_quotes(asked, one.reason)) for one in found.needs]
    return replace(found, needs=[*needs, *([need] if need else [])])


def _unanchored(desk: Desk) -> Need | None:
    """Tell of a trail that was signed once, and grew for long since without being signed again."""
    anchored = anchored_size(desk)
    unsigned = desk.kit.store.integrate() - anchored if anchored else 0
    if unsigned <= 2 * desk.kit.head_interval:
        return None
    reason = f"{unsigned} entries of the trail are not covered by a signed head"
    command = f"holdfast audit anchor --store={quote(desk.kit.store.url)}"
    return Need(NeedKind.UNANCHORED, None, None, "", reason, NeedAction.NONE, command)


OPERATIONS = (
    Operation(
        "getOverview",
        "GET",
        "/overview",
        Scope.READ,
        "Tell how the workflows stand, and what needs somebody.",
        show_overview,
        result=Overview,
        tag="runs",
        problems={409: "What is stored is damaged, or cannot be read here."},
    ),
)
