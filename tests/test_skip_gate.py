"""The gate itself: what passes it, and what it stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skip_gate import read_allowed

GATED_CONFTEST = """
    from pathlib import Path
    from tests.skip_gate import SkipGate, read_allowed

    def pytest_configure(config):
        config.pluginmanager.register(SkipGate(read_allowed(Path("allowed.txt"))), "skip_gate")
"""


@pytest.fixture
def gated(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small project behind the gate, with nothing agreed yet."""
    pytester.makeconftest(GATED_CONFTEST)
    pytester.makefile(".txt", allowed="# nothing yet")
    return pytester


def test_a_session_without_skips_passes(gated: pytest.Pytester) -> None:
    gated.makepyfile(test_it="def test_passes(): pass")
    assert gated.runpytest().ret == pytest.ExitCode.OK


def test_an_unlisted_skip_fails_the_session_and_is_named(gated: pytest.Pytester) -> None:
    gated.makepyfile(test_it="import pytest\ndef test_skips(): pytest.skip('no disk')")
    result = gated.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*skipped without leave*", "test_it.py::test_skips*no disk"])


def test_a_listed_skip_passes(gated: pytest.Pytester) -> None:
    gated.makefile(".txt", allowed="test_it.py::test_skips\tno disk")
    gated.makepyfile(test_it="import pytest\ndef test_skips(): pytest.skip('no disk')")
    assert gated.runpytest().ret == pytest.ExitCode.OK


def test_a_listed_test_that_skips_for_another_reason_fails(gated: pytest.Pytester) -> None:
    gated.makefile(".txt", allowed="test_it.py::test_skips\tno disk")
    gated.makepyfile(test_it="import pytest\ndef test_skips(): pytest.skip('no network')")
    assert gated.runpytest().ret == pytest.ExitCode.TESTS_FAILED


def test_an_expected_failure_counts_as_a_skip(gated: pytest.Pytester) -> None:
    gated.makepyfile(test_it="import pytest\n@pytest.mark.xfail(reason='later')\ndef test_fails(): assert 0")
    result = gated.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_it.py::test_fails*later"])


def test_a_whole_module_that_skips_itself_counts(gated: pytest.Pytester) -> None:
    gated.makepyfile(test_it="import pytest\npytest.importorskip('no_such_module')\ndef test_x(): pass")
    result = gated.runpytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["test_it.py*no_such_module*"])


def test_a_failing_test_still_fails_the_session(gated: pytest.Pytester) -> None:
    gated.makepyfile(test_it="import pytest\ndef test_a(): assert 0\ndef test_b(): pytest.skip('x')")
    assert gated.runpytest().ret == pytest.ExitCode.TESTS_FAILED


def test_a_line_without_a_reason_is_refused(tmp_path: Path) -> None:
    listing = tmp_path / "allowed.txt"
    listing.write_text("# fine\n\ntest_it.py::test_skips\n", encoding="utf-8")
    with pytest.raises(pytest.UsageError, match=r"allowed\.txt:3: expected"):
        read_allowed(listing)
