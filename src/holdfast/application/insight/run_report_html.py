"""The report of a workflow as one HTML page: it loads nothing, runs nothing, and is made to be printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.application.audit.audit_style import STYLE
from holdfast.application.audit.markup import Child, Markup, element, join, page, table
from holdfast.application.insight.event_story import Kind, duration_text
from holdfast.application.insight.run_report_markdown import (
    FOUND_OUT,
    cost_text,
    day_and_time,
    meaning,
    narrative,
    size_text,
    verifying,
)
from holdfast.application.insight.run_report_values import Moment, RunReport
from holdfast.domain.progress_report import UNTITLED, ReportSection

_LOOKS = {"completed": "ok", "failed": "bad", "cancelled": "bad"}
_KINDS = {Kind.FAILURE: "bad", Kind.RECOVERY: "mind", Kind.APPROVAL: "mind", Kind.DECISION: "ok"}
_PRE = "pre.text { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .3rem 0; }\n"


def as_html(report: RunReport) -> str:
    """Write a report as a page of its own; everything out of the store is escaped."""
    header = element(
        "header",
        element("h1", report.workflow_id),
        element("p", "The report of a workflow."),
        class_="top",
    )
    parts = [_section(title, body) for title, body in _parts(report) if body]
    whole = page(f"{report.workflow_id}: report", STYLE + _PRE, element("main", header, *parts))
    # Half a letter cannot be written to a file, nor sent.
    return whole.encode("utf-8", "replace").decode()


def _section(title: str, body: Child) -> Markup:
    return element("section", element("h2", title), body)


def _parts(report: RunReport) -> Iterator[tuple[str, Child]]:
    yield "How it stands", _standing(report)
    yield "Stages", _stages(report)
    yield "Agents", _agents(report)
    yield "Decisions", _moments("Decisions", report.of(Kind.DECISION))
    yield "Approvals", _moments("Approvals", report.of(Kind.APPROVAL))
    told = report.of(Kind.FAILURE, Kind.RECOVERY)
    yield "Failures and recoveries", _moments("Failures and recoveries", told)
    yield "What happened", _happened(report)
    yield (
        "Cost",
        _pairs("Cost", [(name, cost_text(name, value)) for name, value in sorted(report.costs.items())]),
    )
    yield "Checkpoints", _checkpoints(report)
    yield FOUND_OUT, [_finding(section) for section in report.sections]
    yield "How to verify this", _verification(report)


def _standing(report: RunReport) -> Markup:
    verdict = element(
        "p", f"{report.status}: {meaning(report.status)}", class_=f"verdict {_look(report.status)}"
    )
    total = f" of {report.steps_total:,}" if report.steps_total else ""
    facts = [("Began", day_and_time(report.began_at)), ("Last heard of", day_and_time(report.last_at))]
    if report.steps_done or report.steps_total:
        facts.append(("Steps done", f"{report.steps_done:,}{total}"))
    facts += [("Note", note) for note in report.notes]
    return join(verdict, element("p", narrative(report)), _pairs("How it stands", facts))


def _look(status: str) -> str:
    return _LOOKS.get(status, "mind")


def _pairs(caption: str, pairs: Iterable[tuple[str, str]]) -> Markup:
    rows = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in pairs]
    return table(caption, ("What", "Value"), element("tbody", rows), look="pairs") if rows else Markup("")


def _stages(report: RunReport) -> Markup:
    rows = [
        element(
            "tr",
            element("th", stage.name, scope="row"),
            element("td", stage.status),
            _cell(", ".join(stage.agents)),
        )
        for stage in report.stages
    ]
    return (
        table("Stages", ("Stage", "Status", "Agents"), element("tbody", rows), look="told")
        if rows
        else Markup("")
    )


def _agents(report: RunReport) -> Markup:
    rows = [
        element(
            "tr",
            element("th", agent.name, scope="row"),
            (_number(count) for count in (agent.done, agent.failed, agent.skipped)),
            element("td", duration_text(agent.seconds), class_="ref"),
        )
        for agent in report.agents
    ]
    heads = ("Agent", "Done", "Failed", "Skipped", "Time")
    return table("Agents", heads, element("tbody", rows), look="told") if rows else Markup("")


def _cell(text: str) -> Markup:
    return element("td", text)


def _number(count: int) -> Markup:
    return element("td", f"{count:,}", class_="ref")


def _moments(caption: str, moments: Iterable[Moment]) -> Markup:
    return _moment_table(caption, [_moment(moment) for moment in moments])


def _moment_table(caption: str, rows: list[Markup]) -> Markup:
    heads = ("When", "Event", "What", "About")
    return table(caption, heads, element("tbody", rows), look="told") if rows else Markup("")


def _moment(moment: Moment) -> Markup:
    detail = element("p", moment.detail, class_="soft") if moment.detail else None
    tag = element("span", moment.kind.value, class_=f"tag {_KINDS.get(moment.kind, 'plain')}")
    when = element("td", day_and_time(moment.at), class_="time")
    return element("tr", when, _number(moment.seq), element("td", moment.text, detail), element("td", tag))


def _happened(report: RunReport) -> Markup:
    rows = [_moment(moment) for moment in report.moments]
    if report.left_out:
        more = element("tr", element("td", f"... {report.left_out:,} more ...", colspan=4))
        rows.insert(len(rows) - report.last_told, more)
    return _moment_table("What happened", rows)


def _checkpoints(report: RunReport) -> Markup:
    made = report.checkpoints
    facts = [("Kept", f"{made.kept:,}")]
    if made.removed:
        facts.append(("Removed by retention", f"{made.removed:,}"))
    if made.newest:
        at = f"{made.newest_at[:10]} {made.newest_at[11:19]} UTC"
        facts.append(("Newest", f"{made.newest}, {at}, a state of {size_text(made.state_bytes)}"))
    return _pairs("Checkpoints", facts)


def _finding(section: ReportSection) -> Markup:
    cited = [element("li", citation) for citation in section.citations if citation.strip()]
    sources = element("ul", cited) if cited else None
    title = section.title.strip() or UNTITLED
    return element("article", element("h3", title), element("pre", section.summary, class_="text"), sources)


def _verification(report: RunReport) -> Markup:
    said = "Everything above was read from the store, and each event was checked against the one before it. "
    commands = element("pre", "\n".join(verifying(report)), class_="mono")
    sums = [(f"Checksum of {report.checkpoints.newest}", report.checkpoints.checksum)]
    sums += [(f"Hash of event {report.last_event}, the last one", report.event_hash)]
    shown = _pairs("What a verification must find again", [one for one in sums if one[1]])
    return join(element("p", said + "Whoever has the store can check it again:"), commands, shown)
