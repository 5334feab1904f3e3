"""The `--campaign` option: what it selects, what it tells the tests, and how it stops and goes on."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests import campaign
from tests.campaign import Done, Ledger, Part, all_parts, fingerprint, harness_of, order_of

ROOT = Path(__file__).parent.parent
#: What is no source, though it lies there or beside it.
LEFTOVERS = ("src/__pycache__/b.pyc.9", "src/a.pyo", "src/a.egg-info/PKG-INFO", "tests/.cache/a", "README.md")

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
        assert settings.default.max_examples == (2_000 if campaign else 25)
"""

IN_PARTS = """
    import os

    def test_all(part, record_property):
        chosen = part.of(range(100)) if part else [0]
        record_property("cases", len(chosen))
        wrong = ["seven"] if 7 in chosen and os.path.exists("is_broken") else []
        record_property("violations", wrong)
        assert not wrong
"""

#: The first test uses up all the time there is.
THE_FIRST_TAKES_ALL = """
    def test_one(campaign, request):
        plugin = request.config.pluginmanager.get_plugin("campaign")
        plugin.deadline = min(plugin.deadline, 0.0)

    def test_two():
        pass

    def test_three():
        pass
"""

MANY = """
    import pytest

    @pytest.mark.parametrize("number", range(40))
    def test_each(campaign, number):
        pass
"""

PLAIN = """
    def test_as_every_day():
        pass
"""

A_PROPERTY = """
    from hypothesis import given, settings, strategies

    @settings(max_examples=1)
    @given(strategies.integers())
    def test_for_all(number):
        pass

    def test_as_every_day():
        pass
"""

