"""The progress report of a workflow: Markdown that a person reads while work goes on, or after it stopped.

A section for each thing that was found out, one after the other, under one heading:

    # WF-1

    ## Offers

    Three offers were compared.

    **Sources:**
    - https://example.com/offers

    ---

It is made of events in the journal and can be made anew from them at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.domain.event import Event
from holdfast.domain.run_events import AGENT_COMPLETED

#: The event that a section is made of; its data are `title`, `summary` and a list of `citations`.
REPORT_EVENT = "REPORT_ADDED"
UNTITLED = "Untitled"
#: So much is shown of the result of an agent that wrote no report itself.
_RESULT_CHARS_MAX = 500
_SOURCES = "**Sources:**"
_TOO_DEEP = "It is nested too deep to be shown here."

_LINE_END = re.compile("\r\n|[\n\r]")
_LINE_ENDS = re.compile("[\n\r\u0085\u2028\u2029]+")
#: What moves the cursor of a terminal, or ends a line somewhere; not a tab and a newline.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
#: Lines that would be read as a heading of ours, as the end of a section, as its sources, or as raw HTML.
_BREAKING = re.compile(
    r"""( \#{1,2} (?=[ \t]|$)
        | (?: =+[ \t]* | -[- \t]* | (?:_[ \t]*){3,} | (?:\*[ \t]*){3,} ) $
        | \*\*Sources:\*\* [ \t]* $
        | < (?! [a-z][a-z0-9+.-]*: | [^\s<>@]+@ ) [a-z/!?]
        )""",
    re.VERBOSE | re.IGNORECASE,
)
#: Where code begins or ends, in a list or a quotation too.
_FENCE = re.compile(r"[ \t>*+\-\d.)]*(`{3,}(?=[^`]*$)|~{3,})")
_INDENT = re.compile(" {0,3}")


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One thing that was found out."""

    title: str
    summary: str
    citations: tuple[str, ...] = ()

    def render(self) -> str:
        """Write the section as Markdown; without citations there is no block of sources."""
        cited = [line for citation in self.citations if (line := _on_one_line(citation))]
        # A dash with nothing, or with dashes only, behind it would make a heading or a rule of its line.
        listed = "".join(f"- {_escaped(line)}\n" for line in cited)
        sources = f"\n{_SOURCES}\n{listed}" if listed else ""
        title = _on_one_line(self.title) or UNTITLED
        return f"\n## {title}\n\n{_contained(self.summary)}\n{sources}\n---\n"


def has_section(event: Event) -> bool:
    """Tell whether an event makes a section: a report, or the end of an agent that wrote none itself."""
    is_end = event.type == AGENT_COMPLETED and event.step_id is not None
    return event.type == REPORT_EVENT or (is_end and not event.data.get("reported"))


def section_of(event: Event) -> ReportSection:
    """Read the section out of an event; whatever is in there can be shown."""
    data = event.data
    if event.type == AGENT_COMPLETED:
        return ReportSection(event.step_id or "", _shown(data.get("result")))
    citations = data.get("citations")
    many = citations if isinstance(citations, list | tuple) else [] if citations is None else [citations]
    return ReportSection(_text(data.get("title")), _text(data.get("summary")), tuple(map(_text, many)))


def report_head(workflow_id: str) -> str:
    """Write what a report begins with."""
    return f"# {_on_one_line(workflow_id)}\n"


def render_report(workflow_id: str, events: Iterable[Event]) -> str:
    """Write the whole report of a workflow from its events; those of other types do not matter."""
    sections = (section_of(event).render() for event in events if has_section(event))
    return report_head(workflow_id) + "".join(sections)


def _shown(result: Any) -> str:
    """Put what an agent answered into words, cut where it is long."""
    text = "It is done." if result is None else _text(result)
    return text if len(text) <= _RESULT_CHARS_MAX else text[:_RESULT_CHARS_MAX] + " …"


def _text(value: Any) -> str:
    if value is None:
        return ""
    try:
        return str(value)
    except RecursionError:
        return _TOO_DEEP


def _on_one_line(text: str) -> str:
    return _CONTROLS.sub(_REPLACEMENT, _LINE_ENDS.sub(" ", text)).strip()


def _contained(summary: str) -> str:
    """Keep a text from ending its section: lines that would are escaped, code that is open is closed."""
    lines = _LINE_END.split(_CONTROLS.sub(_REPLACEMENT, summary))
    fences = [_FENCE.match(line) for line in lines]
    if any(fence and fence.start(1) for fence in fences):
        # Where such code ends depends on everything around it; of a quotation the end is certain.
        return "\n".join(f"> {line}" if line else ">" for line in lines)
    opening, written = "", list[str]()
    for line, fence in zip(lines, fences, strict=True):
        written.append(line if opening or fence else _escaped(line))
        if fence and not opening:
            opening = fence[1]
        elif fence and fence[1].startswith(opening) and not line.strip().strip(opening[0]):
            # Closed by as many of the same, alone on their line.
            opening = ""
    return "\n".join([*written, opening] if opening else written)


def _escaped(line: str) -> str:
    start = _INDENT.match(line)
    at = start.end() if start else 0
    return f"{line[:at]}\\{line[at:]}" if _BREAKING.match(line, at) else line
