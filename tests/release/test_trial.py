"""Which trials there are, and that a bound that was not tried is told."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from release.control import without
from release.environment import TrialError
from release.interpreters import HERE, found_pythons
from release.outcome import Evidence, Outcome
from release.trial import all_trials, check_lowest

METADATA = b"Metadata-Version: 2.4\nName: holdfast\nVersion: 1.0\nProvides-Extra: dev\nProvides-Extra: kelp\n"


def test_the_core_is_tried_in_every_manner_and_each_extra_with_newest_and_lowest() -> None:
    names = [trial.name for trial in all_trials(METADATA, [HERE, "3.99"])]
    assert names == [
        "core",
        "core-lowest",
        "core-3.99",
        "core-3.99-lowest",
        "core-sdist",
        "core-lowest-sdist",
        "kelp",
        "kelp-lowest",
    ]


def test_a_bound_that_no_version_is_at_is_told() -> None:
    check_lowest({"kelp": "1.2.0"}, {"kelp": "1.2"})
    with pytest.raises(
        TrialError, match=r"kelp is declared from 1\.2 on, and 1\.2\.3 is the lowest there is"
    ):
        check_lowest({"kelp": "1.2.3"}, {"kelp": "1.2"})
    with pytest.raises(TrialError, match="kelp is declared from None on"):
        check_lowest({"kelp": "0.1"}, {"kelp": None})


def test_an_interpreter_is_one_that_answers_as_its_version() -> None:
    assert HERE in found_pythons()


def test_a_broken_wheel_lacks_its_files_in_its_list_too(tmp_path: Path) -> None:
    wheel, broken = tmp_path / "whole.whl", tmp_path / "broken.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("holdfast/a.sql", "a")
        archive.writestr("holdfast/b.py", "b")
        archive.writestr("holdfast-1.0.dist-info/RECORD", "holdfast/a.sql,,\nholdfast/b.py,,\n")
    without(wheel, broken, re.compile(r"holdfast/.*\.sql"))
    with zipfile.ZipFile(broken) as archive:
        assert sorted(archive.namelist()) == ["holdfast-1.0.dist-info/RECORD", "holdfast/b.py"]
        assert archive.read("holdfast-1.0.dist-info/RECORD") == b"holdfast/b.py,,\n"


def test_what_was_found_of_a_wheel_is_kept_and_forgotten_with_the_next(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path / "build" / "trials.json", "wheel 1")
    assert evidence.passed() == set()
    evidence.add(Outcome("core", HERE, 1.0, {}, "fine"))
    evidence.add(Outcome("kelp", HERE, 1.0, {}, "", "broken"))
    assert Evidence(tmp_path / "build" / "trials.json", "wheel 1").passed() == {"core"}
    assert Evidence(tmp_path / "build" / "trials.json", "wheel 2").passed() == set()
