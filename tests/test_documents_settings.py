"""The defaults that the documents ask for, those that differ on purpose, and the bar for coverage."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from holdfast.adapters.compression import DEFAULT_LEVELS
from holdfast.config import Config
from holdfast.config_sources import TABLES

ROOT = Path(__file__).parent.parent
COVERAGE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
MEGABYTE = 1024 * 1024
#: By the name of the document; a megabyte is a number of bytes here.
ASKED_FOR = {
    "enabled": True,
    "retention_days": 30,
    "checkpoint_size_limit_mb": 100 * MEGABYTE,
    "max_recovery_attempts": 3,
    "recovery_timeout_seconds": 300,
    "fallback_to_previous": True,
    "async_writes": True,
    "memory_mapped_threshold_mb": 10 * MEGABYTE,
}
#: What the document says, and what holds here: the page of requirements says why.
DIFFERENT = {
    "storage_path": ("./outputs/{TASK}/checkpoints", ".holdfast"),
    "encryption": (True, False),
    "max_checkpoints_per_phase": (5, None),
    "auto_recovery": (True, False),
    "batch_decisions": (True, False),
    # None is the compression's own: 6 is a level of gzip, and gzip's here.
    "compression_level": (6, None),
}


def default_of(name: str) -> object:
    [setting] = {keys[name].setting for keys in TABLES.values() if name in keys}
    return getattr(Config(), setting)


def test_the_defaults_that_were_asked_for_hold() -> None:
    assert {name: default_of(name) for name in ASKED_FOR} == ASKED_FOR
    assert default_of("compression") == "zstd"


def test_the_defaults_that_differ_are_these() -> None:
    assert {name: default_of(name) for name in DIFFERENT} == {
        name: here for name, (_, here) in DIFFERENT.items()
    }
    assert DEFAULT_LEVELS["gzip"] == 6


def test_coverage_below_ninety_percent_fails_the_build() -> None:
    assert COVERAGE["report"]["fail_under"] >= 90
    assert "--part=counted --cov" in MAKEFILE


def test_what_is_left_out_of_that_is_counted_with_its_framework_under_the_same_bar() -> None:
    elsewhere = ConfigParser()
    elsewhere.read(ROOT / "tests" / "integrations" / "coverage.ini")
    assert elsewhere.getint("report", "fail_under") >= 90
    assert "--cov-config=tests/integrations/coverage.ini" in MAKEFILE
    [frameworks] = re.findall(r"^FRAMEWORKS := (.+)$", MAKEFILE, re.MULTILINE)
    # A framework's files are those that begin with its name.
    left_out = [path.removeprefix("*/integrations/") for path in COVERAGE["run"]["omit"]]
    counted = {name: [file for file in left_out if file.startswith(name)] for name in frameworks.split()}
    assert len(counted) == 8 and all(counted.values())
    assert {file for files in counted.values() for file in files} == {*left_out}
