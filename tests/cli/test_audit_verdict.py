from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from holdfast.cli.audit_verdict import (
    age_text,
    coverage,
    leave_of,
    print_report,
    report_fields,
    silence,
    tail,
)
from holdfast.cli.exits import Exit
from holdfast.cli.output import Output
from holdfast.domain.log_check import Level
from tests.trails import KEY_ONLY, NOW, make_log

SOUND = make_log(12, (4, 8), waiting=2).check()
SIGNED = make_log(12, (4, 8)).check(KEY_ONLY)
BROKEN = make_log(40, (40,)).with_line(5, b"{}\n").check()


def test_the_exit_tells_the_verdict():
    assert leave_of(SOUND, Level.SIGNED) is Exit.DONE
    assert leave_of(SIGNED, Level.PINNED) is Exit.INCONCLUSIVE
    assert leave_of(BROKEN, Level.CHAIN) is Exit.NOT_VERIFIED
    assert leave_of(replace(SOUND, untold=("W",)), Level.SIGNED) is Exit.INCONCLUSIVE
    assert leave_of(replace(BROKEN, untold=("W",)), Level.CHAIN) is Exit.NOT_VERIFIED


def test_coverage_and_tail_are_told_in_numbers():
    assert coverage(SOUND) == "signed up to 8, witnessed up to 8"
    said = tail(SOUND, NOW + timedelta(hours=3))
    assert said == "6 entries not anchored, the first 3 hours old, 2 of them not in the tree yet"
    assert "their end may have been cut off" in coverage(replace(SOUND, signed_size=0, witnessed_size=0))
    assert tail(replace(SOUND, tail=0)) == "everything is anchored"
    assert "of unknown age" in tail(replace(SOUND, tail_since="nonsense"))


@pytest.mark.parametrize(
    "seconds, text",
    [(-1, "0 seconds"), (1.2, "1 second"), (90, "90 seconds"), (7200, "2 hours"), (3e5, "3 days")],
)
def test_ages_are_told_in_their_largest_unit(seconds: float, text: str):
    assert age_text(seconds) == text


def test_a_person_is_told_the_first_bad_entry_and_the_others(capsys):
    print_report(Output(), "here", BROKEN, Level.CHAIN)
    out = capsys.readouterr().out
    assert "first bad" in out and "verdict      failed: " in out and "also" in out
    many = replace(BROKEN, fault_count=500, faults=BROKEN.faults * 30)
    print_report(Output(), "here", many, Level.CHAIN)
    assert "and 480 faults more" in capsys.readouterr().out


def test_a_person_is_told_what_is_missing_and_what_the_clock_did(capsys):
    print_report(Output(), "here", replace(SIGNED, clock_steps=2), Level.PINNED, "checked with a key")
    out = capsys.readouterr().out
    assert "verdict      inconclusive" in out and "had stepped back at 2 entries" in out
    assert "signatures   checked with a key" in out


def test_programs_are_told_everything():
    fields = report_fields(BROKEN, Level.SIGNED)
    assert (fields["verdict"], fields["level"], fields["required"]) == ("failed", "none", "signed head")
    assert fields["faults"][0]["index"] == 5 and fields["faults"][0]["kind"] == "entry"
    assert len(fields["root"]) == 64


def test_of_many_workflows_that_are_left_out_a_few_are_named():
    assert silence(["A"]) == "nothing of the last checkpoint of 1 workflow: A"
    assert silence(list("ABCDE")) == "nothing of the last checkpoint of 5 workflows: A, B, C and 2 more"
