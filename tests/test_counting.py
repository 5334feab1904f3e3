"""Lines are counted where modules are imported and where a first case runs, and nowhere else."""

from __future__ import annotations

import pytest

from tests.named_tests import ROOT

CONFTEST = """
import sys
import pytest
from tests.counting import Counting

def pytest_configure(config):
    config.pluginmanager.register(Counting())

@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    # Stands for coverage, which watches from here on.
    sys.settrace(lambda *event: None)

def pytest_unconfigure():
    print("afterwards", sys.gettrace() is not None)
"""
TESTS = """
import sys
import pytest

IMPORTED = sys.gettrace() is not None

@pytest.fixture
def inner():
    return sys.gettrace() is not None

@pytest.fixture
def outer(request):
    return (request.getfixturevalue("inner"), sys.gettrace() is not None)

@pytest.mark.parametrize("number", range(3))
def test_cases(number, outer):
    seen = (*outer, sys.gettrace() is not None)
    assert IMPORTED and seen == (number == 0,) * 3

def test_another():
    assert sys.gettrace() is not None
"""


def test_first_cases_are_watched_with_their_fixtures_and_others_are_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist")
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(["afterwards True"])
