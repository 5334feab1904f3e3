from __future__ import annotations

from html.parser import HTMLParser

from holdfast.application.insight.run_report import report
from holdfast.application.insight.run_report_html import as_html
from holdfast.application.insight.run_report_values import RunReport
from tests.application.insight.runs import hostile_run, whole_run


class Page(HTMLParser):
    """Collects the tags of a page, and whether each is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.stack: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br", "hr"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag


def test_the_page_holds_everything_and_is_well_formed():
    text = as_html(report(whole_run(), "W"))
    page = Page(text)
    assert page.stack == []
    for told in (
        "plan decided: use kelp",
        "Why: cheap",
        "root granted publish",
        "no fuel",
        "0.2500 USD",
        "Three.",
        "a book",
        "holdfast audit verify",
        "W@2",
    ):
        assert told in text


def test_the_page_loads_nothing_and_runs_nothing():
    for kit in (whole_run(), hostile_run()):
        [name] = kit.store.workflows()
        text = as_html(report(kit, name))
        page = Page(text)
        assert not page.tags & {"script", "img", "link", "iframe", "object", "a", "form", "svg"}
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name in page.attributes)
        assert "default-src &#x27;none&#x27;" in text


def test_it_can_be_printed():
    assert "@media print" in as_html(RunReport("W", "completed"))


def test_how_it_stands_is_said_in_words_and_colour():
    assert '<p class="verdict ok">completed: It is done.</p>' in as_html(RunReport("W", "completed"))
    assert 'class="verdict bad"' in as_html(RunReport("W", "failed"))
    assert 'class="verdict mind"' in as_html(RunReport("W", "waiting"))


def test_half_a_letter_does_not_keep_the_page_from_being_written():
    assert b"?" in as_html(RunReport("W", "odd \ud800")).encode()
