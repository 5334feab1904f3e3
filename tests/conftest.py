"""What every test shares: the size of the harnesses, Hypothesis profiles and the skip gate."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import settings

from tests.campaign import Campaign, Chronicle, Ledger, Part, all_parts, fingerprint, order_of
from tests.skip_gate import SkipGate, read_allowed

# The conformance suite ships with the package, outside what pytest rewrites on its own.
pytest.register_assert_rewrite("holdfast.conformance")

pytest_plugins = ["pytester"]

CAMPAIGN_VARIABLE = "HOLDFAST_CAMPAIGN"
ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")

# Fixtures and disks make the time of one example meaningless, so there is no deadline anywhere.
# Runs by hand stay random: a failure prints the blob that reproduces it. What gates a change tries the
# same examples every time, so that it judges the change and not the dice; the campaign tries many more.
settings.register_profile("dev", max_examples=50, deadline=None, print_blob=True)
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
        "--campaign-minutes",
        type=float,
        metavar="N",
        help="begin no test of a campaign after so long, and go on there the next time",
    )


def pytest_configure(config: pytest.Config) -> None:
    is_campaign = bool(config.getoption("--campaign"))
    if is_campaign:
        os.environ[CAMPAIGN_VARIABLE] = "1"
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("campaign" if is_campaign else "ci" if os.environ.get("CI") else "dev")
    config.pluginmanager.register(SkipGate(read_allowed(ALLOWED_SKIPS)), "skip_gate")
    if is_campaign and config.getoption("--campaign-minutes") is not None:
        _bound(config, config.getoption("--campaign-minutes"))


def _bound(config: pytest.Config, minutes: float) -> None:
    """Give a campaign its end and its memory; the processes of one run share both."""
    ledger = Ledger(config.rootpath / "build" / "campaign", fingerprint(config.rootpath))
    shared = getattr(config, "workerinput", None)
    deadline = shared["campaign_deadline"] if shared else time.time() + 60 * minutes
    config.pluginmanager.register(Campaign(ledger, deadline), "campaign")
    if shared is None:
        config.pluginmanager.register(Chronicle(ledger, deadline), "chronicle")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cut a harness with very many cases into parts for a campaign; on other days it takes a sample."""
    if "part" in metafunc.fixturenames:
        parts: list[Part | None] = [*all_parts()] if metafunc.config.getoption("--campaign") else [None]
        metafunc.parametrize("part", parts, ids=lambda part: str(part or "sample"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave campaign tests out of everyday runs: deselected, so that the skip gate stays meaningful."""
    if config.getoption("--campaign"):
        items.sort(key=lambda item: order_of(item.nodeid))
        return
    too_long = [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=too_long)
    items[:] = [item for item in items if item not in too_long]


@pytest.fixture(scope="session")
def campaign(pytestconfig: pytest.Config) -> bool:
    """True when the harnesses run at full size."""
    return bool(pytestconfig.getoption("--campaign"))
