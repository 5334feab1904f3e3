"""The defaults that the documents ask for, those that differ on purpose, and the bar for coverage."""

from __future__ import annotations

import tomllib
from pathlib import Path

from holdfast.adapters.compression import DEFAULT_LEVELS
from holdfast.config import Config
from holdfast.config_sources import TABLES

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
    root = Path(__file__).parent.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
    assert settings["report"]["fail_under"] >= 90
    assert "--part=counted --cov" in (root / "Makefile").read_text("utf-8")
