"""A small store with something of everything, made by the program itself: what fuzzing begins with."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import holdfast
from holdfast.adapters.formats import Formats
from holdfast.application.keyframes import Caption, build_keyframe, read_keyframe
from holdfast.domain.time import timestamp_text

WORKFLOW = "WF-1"
MOMENT = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def _state(step: int) -> dict[str, Any]:
    return {
        "step": step,
        "text": "word " * step,
        "set": {1, 2},
        "tuple": (1, "two"),
        "decimal": Decimal("1.5"),
        "bytes": b"\0\xff",
        "moment": MOMENT,
        "day": date(2026, 1, 2),
        "large": 2**70,
        "odd": [float("inf"), -0.0],
        "path": PurePosixPath("a/b"),
        "id": UUID(int=7),
    }


def fill(url: str, **settings: Any) -> None:
    """Write checkpoints, events, a session, a lease, decisions, a person and a hold into a store."""
    with holdfast.open(url, session="s-1", actor="ann", **settings) as service:
        for step in range(1, 4):
            service.create_checkpoint(WORKFLOW, _state(step), agent_id="a", resume_handler="go")
            service.record_decision(WORKFLOW, f"decision {step}", rationale="because", confidence=0.5)
        service.open_session("s-2", agent="writer", workflow_ids=[WORKFLOW])
        service.hand_off("s-2", "editor", summary="the draft is done")
        service.acquire_lease("WF-2", owner="me", ttl_seconds=60)
        service.tokens.create("ci", ("read",))
        service.subjects.declare(WORKFLOW, "ann")
        service.holds.place(workflow_id="WF-9", reason="case 1")


def folder() -> str:
    """Make a folder that goes with this process."""
    made = tempfile.mkdtemp(prefix="holdfast-fuzz-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def files() -> dict[str, bytes]:
    """Give every file of a store in a folder, by its path."""
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as folder:
        fill(f"file:{folder}/store")
        root = Path(folder, "store")
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def named(ending: str) -> list[bytes]:
    """Give the files whose path ends or begins so."""
    found = [data for path, data in files().items() if path.endswith(ending) or path.startswith(ending)]
    assert found, f"no file of a store is called {ending}: {sorted(files())}"
    return found


@cache
def restored() -> dict[str, Any]:
    """Give a state as the plain tree that a keyframe holds."""
    return read_keyframe(named("checkpoint_000001.json")[0], Formats(), WORKFLOW, 1).tree


@cache
def packed_keyframe() -> bytes:
    """Give a keyframe whose state is packed and compressed below a line about it."""
    caption = Caption(WORKFLOW, 1, timestamp_text(MOMENT))
    return build_keyframe(caption, restored(), (), Formats("msgpack", "zstd", threshold_bytes=1)).data
