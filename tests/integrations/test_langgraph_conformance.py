"""LangGraph's own conformance suite: every capability there is, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.report import CapabilityReport, ProgressCallbacks

from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_stores import KINDS, url_of

#: So many tests has each capability in the version that is pinned.
TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


def report_of(kind: str, folder: Path) -> CapabilityReport:
    numbers = count()

    @checkpointer_test(name=f"HoldfastSaver on {kind}")
    async def saver() -> AsyncGenerator[HoldfastSaver, None]:
        place = folder / str(next(numbers))
        async with HoldfastSaver.open_async(url_of(kind, place)) as opened:
            yield opened

    return asyncio.run(validate(saver, progress=ProgressCallbacks.quiet()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_capability_is_there_and_passes_all_of_its_tests(kind: str, tmp_path: Path):
    report = report_of(kind, tmp_path)
    assert [result.failures for result in report.results.values() if result.failures] == []
    assert report.results.keys() == {capability.value for capability in ALL_CAPABILITIES}
    assert all(result.detected for result in report.results.values())
    assert {name: result.tests_passed for name, result in report.results.items()} == TESTS
    assert report.passed_all_base() and report.passed_all() and report.conformance_level() == "FULL"
