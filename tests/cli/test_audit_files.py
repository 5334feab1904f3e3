from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from holdfast.cli.audit_files import read_file, read_text, write_file, written_whole
from holdfast.cli.exits import Failure


class Stream:
    """A standard stream with bytes below it."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)

    def flush(self) -> None:
        """Have nothing to flush."""


def test_a_file_is_written_whole_in_the_place_of_another(tmp_path: Path):
    place = tmp_path / "head"
    for data in (b"one", b"two"):
        write_file(str(place), data)
        assert read_file(str(place)) == data
    assert [path.name for path in tmp_path.iterdir()] == ["head"]


def test_a_dash_is_a_standard_stream(monkeypatch):
    out = Stream()
    monkeypatch.setattr("sys.stdin", Stream(b"given"))
    monkeypatch.setattr("sys.stdout", out)
    write_file("-", read_file("-"))
    assert out.buffer.getvalue() == b"given"


def test_what_cannot_be_read_or_written_is_wrong_usage(tmp_path: Path):
    with pytest.raises(click.UsageError, match="cannot be read"):
        read_file(str(tmp_path / "nothing"))
    with pytest.raises(click.UsageError, match="cannot be written"):
        write_file(str(tmp_path / "nowhere" / "file"), b"")


def test_a_text_is_utf_8(tmp_path: Path):
    (tmp_path / "text").write_bytes(b"\xff")
    with pytest.raises(click.UsageError, match="not a text file"):
        read_text(str(tmp_path / "text"))


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_does_not_fit_leaves_what_was_there_and_nothing_beside_it(tmp_path: Path):
    place = tmp_path / "report"
    write_file(str(place), b"before")
    with pytest.raises(Failure, match="cannot be written"), files_of_at_most(1_000):
        write_file(str(place), bytes(5_000))
    assert [path.name for path in tmp_path.iterdir()] == ["report"] and place.read_bytes() == b"before"


def test_whoever_breaks_off_while_writing_leaves_nothing(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt), written_whole(str(tmp_path / "report")) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("device", "is_full"), [("/dev/full", True), ("/dev/null", False)])
def test_a_device_is_written_to_and_stays_one(tmp_path: Path, device: str, is_full: bool):
    place = tmp_path / "device"
    place.symlink_to(device)
    if is_full:
        with pytest.raises(Failure, match="No space left"):
            write_file(str(place), b"x" * 10_000)
    else:
        write_file(str(place), b"x")
    assert place.is_symlink() and place.is_char_device()
    assert [one.name for one in tmp_path.iterdir()] == ["device"]
