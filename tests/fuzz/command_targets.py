"""What is typed after a command, and archives that somebody sends: through the command line itself."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

from holdfast.cli.main import main
from tests.fuzz import real_store
from tests.fuzz.target import Target, ViolationError, text_of

#: Each only looks; what follows are names and places.
_COMMANDS = (
    ("list",),
    ("show",),
    ("diff",),
    ("validate",),
    ("events",),
    ("replay",),
    ("report",),
    ("stats",),
    ("recover", "--plan"),
    ("audit", "show"),
    ("audit", "proof"),
    ("session", "show"),
    ("config", "path"),
)


@cache
def _store() -> str:
    folder = real_store.folder()
    real_store.fill(f"file:{folder}/store")
    return f"{folder}/store"


def _run(arguments: Sequence[str]) -> None:
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        main(arguments)
    if '"code": "unexpected"' in said.getvalue() or '"code":"unexpected"' in said.getvalue():
        raise ViolationError(f"{arguments}: {said.getvalue()[:300]}")


def _command(data: bytes) -> None:
    """Run a command with one argument for each line; no argument of a process has a zero byte in it."""
    command = _COMMANDS[data[0] % len(_COMMANDS)] if data else _COMMANDS[0]
    texts = text_of(data[1:].replace(b"\0", b"")).split("\n")[:4]
    _run([*command, "--json", "--store", _store(), "--", *texts])


def _command_seeds() -> Iterable[bytes]:
    texts = (
        b"WF-1",
        b"WF-1@1",
        b"WF-1@1\nWF-1@2",
        b"WF-1@1\n/context/set",
        b"s-1",
        b"AE-000001",
        b"WF-1@event:2",
    )
    return [bytes([at]) + text for at in range(len(_COMMANDS)) for text in texts]


@cache
def _archive() -> bytes:
    folder = Path(real_store.folder())
    with redirect_stdout(io.StringIO()):
        assert main(["export", "--all", "--out", str(folder / "a"), "--store", _store(), "--yes"]) == 0
    return (folder / "a").read_bytes()


@cache
def _sent() -> Path:
    return Path(real_store.folder(), "sent.holdfast")


def _imported(data: bytes) -> None:
    """Take in an archive in which pieces were replaced: four bytes say where, one how long it is."""
    archive = bytearray(_archive())
    while len(data) > 5:
        at = int.from_bytes(data[:4], "big") % len(archive)
        piece = data[5 : 6 + data[4]]
        archive[at : at + len(piece)] = piece
        data = data[6 + len(piece) :]
    _sent().write_bytes(archive)
    for rest in _sent().parent.glob("sent.holdfast-*"):
        rest.unlink()
    _run(["import", "archive", str(_sent()), "--store", "memory:", "--dry-run", "--json"])


def _archive_seeds() -> Iterable[bytes]:
    """Touch the head of the file, its schema, and the places where rows tell of checkpoints and entries."""
    found = [
        _archive().find(word) for word in (b"CREATE TABLE", b"WF-1", b"SESSION_STARTED", b"sha256:", b"[]")
    ]
    places = [0, 16, 24, 100, *(at for at in found if at >= 0)]
    return [b"", *(at.to_bytes(4, "big") + b"\x03" + bytes([255, 0, 1, 2]) for at in places)]


TARGETS = (
    Target("command_line", _command, _command_seeds),
    Target("archive_file", _imported, _archive_seeds),
)
