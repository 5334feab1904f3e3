from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.audit.markup import Markup, element, escape, join, moment_text, page, table
from tests.application.told import Page, check_page


def test_text_is_escaped_and_markup_is_not_escaped_again():
    inner = element("b", "<i>&")
    assert inner == "<b>&lt;i&gt;&amp;</b>"
    assert element("p", inner, " & ", 3, None, ["x", ("y",)]) == "<p><b>&lt;i&gt;&amp;</b> &amp; 3xy</p>"


def test_attributes_are_escaped_and_left_out_if_none():
    assert element("a", "x", href='"><script>', class_="k", id=None) == (
        '<a href="&quot;&gt;&lt;script&gt;" class="k">x</a>'
    )
    assert element("i", aria_label="n", data_x=1) == '<i aria-label="n" data-x="1"></i>'


def test_elements_that_hold_nothing_are_not_closed():
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_what_shows_nothing_or_turns_the_text_around_is_written_out():
    assert escape("a\u202eb\u200bc\x00d\ufeff") == "a\\u202eb\\u200bc\\u0000d\\ufeff"
    assert escape("tab\tand\nline") == "tab\tand\nline"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_becomes_markup(text, attribute):
    parsed = Page(element("p", text, title=attribute))
    assert [tag for tag, _ in parsed.tags] == ["p"] and parsed.unbalanced == []
    assert "".join(parsed.words) == escape_only_unseen(text)


def escape_only_unseen(text: str) -> str:
    """Read back what was escaped, with a parser of the standard library."""

    class Reader(HTMLParser):
        found = ""

        def handle_data(self, data: str) -> None:
            self.found += data

    reader = Reader()
    reader.feed(escape(text))
    reader.close()
    return reader.found


def test_joined_pieces_are_markup():
    assert isinstance(join("a", Markup("<br>")), Markup)


def test_a_table_has_a_caption_and_named_columns():
    made = table("Numbers", ("One", "Two"), element("tbody"))
    parsed = Page(made)
    assert "Numbers One Two" in parsed.text
    assert [attributes["scope"] for attributes in parsed.all("th")] == ["col", "col"]
    assert 'class="log"' in table("Numbers", (), look="log")


def test_a_moment_is_shown_to_the_second():
    assert moment_text("2026-01-11T14:30:05.123456Z") == "2026-01-11 14:30:05 UTC"


def test_a_page_tells_the_browser_to_load_and_run_nothing():
    parsed = Page(page("A <title>", "b { color: red }", element("h1", "x")))
    check_page(parsed)
    policy = next(tag["content"] for tag in parsed.all("meta") if "http-equiv" in tag)
    assert policy is not None and policy.startswith("default-src 'none'; style-src 'sha256-")
