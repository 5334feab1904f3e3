"""The version that collectors are told."""

from __future__ import annotations

from importlib import metadata

import pytest

import holdfast
from holdfast.adapters.telemetry import own_version as module


def test_it_is_the_one_that_is_installed() -> None:
    assert module.own_version() == holdfast.__version__


def test_without_an_installation_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    assert module.own_version() == "unknown"
