from __future__ import annotations

import pytest

from holdfast.cli.unknown_types import warn_of_unknown

KNOWN = ("AGENT_DECISION", "TASK_ASSIGNED")
LINES = (b'{"seq":1,"ts":"x","type":"LOAN_DECIDED"}', b'{"seq":2,"ts":"x","type":"TASK_ASSIGNED"}')


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("AGENT_DESICION", "warning: nothing here is of type AGENT_DESICION. Did you mean AGENT_DECISION?\n"),
        ("LOAN_DECIDD", "warning: nothing here is of type LOAN_DECIDD. Did you mean LOAN_DECIDED?\n"),
        ("\u202exyz", "warning: nothing here is of type \\u202exyz.\n"),
        ("LOAN_DECIDED", ""),
    ],
)
def test_a_type_that_nothing_has_is_told_with_the_nearest(
    wanted: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warn_of_unknown(["AGENT_DECISION", wanted], KNOWN, LINES)
    assert capsys.readouterr().err == said


def test_for_types_that_are_known_nothing_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter(LINES)
    warn_of_unknown(KNOWN, KNOWN, lines)
    assert capsys.readouterr().err == "" and len(list(lines)) == len(LINES)
