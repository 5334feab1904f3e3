"""The pages of requirements as rows, and everything that can be wrong with them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from holdfast.cli.group import COMMANDS
from holdfast.server.table import OPERATIONS
from tests.named_tests import undefined
from tests.test_features import commands

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: By the number of the document; its rows begin with that.
PAGES = {
    number: DOCS / "requirements" / f"{name}.md"
    for number, name in enumerate(("first", "second", "third", "fourth", "fifth"), 1)
}
INDEX = DOCS / "requirements.md"
#: Rows whose document is content, while a narrower limit that Holdfast set itself is not held.
OWN_BARS = "Shown, while a tighter bar of Holdfast's own is missed"
VERDICTS = ("shown", "bar missed", "differs", "not built")
#: Where names are looked for that stand in the third column.
HOMES = (
    *("holdfast", "holdfast.ports", "holdfast.execution.triggers"),
    *(f"holdfast.domain.{name}" for name in ("errors", "checkpoint", "retry", "ladder", "audit_type")),
    *("holdfast.application.migrating", "holdfast.application.execution_context"),
    *("holdfast.application.audit.audit_log", "holdfast.application.sessions.session_state"),
)
ROW = re.compile(
    r"^\| (?P<id>\d\.\d+) \| (?P<asked>[^|]*) \| (?P<here>[^|]*) "
    r"\| (?P<verdict>[^|]*) \| (?P<shown>[^|]*) \|$",
    re.MULTILINE,
)
RULE = re.compile(r"\(rule \d+\)|\[decision \d+\]\(\.\./adr/")
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
BENCHMARK = re.compile(r'benchmark "(?P<name>[^"]+)": (?P<measured>.+?)(?: \(asked: (?P<asked>[^()]+)\))?')
#: A row of the page of benchmarks: what, measured, bar, and whether it is held.
MEASURED = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \| ?([^|]*?) ?\|$", re.MULTILINE)
LIMIT = re.compile(r"(?:(p\d+) )?< ([\d.]+) ms")
QUANTITY = r"([\d.]+) (us|ms|s)\b"
#: Tests that are there.
_FOUND: set[str] = set()
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A row of the page of benchmarks, as a requirement quotes it."""

    name: str
    measured: str
    asked: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement."""

    id: str
    asked: str
    here: str
    verdict: str
    shown: str

    @property
    def parts(self) -> list[str]:
        """The tests, all in one, and each benchmark by itself."""
        return self.shown.split("<br>")

    @property
    def benchmarks(self) -> list[Benchmark]:
        """What is measured for it."""
        found = [BENCHMARK.fullmatch(part) for part in self.parts]
        return [Benchmark(one["name"], one["measured"], one["asked"]) for one in found if one]


@dataclass(frozen=True, slots=True)
class Bar:
    """What the page of benchmarks says of a row."""

    measured: str
    is_missed: bool


def read(texts: Mapping[int, str]) -> dict[int, list[Row]]:
    """Read the rows of each page."""
    return {number: [Row(**row.groupdict()) for row in ROW.finditer(text)] for number, text in texts.items()}


def pages() -> dict[int, str]:
    """Read the five pages."""
    return {number: path.read_text("utf-8") for number, path in PAGES.items()}


def bars() -> dict[str, Bar]:
    """Read what is measured, by name."""
    text = (DOCS / "benchmarks.md").read_text("utf-8")
    return {row[1].strip(): Bar(row[2].strip(), "missed" in row[4]) for row in MEASURED.finditer(text)}


def is_held(benchmark: Benchmark, bar: Bar) -> bool:
    """Tell whether what the document asks for is held; where it names no limit, whether the row's own is."""
    if benchmark.asked is None:
        return not bar.is_missed
    limit = LIMIT.fullmatch(benchmark.asked)
    assert limit is not None, f"{benchmark.asked!r} is no limit; write 'p95 < 50 ms' or '< 50 ms'"
    found = re.search((rf"{limit[1]} " if limit[1] else "") + QUANTITY, bar.measured)
    assert found is not None, f"{bar.measured!r} does not tell what {benchmark.asked!r} is about"
    return float(found[1]) * MILLISECONDS[found[2]] < float(limit[2])


def verdict_of(row: Row, known: Mapping[str, Bar]) -> str:
    """Answer what the figures make of a row that is shown."""
    if row.verdict not in ("shown", "bar missed"):
        return row.verdict
    measured = [one for one in row.benchmarks if one.name in known]
    return "shown" if all(is_held(one, known[one.name]) for one in measured) else "bar missed"


def digest(rows: Mapping[int, list[Row]], known: Mapping[str, Bar]) -> str:
    """Sum up: how many rows of each document have which verdict, and which rows deserve a look."""
    names = {number: path.stem for number, path in PAGES.items()}
    every = [row for page in rows.values() for row in page]
    lines = [f"| document | rows | {' | '.join(VERDICTS)} |", "|---|---|---|---|---|---|"]
    lines += [_counted(f"[{names[one]}](requirements/{names[one]}.md)", page) for one, page in rows.items()]
    tighter = [row for row in every if any(known[one.name].is_missed for one in row.benchmarks)]
    looked_at = {
        "Not built": [row for row in every if row.verdict == "not built"],
        "Bar missed": [row for row in every if row.verdict == "bar missed"],
        OWN_BARS: [row for row in tighter if row.verdict == "shown"],
    }
    told = [f"- {what}: {', '.join(_ids(found)) or 'none'}." for what, found in looked_at.items()]
    return "\n".join([*lines, _counted("all", every), "", *told]) + "\n"


