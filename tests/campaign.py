"""A campaign in pieces: bounded in time, taken up where the last run stopped, and told in numbers.

A piece is one test, or one part of a harness that is cut into parts. What was done is kept per state of the
source, and of what is installed, in build/campaign, so that a change starts over and going back goes on.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import platform
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

#: Into how many parts a harness with very many cases is cut: each takes about a minute.
PARTS = 24
EXAMPLES_MAX = 20
NOT_RUN = "not run"
#: What tools leave beside the source; git ignores it, too.
_LEFTOVER = re.compile(r"(^|/)(\.|__pycache__/|[^/]+\.egg-info/)|\.py[co]$")
_PART_IN_ID = re.compile(r"-?part(?P<number>\d+)of\d+-?")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of many cases, spread over all of them, so that a few parts already look everywhere."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"part{self.number:02d}of{self.total}"

    def of(self, everything: Sequence[T]) -> Sequence[T]:
        """Answer the cases that belong to this part; all parts together hold each case once."""
        return everything[self.number - 1 :: self.total]


def all_parts(total: int = PARTS) -> list[Part]:
    return [Part(number, total) for number in range(1, total + 1)]


def order_of(nodeid: str, *, is_harness: bool = False, is_property: bool = False) -> int:
    """Put first parts, whole harnesses and controls first: who stops early has looked at many.

    Other tests that grow come with the second parts, and properties, of which there are most, after that.
    """
    found = _PART_IN_ID.search(nodeid)
    if found:
        return int(found["number"])
    return 1 if is_harness else 3 if is_property else 2


def harness_of(nodeid: str) -> str | None:
    """Answer which harness a test is a part of, if it is one."""
    name, parts = _PART_IN_ID.subn("", nodeid)
    return name if parts else None


def fingerprint(root: Path) -> str:
    """Name the state of the source and what it runs with: what was shown for another one shows nothing."""
    digest = hashlib.sha256("\n".join(installed()).encode())
    for name in sources(root):
        digest.update(f"{name}\n".encode() + hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()[:12]


def sources(root: Path) -> list[str]:
    """Name what a result depends on: not code alone, but migrations, schemas and fixtures as well."""
    found = [path for folder in ("src", "tests") for path in (root / folder).rglob("*")]
    found.append(root / "pyproject.toml")
    names = [path.relative_to(root).as_posix() for path in found if path.is_file()]
    return sorted(name for name in names if not _LEFTOVER.search(name))


def installed() -> list[str]:
    """Name the interpreter and every distribution that is there, with their versions."""
    found = {f"{each.name} {each.version}" for each in distributions()}
    return [f"python {platform.python_version()}", *sorted(found)]


@dataclass(frozen=True, slots=True)
class Done:
    """What is known of a test that ran to its end."""

    nodeid: str
    outcome: str
    seconds: float
    cases: int = 0
    violations: int = 0
    examples: list[str] = field(default_factory=list)
    #: What a harness says of itself: its name, the store, the seed, whether it was the control, why not run.
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether there is no reason to do it again: what could not run may be able to another time."""
        return self.outcome not in ("failed", NOT_RUN)


class Ledger:
    """A line per test that ran, in a file that is only appended to."""

    def __init__(self, folder: Path, tree: str) -> None:
        self.tree = tree
        self.path = folder / f"{tree}.jsonl"

    def add(self, done: Done) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {name: getattr(done, name) for name in Done.__slots__}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def read(self) -> dict[str, Done]:
        """Answer the last result of each test."""
        if not self.path.exists():
            return {}
        found: dict[str, Done] = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            # A run that was killed may have left half a line: that test is done again.
            with suppress(ValueError):
                done = Done(**json.loads(line))
                found[done.nodeid] = done
        return found


class Campaign:
    """Lets begin what is left to do, until the time is up; what failed is done again."""

    def __init__(self, ledger: Ledger, deadline: float) -> None:
        self.deadline = deadline
        self._passed = {nodeid for nodeid, done in ledger.read().items() if done.is_over}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        return True if item.nodeid in self._passed or time.time() >= self.deadline else None


