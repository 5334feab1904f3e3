"""What every test shares: the size of the harnesses, Hypothesis profiles and the skip gate."""

from __future__ import annotations

import fcntl
import gc
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.campaign import Campaign, Chronicle, Ledger, Part, all_parts, fingerprint, order_of
from tests.counting import Counting
from tests.skip_gate import SkipGate, read_allowed

T = TypeVar("T")

# The conformance suite ships with the package, outside what pytest rewrites on its own.
pytest.register_assert_rewrite("holdfast.conformance")

pytest_plugins = ["pytester"]

CAMPAIGN_VARIABLE = "HOLDFAST_CAMPAIGN"
#: Crashes, kills and faults by the thousand, and tests of the whole: counting lines would take them half as
#: long again, and what each module does is counted where its own tests are.
WHOLE = (
    *(
        f"tests/{room}/"
        for room in ("browser", "compliance", "crash", "faults", "machine", "power", "process", "recovery")
    ),
    *(f"tests/test_{name}.py" for name in ("campaign", "config_effects", "docs", "encryption", "schemas")),
    *(f"tests/integrations/test_langgraph_{name}.py" for name in ("conformance", "killed", "page")),
    *(
        f"tests/test_{name}.py"
        for name in ("go_verifier", "independent_verifier", "secrecy", "stores_before")
    ),
)
#: Of the tests in a real browser, those of each day; `make test-browser` runs all of them.
BROWSER_DAILY = tuple(f"tests/browser/test_{name}.py" for name in ("audit", "hostile", "pages"))
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 2 * 1024**3
ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")

# Fixtures and disks make the time of one example meaningless, so there is no deadline anywhere.
# Runs by hand stay random: a failure prints the blob that reproduces it. What gates a change tries the
# same examples every time, so that it judges the change and not the dice; the campaign tries many more.
settings.register_profile("dev", max_examples=25, deadline=None, print_blob=True)
settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("campaign", max_examples=2_000, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--campaign",
        action="store_true",
        default=os.environ.get(CAMPAIGN_VARIABLE) == "1",
        help=f"run the harnesses at full size, and the tests marked campaign (also: {CAMPAIGN_VARIABLE}=1)",
    )
    parser.addoption(
        "--part",
        choices=("counted", "uncounted"),
        help="run only the tests whose lines are worth counting, or only the others",
    )
    parser.addoption(
        "--framework",
        metavar="NAME",
        help="run the tests of one framework, in an environment that has it (see tests/integrations)",
    )
    parser.addoption(
        "--campaign-minutes",
        type=float,
        metavar="N",
        help="begin no test of a campaign after so long, and go on there the next time",
    )


def pytest_configure(config: pytest.Config) -> None:
    is_campaign = bool(config.getoption("--campaign"))
    if is_campaign:
        os.environ[CAMPAIGN_VARIABLE] = "1"
    else:
        _stay_in_memory()
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("campaign" if is_campaign else "ci" if os.environ.get("CI") else "dev")
    config.pluginmanager.register(SkipGate(read_allowed(ALLOWED_SKIPS)), "skip_gate")
    if config.getoption("--part") == "counted":
        config.pluginmanager.register(Counting(), "counting")
    if is_campaign and config.getoption("--campaign-minutes") is not None:
        _bound(config, config.getoption("--campaign-minutes"))


