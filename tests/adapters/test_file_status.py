"""A file is told from another one that takes its name, and its size is known, whoever is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters import file_status
from holdfast.adapters.file_status import Status, identity, plain_status, status

Ask = Callable[[str], Status]


@pytest.fixture
def chosen_anew() -> Iterator[None]:
    file_status._asked.cache_clear()
    yield
    file_status._asked.cache_clear()


def test_linux_is_asked_without_the_times() -> None:
    assert file_status._asked() is not plain_status


@pytest.mark.parametrize("ask", [status, plain_status])
def test_a_file_is_told_from_the_one_that_takes_its_place(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "ordner-\u00e4"
    path.write_bytes(b"12345")
    found = path.stat()
    assert ask(str(path)) == (found.st_dev, found.st_ino, 5)
    path.rename(tmp_path / "away")
    with pytest.raises(FileNotFoundError) as told:
        ask(str(path))
    assert told.value.filename == str(path)
    path.mkdir()
    assert ask(str(path))[:2] != (found.st_dev, found.st_ino)


@pytest.mark.parametrize("ask", [status, plain_status])
def test_what_cannot_be_looked_at_says_why(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        ask(f"{tmp_path}/file/below")


def test_other_devices_have_other_numbers() -> None:
    for path in ("/", "/proc", "/dev/null"):
        found = os.stat(path)
        assert identity(path) == (found.st_dev, found.st_ino)


def test_nothing_is_no_file(tmp_path: Path) -> None:
    assert identity(str(tmp_path / "none")) is None


def test_where_it_cannot_be_asked_python_is(monkeypatch: pytest.MonkeyPatch, chosen_anew: None) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert file_status._asked() is plain_status


def test_where_answers_look_otherwise_python_is_asked(
    monkeypatch: pytest.MonkeyPatch, chosen_anew: None
) -> None:
    monkeypatch.setattr(file_status, "_without_times", lambda: lambda path: (0, 0, 0))
    assert file_status._asked() is plain_status
