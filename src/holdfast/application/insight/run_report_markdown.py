"""The report of a workflow as Markdown: lines that can be compared, and nothing of a store that is obeyed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from holdfast.application.insight.event_story import Kind, duration_text
from holdfast.application.insight.run_report_values import AgentLine, Moment, RunReport
from holdfast.domain.time import timestamp_text

FOUND_OUT = "What was found out"
#: What Markdown might obey, wherever it stands in a line.
_MARKS = re.compile(r"[\\`*\[\]<>|~#!&]|(?<![^\W_])_|_(?![^\W_])")
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_UNITS = ("B", "kB", "MB", "GB", "TB")
_MEANINGS = {
    "in_progress": "It was at work when it was last heard of.",
    "completed": "It is done.",
    "failed": "It failed. It can be resumed once the cause is fixed.",
    "waiting": "It waits for somebody's answer.",
    "paused": "It was paused, and can be resumed.",
    "stopped": "It was stopped, and can be resumed.",
    "cancelled": "It was cancelled, and cannot be resumed.",
}


def as_markdown(report: RunReport) -> str:
    """Write a report as Markdown; below `What was found out` are the sections of the progress report."""
    lines = [f"# {plain(report.workflow_id)}", "", *_standing(report)]
    for title, body in _parts(report):
        if body:
            lines += ["", f"## {title}", "", *body]
    found = "".join(section.render() for section in report.sections)
    return "\n".join(lines) + "\n" + (f"\n# {FOUND_OUT}\n{found}" if found else "")


def meaning(status: str) -> str:
    """Say what a status means to somebody who is no engineer."""
    return _MEANINGS.get(status, f"It says of itself: {status}.")


def day_and_time(moment: datetime | None) -> str:
    """Write a moment as people read it."""
    if moment is None:
        return "-"
    text = timestamp_text(moment)
    return f"{text[:10]} {text[11:19]} UTC"


def cost_text(name: str, value: float) -> str:
    """Write a number that was counted, with its unit where the name has one."""
    if name.endswith("_usd") or name == "usd":
        return f"{value:,.4f} USD"
    if name.endswith("_seconds"):
        return duration_text(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4f}"


def size_text(count: float) -> str:
    """Write a number of bytes for people."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} {_UNITS[unit]}"


