from __future__ import annotations

import platform

from holdfast import __version__
from tests.cli.conftest import Run


def test_versions_are_told(run: Run):
    lines = run("version").out.splitlines()
    assert lines[0].split() == ["holdfast", __version__]
    assert any(line.startswith("sqlite ") for line in lines)


def test_versions_for_programs(run: Run):
    told = run("version", "--json").data
    assert told["holdfast"] == __version__
    assert told["python"] == platform.python_version()