def faults(texts: Mapping[int, str], index: str) -> dict[str, list[str]]:
    """Answer what is wrong, by kind; nothing for a kind that is all right."""
    rows, known = read(texts), bars()
    every = [row for page in rows.values() for row in page]
    named = {test: row.id for row in every for test in TEST.findall(row.shown)}
    found = {
        "holes": [str(number) for number, page in rows.items() if _ids(page) != _expected(number, page)],
        "lines that are no rows": [line for text in texts.values() for line in _strays(text)],
        "empty": [row.id for row in every if not (row.asked.strip() and row.here.strip())],
        "no such verdict": [f"{row.id}: {row.verdict}" for row in every if row.verdict not in VERDICTS],
        "shown by nothing": [row.id for row in every if row.verdict in VERDICTS[:2] and row.shown == "-"],
        "differs without a rule": [r.id for r in every if r.verdict == "differs" and not RULE.search(r.here)],
        "odd words": [row.id for row in every if _odd(row)],
        "no such test": [f"{named[test]}: {test}" for test in sorted(_missing(named))],
        "no such name": [
            f"{row.id}: {name}" for row in every for name in _spans(row.here) if not is_there(name)
        ],
        "no such benchmark": [
            f"{r.id}: {b.name}" for r in every for b in r.benchmarks if b.name not in known
        ],
        "stale figure": [f"{row.id}: {one.name}" for row in every for one in _stale(row, known)],
        "wrong verdict": [row.id for row in every if verdict_of(row, known) != row.verdict],
    }
    if not found["no such benchmark"]:
        found["counts"] = [] if digest(rows, known) in index else ["docs/requirements.md"]
    return {kind: items for kind, items in found.items() if items}


def renewed(text: str, known: Mapping[str, Bar]) -> str:
    """Bring the figures of a page, and what follows from them, up to what the benchmarks say now."""

    def renew(match: re.Match[str]) -> str:
        row = Row(**match.groupdict())
        shown = row.shown
        for one in row.benchmarks:
            if one.name in known:
                shown = shown.replace(
                    f'"{one.name}": {one.measured}', f'"{one.name}": {known[one.name].measured}'
                )
        cells = (row.id, row.asked, row.here, verdict_of(row, known), shown)
        return f"| {' | '.join(cells)} |"

    return ROW.sub(renew, text)


@cache
def is_there(name: str) -> bool:
    """Tell whether a command, a metric, a request, a file or a public name exists."""
    if name == "python -m benchmarks":
        return (ROOT / "benchmarks" / "__main__.py").is_file()
    if name.startswith("holdfast "):
        return name in set(commands(COMMANDS))
    if name.startswith("holdfast_"):
        return f"| `{name}` |" in (DOCS / "metrics.md").read_text("utf-8")
    if re.match(r"[A-Z]+ /v1/", name):
        method, _, path = name.partition(" /v1")
        return any((one.method, one.path) == (method, path) for one in OPERATIONS)
    if "/" in name or name in ("Makefile", "pyproject.toml", "CONTRIBUTING.md"):
        return (ROOT / name).is_file()
    return any(_is_in(home, name) for home in HOMES)


def _is_in(home: str, name: str) -> bool:
    owner, _, attribute = name.partition(".")
    found = getattr(import_module(home), owner, None)
    if found is None or not attribute:
        return found is not None
    own = {item.name for item in fields(found)} if is_dataclass(found) else set()
    return attribute in own or hasattr(found, attribute)


def _missing(names: Iterable[str]) -> set[str]:
    """Answer the tests that nobody wrote; what was found once is not looked for again."""
    missing = undefined(set(names) - _FOUND)
    _FOUND.update(set(names) - missing)
    return missing


def _spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _odd(row: Row) -> bool:
    """Nothing but tests and benchmarks stands in the last column, so that no typing error is overlooked."""
    plain = [part for part in row.parts if not BENCHMARK.fullmatch(part)]
    return row.shown != "-" and any(TEST.sub("", part).strip() for part in plain)


def _stale(row: Row, known: Mapping[str, Bar]) -> Iterator[Benchmark]:
    return (one for one in row.benchmarks if one.name in known and known[one.name].measured != one.measured)


def _ids(rows: list[Row]) -> list[str]:
    return [row.id for row in rows]


def _expected(number: int, rows: list[Row]) -> list[str]:
    return [f"{number}.{place}" for place in range(1, max(len(rows), 1) + 1)]


def _strays(text: str) -> Iterator[str]:
    """Answer lines of tables that are neither rows nor their heads."""
    for line in text.splitlines():
        if line.startswith("|") and not ROW.fullmatch(line) and not line.startswith(("| id |", "|---")):
            yield line


def _counted(name: str, rows: list[Row]) -> str:
    by_verdict = Counter(row.verdict for row in rows)
    return f"| {name} | {len(rows)} | {' | '.join(str(by_verdict[one]) for one in VERDICTS)} |"
