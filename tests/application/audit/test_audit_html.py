from __future__ import annotations

import pytest

from holdfast.application.audit.audit_digest import Topic, digest
from holdfast.application.audit.audit_event import PayloadState
from holdfast.application.audit.audit_html import About, render_page
from holdfast.application.audit.audit_report import Reported
from holdfast.domain.audit_type import AuditType
from tests.application.told import Page, Told, check_page, day_at_work, entry
from tests.trails import LOG_KEY

ABOUT = About("session s-1", "file:.holdfast", "2026-01-12T09:00:00.000000Z", "u-2", (str(LOG_KEY.key),))
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(2)>&amp;\u202e'


def shown(told: Told, signed: int = 0, **more: int) -> Page:
    return Page(render_page(digest(told.reported(), **more), ABOUT, told.verify(signed)))


def test_the_page_is_whole_self_contained_and_inert():
    check_page(shown(day_at_work(), 6))


def test_the_page_tells_who_decided_what_when_and_why():
    text = shown(day_at_work()).text
    assert "ask two researchers" in text
    assert "by planner (as svc-7), for WF-1, on 2026-01-11 14:32:00 UTC, entry s-1#3" in text
    assert "Why the offers differ in kind Alternatives ask three ask nobody Confidence 90%" in text


def test_the_page_has_a_part_for_everything_that_happened():
    page = shown(day_at_work())
    for topic in Topic:
        assert str(topic) in page.text
    headings = [attributes.get("id") for attributes in page.all("h2")]
    assert headings == [
        "summary-title",
        "proofs-title",
        "decisions-title",
        "approvals-title",
        "trouble-title",
        "recoveries-title",
        "prunes-title",
        "erasures-title",
        "reads-title",
        "clock-title",
        "timeline-title",
        "check-title",
    ]
    assert "within budget" in page.text and "asked for" in page.text and "code lease_held" in page.text


def test_the_page_says_how_far_the_log_is_proven():
    text = shown(day_at_work(), 6).text
    assert "Level reached: signed head" in text
    assert "6 of 11 entries are covered by a head that was checked. Unanchored tail: 5 entries" in text
    assert str(LOG_KEY.key) in text


def test_the_page_says_if_nothing_was_verified():
    page = Page(render_page(digest(day_at_work().reported()), About("the whole store")))
    check_page(page)
    assert "The log was not verified for this report." in page.text


def test_a_clock_that_stepped_back_is_flagged_where_it_happened():
    text = shown(day_at_work()).text
    assert "clock stepped back It said 2026-01-01 14:30:00 UTC." in text
    assert "Clock steps 1" in text


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (PayloadState.ERASED, "The particulars were erased."),
        (PayloadState.SEALED, "there is no key for them here"),
        (PayloadState.DAMAGED, "are not those that were committed to"),
    ],
)
def test_a_payload_that_cannot_be_shown_is_said_to_be_so(state, said):
    entries = [Reported(one.entry, None, state) if one.payload else one for one in day_at_work().reported()]
    text = Page(render_page(digest(entries), ABOUT)).text
    assert said in text and f"payload {state}" in text
    assert "ask two researchers" not in text


@pytest.mark.parametrize(
    "hostile",
    [
        entry(1, payload={"description": HOSTILE, "rationale": HOSTILE, "alternatives": [HOSTILE]}),
        entry(1, payload={HOSTILE: {HOSTILE: HOSTILE}}),
        entry(1, AuditType.APPROVAL_DENIED, {"reason": HOSTILE}),
        entry(1, AuditType.STATE_READ, workflow_id=HOSTILE, agent=HOSTILE, actor=HOSTILE),
        entry(1, AuditType.STATE_READ, session_id=HOSTILE, facts={"code": HOSTILE}),
    ],
)
def test_nothing_that_was_written_becomes_markup(hostile):
    page = shown(Told().add(hostile))
    check_page(page)
    assert "<script>alert(" in page.text and "\u202e" not in page.text


def test_what_the_page_says_about_itself_is_escaped():
    page = Page(render_page(digest([]), About(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,))))
    check_page(page)


def test_a_long_trail_is_cut_and_that_is_said():
    many = Told().add(*(entry(number, payload={"description": f"no. {number}"}) for number in range(1, 40)))
    text = shown(many, shown_max=10).text
    assert "The first 10 of 39 are shown; all are in the CSV and JSON Lines reports." in text
    assert "The first 10 of 40 are shown" in text and "no. 30" not in text


def test_many_names_are_counted_but_not_all_listed():
    many = Told().add(*(entry(number, AuditType.STATE_READ, agent=f"a-{number}") for number in range(1, 40)))
    assert "and 9 more" in shown(many).text


def test_an_empty_trail_gives_a_page_too():
    page = Page(render_page(digest([]), ABOUT))
    check_page(page)
    assert "Entries 0" in page.text


def test_any_shape_of_payload_is_shown():
    odd = {
        "description": ["a", 1],
        "confidence": 7,
        "note": None,
        "deep": {"x": [1, {"y": b"z"}]},
        "n": float("inf"),
    }
    page = shown(Told().add(entry(1, payload=odd)))
    check_page(page)
    assert "Confidence 7" in page.text


def test_the_same_trail_gives_the_same_page():
    told = day_at_work()
    pages = {render_page(digest(told.reported()), ABOUT, told.verify(6)) for _ in range(2)}
    assert len(pages) == 1