def _stay_in_memory() -> None:
    """Make temporary folders in memory where there is room, for all processes of the run.

    Who is killed there loses nothing that a disk would keep, and waiting for disks takes minutes. TMPDIR
    chooses another place; a campaign stays on the disk.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_BYTES_MIN:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def _bound(config: pytest.Config, minutes: float) -> None:
    """Give a campaign its end and its memory; the processes of one run share both."""
    ledger = Ledger(config.rootpath / "build" / "campaign", fingerprint(config.rootpath))
    shared = getattr(config, "workerinput", None)
    deadline = shared["campaign_deadline"] if shared else time.time() + 60 * minutes
    config.pluginmanager.register(Campaign(ledger, deadline), "campaign")
    if shared is None:
        config.pluginmanager.register(Chronicle(ledger, deadline), "chronicle")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Say nothing of what passed where nobody watches: what failed is what is read."""
    is_seen = report.when != "call" or not report.passed or not os.environ.get("CI")
    return None if is_seen else ("passed", "", "")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files alone that have no test of the part that is run: importing them all takes a while."""
    part = config.getoption("--part")
    if part is None or collection_path.suffix != ".py":
        return None
    place = str(collection_path.relative_to(config.rootpath))
    if place.startswith("tests/browser/test_") and place not in BROWSER_DAILY:
        return True
    is_whole = place.startswith(WHOLE)
    if part == "counted":
        return is_whole or None
    if is_whole:
        return None
    text = collection_path.read_text("utf-8")
    return None if "mark.sweep" in text or "hypothesis" in text else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cut a harness with very many cases into parts for a campaign; on other days it takes a sample."""
    if "part" in metafunc.fixturenames:
        parts: list[Part | None] = [*all_parts()] if metafunc.config.getoption("--campaign") else [None]
        metafunc.parametrize("part", parts, ids=lambda part: str(part or "sample"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave campaign tests out of everyday runs: deselected, so that the skip gate stays meaningful.

    A campaign has minutes only for what is larger in it, and the controls beside that: the rest would be run
    as on every other day.
    """
    if config.getoption("--campaign"):
        if config.getoption("--campaign-minutes") is not None:
            grown = {item.path for item in items if _grows(item)}
            _deselect(config, items, lambda item: item.path not in grown and not _is_property(item))
        items.sort(key=_order)
        return
    _deselect(config, items, lambda item: item.get_closest_marker("campaign") is not None)
    if part := config.getoption("--part"):
        _deselect(config, items, lambda item: item.get_closest_marker("whole_room") is not None)
        _deselect(config, items, lambda item: _is_counted(item) != (part == "counted"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, T, T]:
    """Collect one after another: only the first has to compile everything, which takes three times as long.

    Nobody looks for rubbish where nothing but what stays is made: modules, and thousands of tests.
    """
    gc.disable()
    with Path(__file__).open("rb") as turn:
        if hasattr(session.config, "workerinput"):
            fcntl.flock(turn, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_finish() -> None:
    """Have nobody look through all of that again until the end."""
    gc.freeze()
    gc.enable()


def _order(item: pytest.Item) -> int:
    is_harness = item.nodeid.startswith(WHOLE)
    return order_of(item.nodeid, is_harness=is_harness, is_property=_is_property(item))


def _deselect(config: pytest.Config, items: list[pytest.Item], is_out: Callable[[pytest.Item], bool]) -> None:
    left, out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (out if is_out(item) else left).append(item)
    config.hook.pytest_deselected(items=out)
    items[:] = left


def _is_counted(item: pytest.Item) -> bool:
    """Tell whether a test is worth counting lines for: one of a module, and not of very many cases.

    Counting slows Hypothesis itself down too, though nobody asks which of its lines were reached.
    """
    if item.get_closest_marker("sweep") or _is_property(item):
        return False
    return not item.nodeid.startswith(WHOLE)


def _is_property(item: pytest.Item) -> bool:
    return is_hypothesis_test(getattr(item, "function", None))


def _grows(item: pytest.Item) -> bool:
    """Tell whether a test has another size in a campaign."""
    asked = getattr(item, "fixturenames", ())
    return "campaign" in asked or "part" in asked or item.get_closest_marker("campaign") is not None


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """See that a test leaves our log as it was: the next one of the same process may look at it."""
    yield
    assert logging.root.manager.disable == logging.NOTSET, "the test leaves logging switched off"
    assert logging.getLogger("holdfast").propagate, "the test leaves the log of the package cut off"


@pytest.fixture(scope="session")
def campaign(pytestconfig: pytest.Config) -> bool:
    """True when the harnesses run at full size."""
    return bool(pytestconfig.getoption("--campaign"))
