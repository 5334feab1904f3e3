"""The report of a workflow, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.application.insight.run_report import as_html, as_markdown, report
from holdfast.application.insight.run_report_values import as_fields
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.server.acting import READING
from holdfast.server.api.reading import known_run
from holdfast.server.desk import Desk
from holdfast.server.operation import JSON, Answer, Asked, Operation
from holdfast.server.problems import Refusal

_MARKDOWN, _HTML = "text/markdown", "text/html"
_OFFERED = (JSON, _MARKDOWN, _HTML)
_PLAIN_NEVER_RUNS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


def show_report(desk: Desk, asked: Asked[None, None]) -> Any:
    """Tell what happened in a workflow, in the form that Accept asks for."""
    form = chosen(asked.headers.get("accept", ""), _OFFERED)
    name = known_run(desk, asked.path["run"]).workflow_id
    made = report(desk.kit, name)
    desk.note(AuditType.EVENTS_READ, name, {"first": 1, "last": made.last_event})
    if form == _MARKDOWN:
        return Answer(as_markdown(made).encode(), media_type=f"{_MARKDOWN}; charset=utf-8")
    if form == _HTML:
        return Answer(as_html(made).encode(), headers=_PLAIN_NEVER_RUNS, media_type=f"{_HTML}; charset=utf-8")
    return as_fields(made)


def chosen(accept: str, offered: Sequence[str]) -> str:
    """Choose what is sent by an Accept header; the first that is offered where it does not care.

    Raises:
        Refusal: it wants none of these.
    """
    best, most = "", 0.0
    for part in accept.split(",") if accept.strip() else ["*/*"]:
        name, *settings = (word.strip().lower() for word in part.split(";"))
        weight = _weight(settings)
        fits = [one for one in offered if name in (one, "*/*", one.partition("/")[0] + "/*")]
        if fits and weight > most:
            best, most = fits[0], weight
    if not best:
        raise Refusal(406, "not_acceptable", f"here are: {', '.join(offered)}")
    return best


def _weight(settings: Sequence[str]) -> float:
    for setting in settings:
        name, _, value = setting.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


OPERATIONS = (
    Operation(
        "getReport",
        "GET",
        "/runs/{run}/report",
        Scope.STATE_READ,
        "Tell what happened in a workflow.",
        show_report,
        result=dict[str, Any],
        also=(_MARKDOWN, _HTML),
        tag="runs",
        problems={**READING, 406: "Nothing that Accept asks for is offered."},
    ),
)
