"""What `holdfast doctor` tells about the trail: whether it is whole, signed, and by which clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.cli.audit_opening import log_over
from holdfast.cli.audit_verdict import memory_hint, silence, tail
from holdfast.cli.machine import FAIL, INFO, OK, WARN, Check
from holdfast.cli.output import counted
from holdfast.domain.errors import CheckpointError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.log_check import LogReport
    from holdfast.domain.note import VerifierKey

_NEVER_SIGNED = "`holdfast audit anchor` makes one and signs. Unsigned, a trail can be cut or made anew."
_SILENT = (
    "If the trail was not switched off when they were written, entries are gone: compare with a pinned head."
)
_BROKEN = "Run `holdfast audit verify` to see how far it can be trusted."
_LOST = (
    "`holdfast audit verify` names all that is gone. `holdfast copy BACKUP STORE WORKFLOW` brings a workflow "
    "back from a backup; `holdfast erase --workflow WORKFLOW` accepts that it is lost."
)
_SIGNED_ELSEWHERE = (
    "Sign where the key is, or let signing_key name a copy of it. `holdfast audit anchor` would make a "
    "second key here, and who knows the first one only takes its heads for forged."
)


def trail_checks(kit: Kit) -> Iterator[Check]:
    """Verify the trail with what is known on this machine."""
    log = log_over(kit)
    try:
        key, trouble = log.keeper.own_key(), None
    except CheckpointError as error:
        key, trouble = None, error
    try:
        report = log.verify(log.trust((key,) if key else log.keeper.keys()))
    except CheckpointError as error:
        yield Check("trail", FAIL, _words(error), error.hint)
        return
    yield _whole(report)
    if report.untold:
        yield Check("trail tells", WARN, silence(report.untold), _SILENT)
    if trouble is None:
        yield _signed(key, report)
    else:
        yield Check("signing key", WARN, _words(trouble), trouble.hint)
    if report.clock_steps:
        detail = f"the clock had stepped back at {counted(report.clock_steps, 'entry')} of the trail"
        yield Check("trail clock", WARN, detail, "Times there were held; use NTP where it was written.")


def _words(error: CheckpointError) -> str:
    return f"{error.message}: {error.place}" if error.place else error.message


def _whole(report: LogReport) -> Check:
    held = f"{counted(report.entries, 'entry')} in {counted(report.sessions, 'session')}"
    fault = report.first_fault
    if fault is None:
        return Check("trail", OK, f"{held} verified")
    detail = f"{counted(report.fault_count, 'fault')}, the first: {fault}"
    hints = {"store": _LOST, "memory": memory_hint(fault)}
    return Check("trail", FAIL, detail, hints.get(fault.kind, _BROKEN))


def _signed(key: VerifierKey | None, report: LogReport) -> Check:
    signed = f"signed up to entry {report.signed_size:,}" if report.signed_size else "nothing is signed"
    detail = f"{signed}; {tail(report)}"
    if key is None:
        status, hint = (INFO, _SIGNED_ELSEWHERE) if report.signed_size else (WARN, _NEVER_SIGNED)
        return Check("signing key", status, f"not on this machine; {detail}", hint)
    return Check("signing key", OK, f"{key.id.hex()}; {detail}")
