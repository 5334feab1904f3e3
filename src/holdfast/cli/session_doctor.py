"""What `holdfast doctor` tells about the records of sessions: are they those that the trail tells of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.cli.machine import FAIL, OK, WARN, Check
from holdfast.cli.output import counted
from holdfast.domain.errors import CheckpointCorruptError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit

_SHOWN_MAX = 20


def session_checks(kit: Kit) -> Iterator[Check]:
    """Ask of every session what `holdfast session show` asks of one."""
    from holdfast.application.session_files import SessionFiles

    problems = SessionFiles(kit).unconfirmed()
    shown = list(islice(problems, _SHOWN_MAX))
    for problem in shown:
        # What cannot be opened here, for want of a key say, is not known to be wrong.
        status = FAIL if isinstance(problem, CheckpointCorruptError) else WARN
        yield Check("sessions", status, f"{problem.message}: {problem.place}", problem.hint)
    more = sum(1 for _ in problems)
    if more:
        yield Check("sessions", FAIL, f"and {counted(more, 'session')} more")
    if not shown:
        yield Check("sessions", OK, "their records are those that the trail tells of")
