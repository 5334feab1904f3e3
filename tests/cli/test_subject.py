from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "store", retain=False)
    return tmp_path / "store"


def test_a_person_is_declared_and_given_what_is_about_them(run: Run, place: Path, tmp_path: Path):
    told = run("subject", "declare", "WF-1", "ann@example.com", "--json", "--store", place).data
    again = run("subject", "declare", "WF-1", "ann@example.com", "--store", place)
    assert again.out == f"WF-1 is about {told['pseudonym']}\n"
    done = run("subject", "export", "ann@example.com", "--out", tmp_path / "ann", "--json", "--store", place)
    assert done.data["workflows"] == ["WF-1"]
    assert (tmp_path / "ann" / "subject.json").is_file()
    shown = run("subject", "export", "ann@example.com", "--out", tmp_path / "again", "--store", place)
    assert shown.out.startswith("Wrote 1 workflow, ")
