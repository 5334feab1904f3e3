"""A trail as one page that a person reads and prints: who decided what, when and why, and what is proven.

The page is one file. It loads nothing, runs nothing, and shows text from the trail as text only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from holdfast.application.audit.audit_digest import Digest, Section, Topic
from holdfast.application.audit.audit_event import PayloadState
from holdfast.application.audit.audit_proof_html import proof_section
from holdfast.application.audit.audit_report import Reported, as_text
from holdfast.application.audit.audit_style import STYLE
from holdfast.application.audit.markup import Child, Markup, element, join, moment_text, page, table
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import Outcome
from holdfast.domain.log_check import LogReport
from holdfast.domain.time import timestamp_text

#: What a decision is called in payloads, the best name first.
_HEADLINES = ("description", "decision", "summary", "question", "request", "title")
_LABELS = {"rationale": "Why", "alternatives": "Alternatives", "confidence": "Confidence"}
_OUTCOME_LOOKS = {Outcome.SUCCESS: "ok", Outcome.FAILURE: "bad", Outcome.REFUSED: "bad"}
_GONE = {
    PayloadState.ERASED: "The particulars were erased. The entry, its place and its proofs stay.",
    PayloadState.SEALED: "The particulars are encrypted, and there is no key for them here.",
    PayloadState.DAMAGED: "The particulars are not those that were committed to, and are not shown.",
}
#: Names that a table of counts shows.
_NAMES_MAX = 30
_HEADS = ("Time (UTC)", "Entry", "Who", "What", "Outcome")
_HASH_CHARS = len("sha256:") + 12


@dataclass(frozen=True, slots=True)
class About:
    """What the page says about itself.

    Attributes:
        scope: what it covers: `session s-1`, `the whole store`.
        store: where the entries were read, without secrets.
        made_at, made_by: when and by whom the report was made; empty leaves it out.
        keys: public keys of the log and of witnesses, as text.
    """

    scope: str
    store: str = ""
    made_at: str = ""
    made_by: str = ""
    keys: tuple[str, ...] = ()


def render_page(told: Digest, about: About, report: LogReport | None = None) -> str:
    """Make the page.

    Args:
        told: the entries, summed up.
        about: what the page says about itself.
        report: what the verification of the log found; None if there was none, which is then said.
    """
    title = f"Audit report: {about.scope}"
    sections = [
        _summary(told),
        proof_section(report, about.keys),
        *(_topic_section(topic, told.topics[topic]) for topic in Topic),
        _clock_section(told.clock_steps),
        _timeline(told),
        _check_yourself(),
    ]
    return page(title, STYLE, element("main", _top(told, about), _contents(told), *sections, _foot()))


def _top(told: Digest, about: About) -> Markup:
    lines: list[Child] = []
    if told.entries:
        count = "1 entry" if told.entries == 1 else f"{told.entries} entries"
        lines.append(element("p", f"{count}, from {moment_text(told.first)} to {moment_text(told.last)}."))
    made = f"Read from {about.store}." if about.store else ""
    if about.made_at:
        by = f" by {about.made_by}" if about.made_by else ""
        made += f" Made on {moment_text(about.made_at)}{by}."
    lines.append(element("p", made.strip()) if made else None)
    return element("header", element("h1", f"Audit report: {about.scope}"), lines, class_="top")


def _contents(told: Digest) -> Markup:
    names = [
        ("summary", "Summary"),
        ("proofs", "What the proofs say"),
        *((_anchor(topic), str(topic)) for topic in Topic if told.topics[topic].total),
        ("timeline", "Timeline"),
        ("check", "Check it yourself"),
    ]
    links = (element("li", element("a", name, href=f"#{anchor}")) for anchor, name in names)
    return element("nav", element("ul", links), aria_label="Contents")


def _summary(told: Digest) -> Markup:
    shown = {
        "Entries": told.entries,
        "Sessions": len(told.sessions),
        "Workflows": len(told.workflows),
        **{str(topic): told.topics[topic].total for topic in Topic},
        "Erased payloads": told.payloads[PayloadState.ERASED],
        "Clock steps": told.clock_steps.total,
    }
    counts = (element("div", element("dt", name), element("dd", count)) for name, count in shown.items())
    body = (
        element("dl", counts, class_="counts"),
        element(
            "div",
            _count_table("Who acted", "Actor", told.actors),
            _count_table("For which agents", "Agent", told.agents),
            _count_table("What kinds of entries", "Type", told.types, _words),
            class_="columns",
        ),
    )
    return _section("summary", "Summary", body)


def _count_table(
    caption: str, name: str, counts: Counter[str], show: Callable[[str], str] = str
) -> Markup | None:
    if not counts:
        return None
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    left = len(ordered) - _NAMES_MAX
    rows = (
        element("tr", element("td", show(key)), element("td", count, class_="number"))
        for key, count in ordered[:_NAMES_MAX]
    )
    more = element("tr", element("td", f"and {left} more", colspan=2)) if left > 0 else None
    return table(caption, (name, "Entries"), element("tbody", rows, more))


def _topic_section(topic: Topic, section: Section) -> Markup | None:
    """Show decisions and approvals whole, one after the other; everything else as a table."""
    if not section.total:
        return None
    if topic in (Topic.DECISIONS, Topic.APPROVALS):
        body: Child = (_article(told) for told in section.shown)
    else:
        rows = (element("tr", _cells(told)) for told in section.shown)
        body = table(str(topic), _HEADS, element("tbody", rows), look="log")
    return _section(_anchor(topic), str(topic), (_left_out(section), body))


def _article(told: Reported) -> Markup:
    entry, payload = told.entry, dict(told.payload or {})
    headline = next((name for name in _HEADLINES if payload.get(name)), None)
    title = as_text(payload.pop(headline)) if headline else _words(entry.type)
    by = (
        f"{_words(entry.type)}" if headline else "",
        f"by {_who(entry)}",
        f"for {entry.workflow_id}" if entry.workflow_id else "",
        f"on {moment_text(timestamp_text(entry.timestamp))}",
        f"entry {told.reference}",
    )
    ordered = {name: payload.pop(name) for name in _LABELS if payload.get(name) is not None}
    return element(
        "article",
        element("h3", title, " ", _outcome(entry) if entry.outcome != Outcome.SUCCESS else None),
        element("p", ", ".join(part for part in by if part), class_="by"),
        _gone(told),
        _facts({**ordered, **payload}),
        _marks(told),
    )


def _facts(values: Mapping[str, Any]) -> Markup | None:
    pairs = (
        (element("dt", _LABELS.get(name) or _words(name)), element("dd", _value(name, value)))
        for name, value in values.items()
        if value is not None
    )
    return element("dl", pairs, class_="facts") if values else None


def _value(name: str, value: Any) -> Child:
    if name == "confidence" and type(value) in (int, float) and 0 <= value <= 1:
        return f"{value:.0%}"
    if isinstance(value, list):
        return element("ul", (element("li", as_text(item)) for item in value))
    return as_text(value)


def _cells(told: Reported, *, with_day: bool = True) -> Child:
    entry = told.entry
    moment = timestamp_text(entry.timestamp)
    shown = moment[:10] + " " + moment[11:19] if with_day else moment[11:23]
    return (
        element("td", shown, class_="time"),
        element("td", told.reference, class_="ref mono"),
        element("td", _who(entry)),
        element("td", _what(told)),
        element("td", _outcome(entry)),
    )


def _what(told: Reported) -> Markup:
    entry, payload = told.entry, told.payload or {}
    headline = next((as_text(payload[name]) for name in _HEADLINES if payload.get(name)), "")
    facts = ", ".join(f"{name} {_short(value)}" for name, value in entry.facts.items())
    return join(
        element("strong", _words(entry.type)),
        f" of {entry.workflow_id}" if entry.workflow_id else None,
        f": {headline}" if headline else None,
        element("div", facts, class_="soft mono") if facts else None,
        element("div", as_text(payload["reason"])) if payload.get("reason") else None,
        _marks(told),
    )


def _marks(told: Reported) -> Child:
    marks: list[Child] = []
    if told.entry.clock is not None:
        said = timestamp_text(told.entry.clock)
        marks.append(element("span", "clock stepped back", class_="tag mind"))
        marks.append(f" It said {moment_text(said)}. ")
    if told.state in _GONE:
        marks.append(element("span", f"payload {told.state}", class_="tag mind"))
    return element("div", marks) if marks else None


def _gone(told: Reported) -> Markup | None:
    text = _GONE.get(told.state)
    return element("p", text, class_="soft") if text else None


def _clock_section(section: Section) -> Markup | None:
    if not section.total:
        return None
    rows = (
        element(
            "tr",
            element("td", told.reference, class_="ref mono"),
            element("td", timestamp_text(told.entry.timestamp), class_="time"),
            element("td", timestamp_text(told.entry.clock or told.entry.timestamp), class_="time"),
        )
        for told in section.shown
    )
    text = (
        "The clock said an earlier time than that of the entry before. Time never runs backwards in a "
        "trail: such an entry has the time of the one before, and keeps what the clock said."
    )
    shown = table("Clock steps", ("Entry", "Written as", "The clock said"), element("tbody", rows))
    return _section("clock", "Clock that stepped back", (element("p", text), _left_out(section), shown))


def _timeline(told: Digest) -> Markup:
    def day(one: Reported) -> str:
        return timestamp_text(one.entry.timestamp)[:10]

    groups = (
        element(
            "tbody",
            element("tr", element("th", when, colspan=5, scope="rowgroup", class_="day")),
            (element("tr", _cells(one, with_day=False)) for one in entries),
        )
        for when, entries in groupby(told.timeline.shown, key=day)
    )
    shown = table("All entries in the order in which they were committed", _HEADS, *groups, look="log")
    return _section("timeline", "Timeline", (_left_out(told.timeline), _bars(told), shown))


def _bars(told: Digest) -> Markup | None:
    counts = told.bars()
    if len(told.timeline.shown) < 3:
        return None
    width, height, top = 10, 60, max(counts)
    bars = (
        element(
            "rect",
            x=at * width + 1,
            y=height - max(2, round(count / top * height)),
            width=width - 2,
            height=max(2, round(count / top * height)),
            class_="fill",
        )
        for at, count in enumerate(counts)
        if count
    )
    view = f"0 0 {len(counts) * width} {height + 2}"
    ground = element("rect", x=0, y=height, width=len(counts) * width, height=1, class_="back")
    label = (
        f"Entries over time, from {told.first} to {told.last}, at most {top} in one stretch of {len(counts)}"
    )
    return element("svg", bars, ground, viewBox=view, role="img", aria_label=label)


def _check_yourself() -> Markup:
    return _section(
        "check",
        "Check it yourself",
        (
            element(
                "p",
                "This page is a reading of the trail, not the evidence. The evidence is the export: it "
                "holds every entry as stored, the tree as tiles, the signed heads and the public keys, in "
                "open formats.",
            ),
            element("p", element("code", "holdfast audit verify EXPORT --key VKEY", class_="mono")),
            element(
                "p",
                "checks it with no store and no network; any verifier of C2SP tlog-tiles and signed notes "
                "can check the tree. Take the public key from somewhere else than from the one who gave you "
                "the export.",
            ),
        ),
    )


def _foot() -> Markup:
    return element("footer", "Times are in UTC. An entry is named session#number.")


def _section(anchor: str, title: str, body: Child) -> Markup:
    heading = element("h2", title, id=f"{anchor}-title")
    return element("section", heading, body, id=anchor, aria_labelledby=f"{anchor}-title")


def _left_out(section: Section) -> Markup | None:
    left = section.total - len(section.shown)
    if not left:
        return None
    shown = f"The first {len(section.shown)} of {section.total} are shown"
    text = f"{shown}; all are in the CSV and JSON Lines reports."
    return element("p", element("strong", text))


def _outcome(entry: AuditEntry) -> Markup:
    look = next((look for kind, look in _OUTCOME_LOOKS.items() if entry.outcome == kind), "mind")
    return element("span", str(entry.outcome), class_=f"tag {look}")


def _who(entry: AuditEntry) -> str:
    if entry.agent and entry.actor:
        return f"{entry.agent} (as {entry.actor})"
    return entry.agent or entry.actor or "unknown"


def _short(value: int | str) -> str:
    """Shorten a hash: whole ones are in the other reports, and nobody compares them by eye."""
    text = str(value)
    return f"{text[:_HASH_CHARS]}…" if text.startswith("sha256:") else text


def _words(name: str) -> str:
    return str(name).replace("_", " ").capitalize()


def _anchor(topic: Topic) -> str:
    return topic.name.lower()
