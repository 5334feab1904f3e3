from __future__ import annotations

from holdfast.application.audit.evidence_controls import CONTROLS
from holdfast.application.audit.evidence_pack import make_pack
from tests.application.audit.test_evidence_pack import horizon
from tests.application.told import Page, Told, check_page, day_at_work, entry


def shown(told: Told, signed: int = 8) -> Page:
    return Page(make_pack(horizon(told, signed))[0]["index.html"].decode())


def test_the_page_is_whole_self_contained_and_inert():
    check_page(shown(day_at_work()))
    check_page(shown(Told(), 0))


def test_the_page_has_every_control_with_its_answer():
    page = shown(day_at_work())
    for control in CONTROLS:
        assert control.title in page.text and control.asks in page.text
    assert "1 entry (AGENT_DECISION 1); by outcome: success 1" in page.text
    assert "nothing of that kind was recorded" in page.text
    assert "To be looked at: encryption is off." in page.text


def test_proofs_are_linked_and_what_has_none_says_so():
    page = shown(day_at_work())
    links = {attributes["href"] for attributes in page.all("a")}
    assert "proofs/000000000002.tlog-proof" in links
    assert "not signed yet" in page.text


def test_names_become_no_markup():
    page = shown(Told().add(entry(1, workflow_id="<script>", agent="<img>", session_id="<b>")), 0)
    check_page(page)
    assert "<script>" in page.text


def test_what_is_left_out_is_said():
    many = Told().add(*(entry(number) for number in range(1, 101)))
    assert "50 entries between the first and the last are not shown here." in shown(many, 0).text
