"""How the verdict on a trail is told: the level reached, what is covered by what, and the first bad entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import Exit
from holdfast.cli.output import Output, counted, safe

if TYPE_CHECKING:
    from holdfast.domain.log_check import Level, LogReport
    from holdfast.domain.trail_check import Fault

#: What to do where the key here signed more than there is.
PUT_BACK = (
    "The key here signed more than there is: the store was put back to an older state, or made anew. If that "
    "was meant, and the rest is lost for good, move the `.head` file beside the key away, and sign again."
)
#: What to do where there is as much, and it is not what was signed: nothing that would hide it.
CHANGED = (
    "What the key here signed is not what is here: entries were changed since, or the store was put back to "
    "an older state and went on. Sign nothing; compare with a backup, or with an export made before."
)
_FAULTS_SHOWN_MAX = 20
_NAMES_SHOWN_MAX = 3
_LABEL_WIDTH = 12


def leave_of(report: LogReport, required: Level) -> Exit:
    """Name the exit of a verification."""
    from holdfast.domain.log_check import Verdict

    verdicts = {Verdict.OK: Exit.DONE, Verdict.FAILED: Exit.NOT_VERIFIED}
    return verdicts.get(report.verdict(required), Exit.INCONCLUSIVE)


def print_report(output: Output, place: str, report: LogReport, required: Level, remark: str = "") -> None:
    """Tell what a verification found."""
    if output.as_json:
        output.data({"place": place, **report_fields(report, required), "remark": remark})
        return
    for label, text in _lines(report, required, remark):
        output.line(f"{label:<{_LABEL_WIDTH}} {text}")
    for fault in report.faults[1:_FAULTS_SHOWN_MAX]:
        output.line(f"{'also':<{_LABEL_WIDTH}} {safe(fault)}")
    if report.fault_count > _FAULTS_SHOWN_MAX:
        output.line(f"{'':<{_LABEL_WIDTH}} and {report.fault_count - _FAULTS_SHOWN_MAX:,} faults more")
    output.line(f"{'verdict':<{_LABEL_WIDTH}} {_verdict(output, report, required)}")


def silence(untold: Sequence[str]) -> str:
    """Say of whom a trail tells nothing."""
    shown = ", ".join(map(safe, untold[:_NAMES_SHOWN_MAX]))
    more = f" and {len(untold) - _NAMES_SHOWN_MAX:,} more" if len(untold) > _NAMES_SHOWN_MAX else ""
    return f"nothing of the last checkpoint of {counted(len(untold), 'workflow')}: {shown}{more}"


def _lines(report: LogReport, required: Level, remark: str) -> list[tuple[str, str]]:
    lines = [
        ("log", safe(report.head.origin) or "has no name yet: nothing was ever signed"),
        ("tree", f"{counted(report.head.size, 'entry')}, root {report.head.root.hex()}"),
        (
            "entries",
            f"{report.entries:,} right, in {counted(report.sessions, 'session')}, "
            f"{report.open_sessions:,} of them open",
        ),
        ("payloads", _payloads(report)),
        ("level", f"{report.level.label}, required: {required.label}"),
        ("covered", coverage(report)),
        ("tail", tail(report)),
    ]
    if report.part:
        lines.insert(3, ("part", part(report)))
    if remark:
        lines.append(("signatures", safe(remark)))
    if report.untold:
        lines.append(("tells", silence(report.untold)))
    if report.clock_steps:
        lines.append(("clock", f"had stepped back at {counted(report.clock_steps, 'entry')}"))
    if report.first_fault is not None:
        lines.append(("first bad", safe(report.first_fault)))
    for fault in report.faults:
        if fault.kind == "memory":
            lines.append(("changed" if fault.index is None else "put back", memory_hint(fault)))
    return lines


def memory_hint(fault: Fault) -> str:
    """Say what to do about a log that is not what the key here remembers: it is cut off, or another."""
    return CHANGED if fault.index is None else PUT_BACK


def _payloads(report: LogReport) -> str:
    if not report.payloads and not report.erased:
        return "not compared"
    is_told = all(fault.kind != "payload" for fault in report.faults)
    return f"{report.payloads:,} as committed, {report.erased:,} {'erased' if is_told else 'gone'}"


def part(report: LogReport) -> str:
    """Say how much of a log was not looked at, and what that leaves open."""
    what = "one session" if report.part == "session" else "a period"
    others = report.head.size - (report.entries - report.tail)
    many = (
        f"at least {counted(others, 'entry')} of the log" if report.head.size else "other entries of the log"
    )
    said = f"this is {what} alone; {many} are not here and were not looked at"
    if report.part == "session" and report.open_sessions:
        said += "; the session is not closed, so it may have gone on"
    return said


def coverage(report: LogReport) -> str:
    """Say how many entries are covered by what, from the first."""
    sizes = (
        ("signed", report.signed_size),
        ("pinned", report.pinned_size),
        ("witnessed", report.witnessed_size),
    )
    parts = [f"{word} up to {size:,}" for word, size in sizes if size]
    return ", ".join(parts) or "by chains alone: their end may have been cut off"


def tail(report: LogReport, now: datetime | None = None) -> str:
    """Say how much nothing but a chain covers, and for how long."""
    if not report.tail:
        return "everything that is here is anchored" if report.part else "everything is anchored"
    waiting = f", {report.waiting:,} of them not in the tree yet" if report.waiting else ""
    return f"{counted(report.tail, 'entry')} not anchored, {_since(report.tail_since, now)}{waiting}"


def _since(moment: str, now: datetime | None) -> str:
    try:
        age = (now or datetime.now(UTC)) - datetime.fromisoformat(moment)
    except ValueError:
        return "of unknown age"
    return f"the first {age_text(age.total_seconds())} old"


def age_text(seconds: float) -> str:
    """Write a duration in its largest fitting unit."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return counted(max(round(seconds), 0), "second")


def _verdict(output: Output, report: LogReport, required: Level) -> str:
    leave = leave_of(report, required)
    if leave is Exit.DONE:
        return output.paint("ok", "good")
    if leave is Exit.NOT_VERIFIED:
        return output.paint("failed", "bad") + f": {counted(report.fault_count, 'fault')}"
    said = f": nothing is wrong, and {required.label} was not reached; a key, pin or signature is missing"
    if report.untold:
        said = ": what is there is right, and leaves workflows out; was the trail switched off?"
    return output.paint("inconclusive", "warn") + said


def report_fields(report: LogReport, required: Level) -> dict[str, Any]:
    """Write a report for programs."""
    left_out = ("head", "faults", "level")
    fields = {name: value for name, value in asdict(report).items() if name not in left_out}
    return {
        "verdict": str(report.verdict(required)),
        "level": report.level.label,
        "required": required.label,
        "origin": report.head.origin,
        "size": report.head.size,
        "root": report.head.root.hex(),
        **fields,
        "faults": [_fault(fault) for fault in report.faults],
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {**asdict(fault), "kind": str(fault.kind)}
