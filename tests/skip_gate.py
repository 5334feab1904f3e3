"""Fail the session when a test was skipped that nobody agreed to skip."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest


def read_allowed(path: Path) -> set[tuple[str, str]]:
    """Read the agreed skips: `node id<TAB>reason` per line; blank lines and # comments are left out."""
    allowed = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        nodeid, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            raise pytest.UsageError(f"{path}:{number}: expected `node id<TAB>reason`, found {line!r}")
        allowed.add((nodeid, reason.strip()))
    return allowed


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Answer why a test was skipped or expected to fail, in the words of whoever marked it."""
    expected_failure = getattr(report, "wasxfail", None)
    if expected_failure is not None:
        return str(expected_failure).removeprefix("reason: ")
    message = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return message.removeprefix("Skipped: ")


@dataclass(eq=False)
class SkipGate:
    """Collects skips and expected failures; the unlisted ones turn a passing session into a failing one."""

    allowed: set[tuple[str, str]]
    unlisted: list[tuple[str, str]] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unlisted and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.unlisted:
            return
        terminalreporter.section("skipped without leave", red=True)
        for nodeid, reason in self.unlisted:
            terminalreporter.line(f"{nodeid}\t{reason}")
        terminalreporter.line(
            "Make them run, or agree to it by listing these lines in tests/allowed_skips.txt."
        )

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped:
            return
        skip = (report.nodeid, reason_of(report))
        if skip not in self.allowed:
            self.unlisted.append(skip)
