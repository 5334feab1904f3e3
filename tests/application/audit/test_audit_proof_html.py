from __future__ import annotations

from holdfast.application.audit.audit_proof_html import coverage_text, proof_section, verdict_text
from tests.application.told import Page, day_at_work
from tests.trails import EVERYTHING, LOG_KEY, make_log


def test_a_chain_alone_is_not_called_proven():
    report = day_at_work().verify()
    assert "whoever may write the store could have made it all anew" in verdict_text(report)
    assert "verdict mind" in proof_section(report)


def test_a_signed_log_says_the_level_it_reached():
    section = proof_section(day_at_work().verify(11), [str(LOG_KEY.key)])
    assert "verdict ok" in section and str(LOG_KEY.key) in section
    assert Page(section).text.count("not reached") == 2
    assert (
        coverage_text(day_at_work().verify(11)) == "11 of 11 entries are covered by a head that was checked."
    )


def test_a_witnessed_log_reaches_every_level_below():
    report = make_log(20, [8, 16]).check(EVERYTHING)
    assert "not reached" not in Page(proof_section(report)).text
    assert "Unanchored tail: 4 entries since 2026-01-11 14:00:16 UTC." in coverage_text(report)
    assert "Unanchored tail: 1 entry since" in coverage_text(make_log(17, [8, 16]).check(EVERYTHING))


def test_the_first_bad_entry_is_named():
    told = day_at_work()
    told.lines[3] = told.lines[3].replace(b"success", b"failure")
    report = told.verify(6)
    section = proof_section(report)
    assert "verdict bad" in section
    text = Page(section).text
    assert "The first: an audit entry is not the one that was committed: " in text
    assert "audit entry 4 (AE-000004) of session 's-1'." in text
    assert "What is wrong" in section


def test_without_a_report_and_keys_that_is_said():
    text = Page(proof_section(None)).text
    assert "was not verified" in text and "No public key was given." in text


def test_an_empty_log_is_shown():
    text = Page(proof_section(make_log(0, []).check())).text
    assert "0 of 0 entries" in text
