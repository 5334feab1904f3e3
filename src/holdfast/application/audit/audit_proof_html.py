"""What the verification of a log found, as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.application.audit.markup import Child, Markup, element, moment_text, table
from holdfast.domain.base64_text import to_base64
from holdfast.domain.log_check import Level, LogReport, Verdict

_FAULTS_MAX = 20
#: What each level finds that those below it do not.
_FINDS = {
    Level.CHAIN: "An entry changed, swapped, inserted or taken out inside a session.",
    Level.SIGNED: "A trail made anew, or cut off below the last signed head.",
    Level.PINNED: "A store put back to an older state.",
    Level.WITNESSED: "A log that shows different things to different people.",
}
_WIDTH = 1000


def proof_section(report: LogReport | None, keys: Sequence[str] = ()) -> Markup:
    """Tell the verdict, the level, the coverage, what is wrong, and under which keys."""
    body: Child = element("p", "The log was not verified for this report.", class_="verdict mind")
    if report is not None:
        body = (
            element("p", verdict_text(report), class_=f"verdict {_look(report)}"),
            element("p", "The verification is of the whole log, of which this report may show a part."),
            _ladder(report),
            _coverage(report),
            _faults(report),
            _numbers(report),
        )
    heading = element("h2", "What the proofs say", id="proofs-title")
    return element("section", heading, body, _keys(keys), id="proofs", aria_labelledby="proofs-title")


def verdict_text(report: LogReport) -> str:
    """Tell in a sentence or two what a verification comes to."""
    if report.fault_count:
        text = f"Verification failed: {report.fault_count} found wrong."
        first = report.first_fault
        return f"{text} The first: {first}." if first else text
    sessions = "1 session" if report.sessions == 1 else f"{report.sessions} sessions"
    reached = f"Nothing wrong was found in {report.entries} entries of {sessions}."
    if report.level < Level.SIGNED:
        return f"{reached} No signature was checked: whoever may write the store could have made it all anew."
    return f"{reached} Level reached: {report.level.label}."


def _look(report: LogReport) -> str:
    if report.verdict() is Verdict.FAILED:
        return "bad"
    return "ok" if report.level >= Level.SIGNED else "mind"


def _ladder(report: LogReport) -> Markup:
    steps = (
        element(
            "li",
            element("strong", level.label.capitalize()),
            element(
                "span",
                "reached" if report.level >= level else "not reached",
                class_=f"tag {'ok' if report.level >= level else 'plain'}",
            ),
            element("div", text),
            class_="reached" if report.level >= level else None,
        )
        for level, text in _FINDS.items()
    )
    return element("ol", steps, class_="ladder", aria_label="Levels of evidence and what each can find")


def _coverage(report: LogReport) -> Markup:
    """Draw how much of the log is covered, and say the same in words."""
    total = report.head.size + report.waiting
    covered = total - report.tail
    text = coverage_text(report)
    filled = round(_WIDTH * covered / total) if total else 0
    bar = element(
        "svg",
        element("rect", x=0, y=0, width=_WIDTH, height=14, class_="rest" if report.tail else "back"),
        element("rect", x=0, y=0, width=filled, height=14, class_="fill"),
        viewBox=f"0 0 {_WIDTH} 14",
        role="img",
        aria_label=text,
        preserveAspectRatio="none",
    )
    return element("div", bar, element("p", text))


def coverage_text(report: LogReport) -> str:
    """Tell which entries are covered and which only hang on their chain."""
    total = report.head.size + report.waiting
    covered = total - report.tail
    text = f"{covered} of {total} entries are covered by a head that was checked."
    if report.tail:
        since = (
            f" since {moment_text(report.tail_since)}" if report.tail_since and not report.fault_count else ""
        )
        count = "1 entry" if report.tail == 1 else f"{report.tail} entries"
        text += f" Unanchored tail: {count}{since}."
    return text


def _faults(report: LogReport) -> Markup | None:
    if not report.fault_count:
        return None
    rows = (
        element(
            "tr",
            element("td", "" if fault.index is None else fault.index),
            element("td", fault.kind),
            element("td", fault.place),
            element("td", fault.problem),
        )
        for fault in report.faults[:_FAULTS_MAX]
    )
    caption = f"The first of {report.fault_count} faults, those nearest to the start first"
    return table(caption, ("Leaf", "Kind", "Place", "What is wrong"), element("tbody", rows))


def _numbers(report: LogReport) -> Markup:
    shown: dict[str, Child] = {
        "Log": report.head.origin or "has no name yet",
        "Entries in the tree": report.head.size,
        "Root of the tree": element("span", to_base64(report.head.root), class_="mono"),
        "Covered by a signed head": report.signed_size,
        "Covered by a pinned head": report.pinned_size,
        "Covered by witnesses": report.witnessed_size,
        "Waiting for the tree": report.waiting,
        "Signed heads that fit": report.heads,
        "Tiles that fit, full ones missing": f"{report.tiles}, {report.missing_tiles}",
        "Payloads that fit, erased": f"{report.payloads}, {report.erased}",
        "Sessions, not closed": f"{report.sessions}, {report.open_sessions}",
        "Clock steps": report.clock_steps,
    }
    rows = (
        element("tr", element("th", name, scope="row"), element("td", value)) for name, value in shown.items()
    )
    return table("What was checked", ("What", "Result"), element("tbody", rows))


def _keys(keys: Sequence[str]) -> Markup:
    if not keys:
        return element("p", "No public key was given.", class_="soft")
    items = (element("li", key, class_="mono") for key in keys)
    return element("div", element("h3", "Public keys"), element("ul", items))