class Chronicle:
    """Keeps what was done and tells it at the end; there is one, also when several processes test."""

    def __init__(self, ledger: Ledger, deadline: float) -> None:
        self._ledger = ledger
        self._deadline = deadline
        self._ids: set[str] = set()
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._ran = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._ids.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._ids.update(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["campaign_deadline"] = self._deadline

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        # In our order: by itself it begins with the largest files, and never got to the parts.
        config.option.loadscopereorder = False
        scheduler = importlib.import_module("xdist.scheduler").LoadScopeScheduling(config, log)
        scheduler._split_scope = _scope_of
        return scheduler

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.setdefault(report.nodeid, []).append(report)
        if report.when == "teardown":
            self._ledger.add(_result(self._reports.pop(report.nodeid)))
            self._ran += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # To have nothing left to do, or no time, is no fault.
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._ids:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        known = {nodeid: done for nodeid, done in self._ledger.read().items() if nodeid in self._ids}
        write_result(self._ledger, self._ids, list(known.values()))
        terminalreporter.section(f"campaign on source {self._ledger.tree}")
        for line in summary(self._ids, known.values(), self._ran):
            terminalreporter.line(line)


def _scope_of(nodeid: str) -> str:
    """Keep tests of one file in one process, for they share files of evidence; parts may go anywhere."""
    return nodeid if harness_of(nodeid) else nodeid.partition("::")[0]


def _result(reports: list[pytest.TestReport]) -> Done:
    outcomes = {report.outcome for report in reports}
    outcome = "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "passed"
    told: dict[str, Any] = dict(reports[-1].user_properties)
    seconds = round(sum(report.duration for report in reports), 3)
    violations = list(told.get("violations", ()))
    about = told.get("about", {})
    if outcome == "passed" and about.get("not_run"):
        outcome = NOT_RUN
    found = len(violations), violations[:EXAMPLES_MAX]
    return Done(reports[0].nodeid, outcome, seconds, told.get("cases", 0), *found, about)


def summary(ids: Iterable[str], known: Iterable[Done], ran: int) -> list[str]:
    """Say how much of a campaign is done, harness by harness where it is cut into parts."""
    results = list(known)
    done = [result for result in results if result.is_over]
    not_run = [result for result in results if result.outcome == NOT_RUN]
    total = Counter(harness_of(nodeid) or "" for nodeid in ids)
    lines = [_harness_line(name, total[name], results) for name in sorted(filter(None, total))]
    lines += [f"VIOLATION {result.nodeid}: {text}" for result in results for text in result.examples]
    lines += [f"NOT RUN {result.nodeid}: {result.about['not_run']}" for result in not_run]
    lines.append(
        f"{len(done)} of {total.total()} pieces done ({ran} ran now), "
        f"{len(results) - len(done) - len(not_run)} failed; "
        f"{sum(result.cases for result in results):,} cases in parts, "
        f"{sum(result.violations for result in results)} violations"
    )
    if left := total.total() - len(done):
        lines.append(f"{left} pieces are left: `make campaign` goes on with them")
    return lines


def _harness_line(name: str, total: int, results: list[Done]) -> str:
    mine = [result for result in results if harness_of(result.nodeid) == name]
    done = sum(result.is_over for result in mine)
    cases, wrong = sum(result.cases for result in mine), sum(result.violations for result in mine)
    return f"{name}: {done} of {total} parts, {cases:,} cases, {wrong} violations"


def write_result(ledger: Ledger, ids: Iterable[str], known: Sequence[Done]) -> None:
    """Write what is known of this source for machines: a line per harness and store, and the other tests."""
    named, others = list[Done](), list[Done]()
    for result in known:
        (named if result.about else others).append(result)
    told = {
        "tree": ledger.tree,
        "pieces": len(set(ids)),
        "done": sum(result.is_over for result in known),
        "violations": sum(result.violations for result in known),
        "harnesses": [
            *harness_results(named, ledger.tree),
            *(_parts_result(name, others, ledger.tree) for name in sorted(_names(others))),
        ],
        "other_tests": Counter(result.outcome for result in others if not harness_of(result.nodeid)),
    }
    ledger.path.parent.mkdir(parents=True, exist_ok=True)
    (ledger.path.parent / "result.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def harness_results(known: Iterable[Done], tree: str) -> list[dict[str, Any]]:
    """Add up the parts of each harness on each store; the control stands beside what it vouches for."""
    kept: dict[tuple[str, str], list[Done]] = {}
    for result in known:
        kept.setdefault((result.about["harness"], result.about["store"]), []).append(result)
    return [_told(name, store, results, tree) for (name, store), results in sorted(kept.items())]


def _told(name: str, store: str, results: list[Done], tree: str) -> dict[str, Any]:
    real = [result for result in results if not result.about["is_control"]]
    controls = [result for result in results if result.about["is_control"]]
    counts = Counter[str]()
    for result in real:
        counts.update(result.about["counts"])
    reasons = sorted({result.about["not_run"] for result in results if result.about["not_run"]})
    is_red = bool(controls) and all(result.about["is_red"] for result in controls)
    return {
        "harness": name,
        "store": store,
        "parts": len(real),
        "cases": sum(result.cases for result in real),
        "acknowledged": sum(result.about["acknowledged"] for result in real),
        "counts": counts,
        "violations": sum(result.violations for result in real),
        "examples": [text for result in real for text in result.examples][:EXAMPLES_MAX],
        "seconds": round(sum(result.seconds for result in results), 1),
        "seeds": sorted({result.about["seed"] for result in real}),
        "control": "not run" if not controls or reasons else "red" if is_red else "not red",
        "not_run": "; ".join(reasons),
        "tree": tree,
    }


def _names(known: Iterable[Done]) -> set[str]:
    return {name for result in known if (name := harness_of(result.nodeid))}


def _parts_result(name: str, known: Iterable[Done], tree: str) -> dict[str, Any]:
    """Tell of a harness whose controls are tests of their own."""
    mine = [result for result in known if harness_of(result.nodeid) == name]
    return {
        "harness": name,
        "parts": len(mine),
        "cases": sum(result.cases for result in mine),
        "violations": sum(result.violations for result in mine),
        "examples": [text for result in mine for text in result.examples][:EXAMPLES_MAX],
        "seconds": round(sum(result.seconds for result in mine), 1),
        "tree": tree,
    }
