"""The `--campaign` option: what it selects, and what it tells the tests and their child processes."""

from __future__ import annotations

from pathlib import Path

import pytest

TWO_TESTS = """
    import os
    import pytest
    from hypothesis import settings

    @pytest.mark.campaign
    def test_long(campaign):
        assert campaign
        assert os.environ["HOLDFAST_CAMPAIGN"] == "1"
        assert settings.default.max_examples == 2_000

    def test_short(campaign):
        assert settings.default.max_examples == (2_000 if campaign else 50)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with our conftest; its runs are processes of their own, for profiles are global."""
    monkeypatch.delenv("HOLDFAST_CAMPAIGN", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makefile(".txt", allowed_skips="")
    pytester.makeini("[pytest]\nmarkers = campaign")
    pytester.makepyfile(test_it=TWO_TESTS)
    return pytester


def test_everyday_runs_leave_campaign_tests_out_without_skipping_them(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK


def test_a_campaign_runs_everything_at_full_size(project: pytest.Pytester) -> None:
    project.runpytest_subprocess("--campaign").assert_outcomes(passed=2)


def test_the_environment_can_ask_for_a_campaign(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_CAMPAIGN", "1")
    project.runpytest_subprocess().assert_outcomes(passed=2)
