"""Which Holdfast this is, for whoever collects its numbers and spans."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """Answer the version that is installed; where it runs from its sources alone, nobody knows."""
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"
