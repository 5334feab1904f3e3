"""The stores by their names, as the harnesses are asked for them."""

from __future__ import annotations

from pathlib import Path

from tests.machine.service_subject import Service
from tests.machine.subjects import FILES, POSTGRES, Files, Postgres, Sqlite, Subject

SERVICES = "service"


def subject_of(name: str, outside: Path) -> Subject:
    """Make a subject; what must outlive its file system lies outside."""
    if name == FILES:
        return Files()
    if name == POSTGRES:
        return Postgres()
    if name.startswith(SERVICES):
        return Service(name, outside)
    return Sqlite(name)