def narrative(report: RunReport) -> str:
    """Tell the whole in a few sentences."""
    sentences = [
        _begun(report),
        _far(report),
        meaning(report.status),
        _last_failure(report),
        *_tallied(report),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _begun(report: RunReport) -> str:
    what = f"This is a run of the workflow {report.program}." if report.program else "This is a workflow."
    if report.began_at is None or report.last_at is None:
        return what
    seconds = max((report.last_at - report.began_at).total_seconds(), 0)
    later = f"the last thing happened {duration_text(seconds)} later"
    return f"{what} It began on {day_and_time(report.began_at)}; {later}."


def _far(report: RunReport) -> str:
    if not report.steps_total:
        return f"Steps done: {report.steps_done:,}." if report.steps_done else ""
    return f"{report.steps_done:,} of {report.steps_total:,} steps are done."


def _last_failure(report: RunReport) -> str:
    told = _failures(report)
    return f"What went wrong last: {told[-1].text}." if report.status == "failed" and told else ""


def _failures(report: RunReport) -> list[Moment]:
    """Answer what failed; that the run did by that is told by its status."""
    return [moment for moment in report.of(Kind.FAILURE) if not moment.text.startswith("the run is failed")]


def _tallied(report: RunReport) -> Iterator[str]:
    counts = {
        "decision": len(report.of(Kind.DECISION)),
        "failure": len(_failures(report)),
        "recovery": len(report.of(Kind.RECOVERY)),
    }
    told = [_counted(count, noun) for noun, count in counts.items() if count]
    if told:
        yield f"On the way there {'was' if told[0].startswith('1 ') else 'were'} {_listed(told)}."
    usd = report.costs.get("cost_usd", report.costs.get("usd"))
    if usd is not None:
        yield f"It cost {cost_text('cost_usd', usd)}."


def _counted(count: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def verifying(report: RunReport) -> list[str]:
    """Answer the commands that verify what the report is made of."""
    words = (["validate", report.workflow_id, "--deep"], ["audit", "verify"])
    return [shlex.join(["holdfast", *one]) for one in words]


def plain(text: object) -> str:
    """Write a text on one line, so that Markdown takes every letter of it as it is."""
    return _MARKS.sub(r"\\\g<0>", _CONTROLS.sub("\ufffd", str(text)))


def _parts(report: RunReport) -> Iterator[tuple[str, list[str]]]:
    yield "Stages", _stages(report)
    yield "Agents", _table(("Agent", "Done", "Failed", "Skipped", "Time"), map(_agent, report.agents))
    yield "Decisions", _moments(report.of(Kind.DECISION))
    yield "Approvals", _moments(report.of(Kind.APPROVAL))
    yield "Failures and recoveries", _moments(report.of(Kind.FAILURE, Kind.RECOVERY))
    yield "What happened", _happened(report)
    yield (
        "Cost",
        [f"- {plain(name)}: {cost_text(name, value)}" for name, value in sorted(report.costs.items())],
    )
    yield "Checkpoints", _checkpoints(report)
    yield "How to verify this", _verification(report)


def _standing(report: RunReport) -> Iterator[str]:
    yield plain(narrative(report))
    yield ""
    yield f"- Status: **{plain(report.status)}**"
    yield f"- Began: {day_and_time(report.began_at)}"
    yield f"- Last heard of: {day_and_time(report.last_at)}"
    if report.steps_done or report.steps_total:
        total = f" of {report.steps_total:,}" if report.steps_total else ""
        yield f"- Steps done: {report.steps_done:,}{total}"
    for note in report.notes:
        yield f"- Note: {plain(note)}"


def _stages(report: RunReport) -> list[str]:
    rows = ((stage.name, stage.status, ", ".join(stage.agents)) for stage in report.stages)
    return _table(("Stage", "Status", "Agents"), rows)


def _agent(agent: AgentLine) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (agent.done, agent.failed, agent.skipped))
    return (agent.name, *counts, duration_text(agent.seconds))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *body] if body else []


def _moments(moments: Iterable[Moment]) -> list[str]:
    return [_moment(moment) for moment in moments]


def _moment(moment: Moment) -> str:
    detail = f" ({plain(moment.detail)})" if moment.detail else ""
    return f"- {day_and_time(moment.at)}, event {moment.seq}: {plain(moment.text)}{detail}"


def _happened(report: RunReport) -> list[str]:
    lines = _moments(report.moments)
    if not report.left_out:
        return lines
    # The first ones and the last ones are told; what lies between is counted.
    from_left_out = len(lines) - report.last_told
    return [*lines[:from_left_out], f"- ... {report.left_out:,} more ...", *lines[from_left_out:]]


def _checkpoints(report: RunReport) -> list[str]:
    made = report.checkpoints
    lines = [f"- Kept: {made.kept:,}"]
    if made.removed:
        lines.append(f"- Removed by retention: {made.removed:,}")
    if made.newest:
        at = f"{made.newest_at[:10]} {made.newest_at[11:19]} UTC"
        lines.append(f"- Newest: {plain(made.newest)}, {at}, a state of {size_text(made.state_bytes)}")
    return lines


def _verification(report: RunReport) -> list[str]:
    lines = [
        "Everything above was read from the store, and each event was checked against the one before it."
    ]
    lines += ["Whoever has the store can check it again:", ""]
    lines += [f"    {_CONTROLS.sub('?', command)}" for command in verifying(report)]
    lines.append("")
    if report.checkpoints.checksum:
        lines.append(
            f"- Checksum of {plain(report.checkpoints.newest)}: {plain(report.checkpoints.checksum)}"
        )
    if report.event_hash:
        lines.append(f"- Hash of event {report.last_event}, the last one: {plain(report.event_hash)}")
    return lines
