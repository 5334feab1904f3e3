"""Counts lines only where that tells something new: watched, everything takes three times as long."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def first_cases(items: Iterable[pytest.Item]) -> set[str]:
    """Answer the first case of each test: the others lead through the same lines with other values."""
    found: dict[str, str] = {}
    for item in items:
        found.setdefault(item.nodeid.partition("[")[0], item.nodeid)
    return set(found.values())


class Counting:
    """Lets coverage watch while modules are imported, and while a first case is set up and runs."""

    def __init__(self) -> None:
        self._watchers: tuple[Any, Any] = (None, None)
        self._counted: set[str] = set()
        self._is_counted = False
        self._depth = 0

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, T, T]:
        """Send away who watches, also who does so below; coverage has to find them when all is done."""
        self._watchers = (sys.gettrace(), threading.gettrace())
        self._counted = first_cases(session.items)
        watch(None, None)
        try:
            return (yield)
        finally:
            watch(*self._watchers)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, T, T]:
        self._is_counted = item.nodeid in self._counted
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self) -> Generator[None, T, T]:
        return (yield from self._watched())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, T, T]:
        return (yield from self._watched())

    def _watched(self) -> Generator[None, T, T]:
        """Count while something runs; a fixture may ask for others meanwhile."""
        if not self._is_counted:
            return (yield)
        self._depth += 1
        watch(*self._watchers)
        try:
            return (yield)
        finally:
            self._depth -= 1
            if self._depth == 0:
                watch(None, None)


def watch(watcher: Any, watcher_of_threads: Any) -> None:
    """Have what is called from now on watched by somebody, or by nobody."""
    threading.settrace(watcher_of_threads)
    sys.settrace(watcher)
