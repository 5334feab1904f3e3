"""A report has the form of the document, and no text in it breaks that form."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.event import Event
from holdfast.domain.progress_report import (
    REPORT_EVENT,
    UNTITLED,
    ReportSection,
    render_report,
    report_head,
    section_of,
)

#: Lines that Markdown makes something of, to be put together in any order.
LINES = r"""# a
## b
### c
---
- - -
- -
***
===
-
```
````
```py
~~~
~~~~ x
- ```
  ```
   ~~~
1. ~~~
> ```
**Sources:**
- x
<!-- a
<script>
<pre
<?x
<b>
</div>
<https://a.example>
text
  ## in
    ## code
> ## q
`` ` ``
\
| a | b |
|---|---|"""
odd = st.lists(st.sampled_from([*LINES.split("\n"), "", "\r", "\x1b[2J", "\u2028"]), max_size=12).map(
    "\n".join
)
texts = odd | st.text(max_size=60)
sections = st.builds(ReportSection, texts, texts, st.lists(texts, max_size=4).map(tuple))


def event(seq: int = 1, type: str = REPORT_EVENT, **data: Any) -> Event:
    return Event(seq, datetime(2026, 1, 11, tzinfo=UTC), type, "WF-1", data=data)


def headings(markdown: str) -> list[str]:
    """Read the headings of our two levels as a reader of Markdown does, code left out."""
    found, fence = [], ""
    for line in markdown.split("\n"):
        mark = re.match(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})", line)
        if fence:
            is_end = mark and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if is_end else fence
        elif mark:
            fence = mark[1]
        elif heading := re.match(r" {0,3}(#{1,2})(?:[ \t]+(.*))?$", line):
            found.append(f"{heading[1]} {heading[2] or ''}")
        elif re.match(r" {0,3}<(?!https:)[a-z/!?]", line, re.IGNORECASE):
            found.append("raw HTML, which may hide what comes after it")
    return [*found, "open code"] if fence else found


def rules(markdown: str) -> int:
    """Count the lines that end a section."""
    return sum(line == "---" for line in markdown.split("\n"))


def test_a_section_has_the_form_of_the_document() -> None:
    section = ReportSection(
        "Offers", "Three were compared.\n\nB is cheapest.", ("https://a.example", "b, p. 4")
    )
    assert section.render() == (
        "\n## Offers\n\nThree were compared.\n\nB is cheapest."
        "\n\n**Sources:**\n- https://a.example\n- b, p. 4\n\n---\n"
    )


def test_without_citations_there_is_no_block_of_sources() -> None:
    assert ReportSection("Offers", "None came.").render() == "\n## Offers\n\nNone came.\n\n---\n"


def test_a_report_is_its_head_and_its_sections_in_order() -> None:
    events = [
        event(1, title="One", summary="1"),
        event(2, "SOMETHING_ELSE", title="Two", summary="2"),
        event(3, title="Three", summary="3", citations=["c"]),
    ]
    assert render_report("WF-1", events) == (
        "# WF-1\n\n## One\n\n1\n\n---\n\n## Three\n\n3\n\n**Sources:**\n- c\n\n---\n"
    )
    assert render_report("WF-1", []) == report_head("WF-1") == "# WF-1\n"


def test_usual_markdown_in_a_summary_stays_as_it_is() -> None:
    summary = (
        "### Findings\n\n- one\n- **two** with `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "```python\n# no heading\n---\n```\n\n#hashtag, 3 < 4, <https://a.example> and ---\n"
    )
    assert summary in ReportSection("T", summary).render()


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("# Big", "\\# Big"),
        ("  ## Mine", "  \\## Mine"),
        ("##", "\\##"),
        ("---", "\\---"),
        ("- - -", "\\- - -"),
        ("***", "\\***"),
        ("===", "\\==="),
        ("**Sources:**", "\\**Sources:**"),
        ("<!-- hidden", "\\<!-- hidden"),
        ("<SCRIPT>", "\\<SCRIPT>"),
        ("</div>", "\\</div>"),
        ("<https://a.example>", "<https://a.example>"),
        ("<ann@example.com>", "<ann@example.com>"),
        ("\x1b[2Jgone", "\ufffd[2Jgone"),
    ],
)
def test_a_line_that_would_break_the_form_is_escaped(line: str, written: str) -> None:
    assert ReportSection("T", f"a\n{line}\nb").render() == f"\n## T\n\na\n{written}\nb\n\n---\n"


@pytest.mark.parametrize("fence", ["```", "~~~~", "`````"])
def test_code_that_is_left_open_is_closed(fence: str) -> None:
    assert (
        ReportSection("T", f"{fence}py\n## code").render()
        == f"\n## T\n\n{fence}py\n## code\n{fence}\n\n---\n"
    )


@pytest.mark.parametrize("code", ["- a:\n  ```\n  ## x\n  ```\nb", "> ~~~\n> x", "  ```\n\n# a"])
def test_a_text_with_code_inside_something_else_is_quoted_as_a_whole(code: str) -> None:
    quoted = "".join(f"> {line}\n" if line else ">\n" for line in code.split("\n"))
    assert ReportSection("T", code).render() == f"\n## T\n\n{quoted}\n---\n"


def test_titles_and_citations_are_one_line_each() -> None:
    written = ReportSection("a\n\n## b\r\n", "s", ("x\n---\ny", "\u2028z")).render()
    assert written == "\n## a ## b\n\ns\n\n**Sources:**\n- x --- y\n- z\n\n---\n"
    assert ReportSection("a", "s", ("---", "", " \n")).render().endswith("\n\n**Sources:**\n- \\---\n\n---\n")
    assert ReportSection("a", "s", ("", " ")).render() == "\n## a\n\ns\n\n---\n"
    assert ReportSection(" \n ", "s").render().startswith(f"\n## {UNTITLED}\n")


@given(st.lists(sections, max_size=4))
def test_whatever_is_reported_each_section_is_one_heading_and_one_end(made: list[ReportSection]) -> None:
    events = [
        event(n, title=s.title, summary=s.summary, citations=[*s.citations]) for n, s in enumerate(made)
    ]
    written = render_report("WF-1", events)
    found = headings(written)
    assert [one[:2] for one in found] == ["# ", *["##"] * len(made)]
    outside = re.sub(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?^\s*\1[`~]*\s*$", "", written)
    assert rules(outside) <= len(made) <= rules(written)
    assert "\x1b" not in written and "\r" not in written


@given(sections)
def test_a_section_does_not_depend_on_those_around_it(section: ReportSection) -> None:
    data = {"title": section.title, "summary": section.summary, "citations": [*section.citations]}
    both = render_report("WF-1", [event(1, **data), event(2, **data)])
    assert both == report_head("WF-1") + 2 * section.render()


@pytest.mark.parametrize(
    ("data", "section"),
    [
        ({}, ReportSection("", "")),
        ({"title": 7, "summary": None}, ReportSection("7", "")),
        ({"title": "T", "summary": ["a"], "citations": "one"}, ReportSection("T", "['a']", ("one",))),
        ({"citations": [1, {"url": "u"}]}, ReportSection("", "", ("1", "{'url': 'u'}"))),
    ],
)
def test_whatever_an_event_holds_can_be_shown(data: dict[str, Any], section: ReportSection) -> None:
    assert section_of(event(**data)) == section
    assert section.render().endswith("\n---\n")


def test_what_is_nested_too_deep_for_words_is_no_reason_to_stop() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert section_of(event(summary=deep)).summary == "It is nested too deep to be shown here."