BOUNDED = ("--campaign", "--campaign-minutes=60")
TWO_PROCESSES = ("--numprocesses=2", "--dist=loadscope")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with our conftest; its runs are processes of their own, for profiles are global."""
    monkeypatch.delenv("HOLDFAST_CAMPAIGN", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    # Of all that is installed, only what the conftest needs: whatever else there is takes as long to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin,xdist.plugin")
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    pytester.makefile(".txt", allowed_skips="")
    pytester.makeini("[pytest]\nmarkers = campaign")
    return pytester


def test_everyday_runs_leave_campaign_tests_out_without_skipping_them(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=TWO_TESTS)
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, deselected=1)
    assert result.ret == pytest.ExitCode.OK


def test_a_campaign_runs_everything_at_full_size(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=TWO_TESTS)
    project.runpytest_subprocess("--campaign").assert_outcomes(passed=2)


def test_the_environment_can_ask_for_a_campaign(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(test_it=TWO_TESTS)
    monkeypatch.setenv("HOLDFAST_CAMPAIGN", "1")
    project.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_bounded_campaign_leaves_out_what_has_the_same_size_every_day(project: pytest.Pytester) -> None:
    project.makepyfile(test_harness=IN_PARTS + PLAIN, test_plain=PLAIN, test_property=A_PROPERTY)
    project.runpytest_subprocess(*BOUNDED).assert_outcomes(passed=26, deselected=2)
    project.runpytest_subprocess("--campaign").assert_outcomes(passed=28)


def test_a_harness_in_parts_takes_a_sample_on_other_days(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=IN_PARTS)
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_campaign_that_is_done_has_nothing_left_until_the_source_changes(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=IN_PARTS)
    source = project.mkdir("src") / "source.py"
    source.write_text("A = 1\n")
    project.runpytest_subprocess(*BOUNDED, *TWO_PROCESSES).assert_outcomes(passed=24)
    again = project.runpytest_subprocess(*BOUNDED, *TWO_PROCESSES)
    again.assert_outcomes()
    assert again.ret == pytest.ExitCode.OK
    again.stdout.fnmatch_lines(["*test_all*: 24 of 24 parts, 100 cases, 0 violations"])
    again.stdout.fnmatch_lines(
        ["24 of 24 pieces done (0 ran now), 0 failed; 100 cases in parts, 0 violations"]
    )
    source.write_text("A = 2\n")
    project.runpytest_subprocess(*BOUNDED).assert_outcomes(passed=24)


def test_nothing_begins_after_its_time_and_the_next_run_goes_on_there(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=THE_FIRST_TAKES_ALL)
    first = project.runpytest_subprocess(*BOUNDED)
    first.assert_outcomes(passed=1)
    assert first.ret == pytest.ExitCode.OK
    first.stdout.fnmatch_lines(["1 of 3 pieces done*", "2 pieces are left*"])
    second = project.runpytest_subprocess(*BOUNDED)
    second.assert_outcomes(passed=2)
    second.stdout.fnmatch_lines(["3 of 3 pieces done (2 ran now)*"])
    second.stdout.no_fnmatch_line("*are left*")


def test_without_any_time_nothing_begins_in_any_process(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=IN_PARTS)
    result = project.runpytest_subprocess("--campaign", "--campaign-minutes=0", *TWO_PROCESSES)
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["0 of 24 pieces done*", "24 pieces are left*"])


def test_what_failed_is_told_and_done_again(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=IN_PARTS)
    broken = project.path / "is_broken"
    broken.touch()
    red = project.runpytest_subprocess(*BOUNDED)
    red.assert_outcomes(passed=23, failed=1)
    assert red.ret == pytest.ExitCode.TESTS_FAILED
    red.stdout.fnmatch_lines(
        ["*VIOLATION*part08of24*: seven", "23 of 24 pieces done*1 failed*, 1 violations"]
    )
    broken.unlink()
    green = project.runpytest_subprocess(*BOUNDED)
    green.assert_outcomes(passed=1)
    green.stdout.fnmatch_lines(["24 of 24 pieces done (1 ran now), 0 failed*, 0 violations"])


def test_parts_hold_each_case_once() -> None:
    everything = list(range(1000))
    parts = all_parts(7)
    assert sorted(case for part in parts for case in part.of(everything)) == everything


def test_a_part_is_known_by_its_name_and_belongs_to_its_harness() -> None:
    assert str(Part(3, 24)) == "part03of24"
    assert (
        harness_of("test_it.py::test_all[part03of24-flips-settled]") == "test_it.py::test_all[flips-settled]"
    )
    assert harness_of("test_it.py::test_other[flips]") is None


def test_parts_are_done_in_turn_and_what_is_in_none_with_the_second_ones() -> None:
    ids = ["a[part02of24]", "a[part10of24]", "b[part01of24]", "b[part02of24]", "c"]
    assert sorted(ids, key=order_of) == [
        "b[part01of24]",
        "a[part02of24]",
        "b[part02of24]",
        "c",
        "a[part10of24]",
    ]


def test_harnesses_in_one_piece_come_with_the_first_parts_and_properties_last() -> None:
    assert order_of("control", is_harness=True) == order_of("a[part01of24]")
    assert order_of("property", is_property=True) > order_of("whole") > order_of("a[part01of24]")


def test_the_first_part_comes_before_a_file_of_many_tests(project: pytest.Pytester) -> None:
    project.makepyfile(test_a_file_of_many=MANY, test_harness=IN_PARTS)
    project.runpytest_subprocess(*BOUNDED, "--numprocesses=1", "--dist=loadscope").assert_outcomes(passed=64)
    [ledger] = (project.path / "build" / "campaign").glob("*.jsonl")
    first, second = ledger.read_text().splitlines()[:2]
    assert "part01of24" in first and "test_each" in second


def test_half_a_line_of_the_ledger_is_left_out(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "campaign", "tree")
    assert ledger.read() == {}
    ledger.add(Done("one", "passed", 1.0))
    whole = ledger.path.read_text()
    ledger.path.write_text(whole + whole.replace("one", "two")[:-5])
    assert list(ledger.read()) == ["one"]
    ledger.add(Done("three", "passed", 1.0))
    ledger.add(Done("four", "passed", 1.0))
    # The one after the half line went under with it: it is done again.
    assert list(ledger.read()) == ["one", "four"]


def test_the_source_is_named_by_its_content_and_its_places(tmp_path: Path) -> None:
    for folder in ("src", "tests"):
        (tmp_path / folder).mkdir()
    names = [fingerprint(tmp_path)]
    for path in ("src/a.py", "tests/a.py", "src/0001_a.sql", "tests/a.json", "pyproject.toml"):
        for text in ("", "changed"):
            (tmp_path / path).write_text(text)
            names.append(fingerprint(tmp_path))
    (tmp_path / "src" / "a.py").rename(tmp_path / "src" / "b.py")
    names.append(fingerprint(tmp_path))
    for leftover in LEFTOVERS:
        (tmp_path / leftover).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / leftover).write_text("not source")
    assert len(set(names)) == 12 and fingerprint(tmp_path) == names[-1]


def test_another_version_of_what_is_installed_is_another_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"pytest {version('pytest')}" in campaign.installed()
    before = fingerprint(tmp_path)
    others = [*campaign.installed()[:-1], "kelp 2.0"]
    monkeypatch.setattr(campaign, "installed", lambda: others)
    assert fingerprint(tmp_path) != before


def test_what_counts_is_what_git_keeps() -> None:
    found = campaign.sources(ROOT)
    assert {name.rpartition(".")[2] for name in found} >= {"py", "sql", "json", "js", "toml", "typed"}
    command = "git ls-files -z --cached --others --exclude-standard src tests pyproject.toml"
    told = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    # An archive has no list, and a machine may have no git.
    assert not told or found == sorted(name for name in told.split("\0") if (ROOT / name).is_file())
