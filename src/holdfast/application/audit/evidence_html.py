"""The first page of an evidence pack: every control, what was found for it, and where the proof lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from holdfast.application.audit.audit_proof_html import proof_section
from holdfast.application.audit.audit_style import STYLE
from holdfast.application.audit.markup import Child, Markup, element, moment_text, page, table
from holdfast.application.audit.processing_register import value_text
from holdfast.domain.log_check import LogReport

_HEADS = ("Time (UTC)", "Entry", "Who", "What", "Proof")


def render_index(
    index: Mapping[str, Any], controls: Sequence[Mapping[str, Any]], report: LogReport, keys: Sequence[str]
) -> str:
    """Make the page from what the files of the pack say."""
    body = (
        _top(index),
        _overview(controls),
        proof_section(report, keys),
        *(_control(answer) for answer in controls),
        _foot(),
    )
    return page("Evidence pack", STYLE, element("main", *body))


def _top(index: Mapping[str, Any]) -> Markup:
    horizon = index["horizon"]
    frameworks = dict.fromkeys(str(control["framework"]) for control in index["controls"])
    until = f", until {moment_text(horizon['last_entry'])}" if horizon["last_entry"] else ""
    return element(
        "header",
        element("h1", f"Evidence pack: {', '.join(frameworks)}"),
        element("p", f"Log {index['log'] or 'without a name'}, the first {horizon['size']} entries{until}."),
        element(
            "p",
            "It shows what the store did and what can be proven about it. Whether that is enough, "
            "people decide. Texts of controls are summaries in our own words.",
        ),
        class_="top",
    )


def _overview(controls: Sequence[Mapping[str, Any]]) -> Markup:
    bodies = (
        element(
            "tbody",
            element("tr", element("th", framework, colspan=4, scope="rowgroup", class_="day")),
            (_overview_row(answer) for answer in answers),
        )
        for framework, answers in groupby(controls, key=lambda answer: str(answer["framework"]))
    )
    heads = ("Clause", "Asks for", "Entries", "To be looked at")
    heading = element("h2", "Controls", id="controls-title")
    shown = table("Controls, and how many entries answer them", heads, *bodies)
    return element("section", heading, shown, id="controls", aria_labelledby="controls-title")


def _overview_row(answer: Mapping[str, Any]) -> Markup:
    return element(
        "tr",
        element("td", element("a", answer["clause"], href=f"#{answer['control']}")),
        element("td", answer["title"]),
        element("td", "" if answer["query"] is None else answer["result"]["entries"]),
        element("td", _warnings(answer["attention"])),
    )


def _warnings(attention: Sequence[str]) -> Child:
    if not attention:
        return element("span", "nothing", class_="soft")
    return element("ul", (element("li", warning) for warning in attention), class_="plain")


def _control(answer: Mapping[str, Any]) -> Markup:
    anchor = str(answer["control"])
    title = f"{answer['framework']} {answer['clause']}: {answer['title']}"
    return element(
        "section",
        element("h2", title, id=f"{anchor}-title"),
        element("p", answer["asks"]),
        _attention(answer["attention"]),
        _facts(answer),
        _entries(answer),
        id=anchor,
        aria_labelledby=f"{anchor}-title",
    )


def _attention(attention: Sequence[str]) -> Markup | None:
    return (
        element("p", "To be looked at: ", "; ".join(attention), ".", class_="verdict mind")
        if attention
        else None
    )


def _facts(answer: Mapping[str, Any]) -> Markup:
    result, query = answer["result"], answer["query"]
    shown: dict[str, str] = {}
    if query is not None:
        parts = [*query["types"], *(f"outcome {outcome}" for outcome in query["outcomes"])]
        shown["Query"] = f"{', '.join(parts) or 'all entries'}; leaves before {query['leaves_before']}"
        shown["Result"] = _count(result)
    for measure, value in result["measures"].items():
        shown[measure.capitalize()] = value_text(value) if value else "not stated"
    shown["File"] = f"controls/{answer['control']}.json"
    pairs = ((element("dt", name), element("dd", text)) for name, text in shown.items())
    return element("dl", pairs, class_="facts")


def _count(result: Mapping[str, Any]) -> str:
    if not result["entries"]:
        return "nothing of that kind was recorded"
    kinds = ", ".join(f"{kind} {count}" for kind, count in result["by_type"].items())
    outcomes = ", ".join(f"{outcome} {count}" for outcome, count in result["by_outcome"].items())
    count = "1 entry" if result["entries"] == 1 else f"{result['entries']} entries"
    return f"{count} ({kinds}); by outcome: {outcomes}"


def _entries(answer: Mapping[str, Any]) -> Child:
    if not answer["shown"]:
        return None
    rows = (
        element(
            "tr",
            element("td", moment_text(entry["ts"])[:19], class_="time"),
            element("td", entry["entry"], class_="mono"),
            element("td", entry.get("agent") or entry.get("actor") or "unknown"),
            element("td", entry["type"], f" of {entry['workflow']}" if "workflow" in entry else None),
            element("td", _proof(entry)),
        )
        for entry in answer["shown"]
    )
    left = answer["left_out"]
    note = (
        element("p", f"{left} entries between the first and the last are not shown here.") if left else None
    )
    return note, table("Entries", _HEADS, element("tbody", rows), look="log")


def _proof(entry: Mapping[str, Any]) -> Child:
    if entry["proof"] is None:
        return element("span", "not signed yet", class_="tag mind")
    return element("a", f"leaf {entry['leaf']}", href=entry["proof"])


def _foot() -> Markup:
    return element("footer", "Times are in UTC. README.txt says how the files are checked.")
