"""One decoder under attack: what it is fed with, and what it may do."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.domain.errors import CheckpointError

#: Of the processor, for one input of a few kilobytes.
SECONDS_MAX = 10.0
INPUT_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """A decoder by its name.

    Attributes:
        run: decodes bytes; where they decode, it encodes them again and compares.
        seeds: what is really written, to begin with.
        allowed: what it may raise.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    allowed: tuple[type[Exception], ...] = (CheckpointError,)


class ViolationError(AssertionError):
    """Something decoded to what does not encode to the same again, or took too long."""


def same(one: Any, other: Any) -> None:
    """Raise unless what was decoded again is what was decoded first."""
    if repr(one) != repr(other):
        raise ViolationError(f"{ascii(one)[:200]} came back as {ascii(other)[:200]}")


def text_of(data: bytes) -> str:
    """Read bytes as arguments of a command are read: whatever they are, they become a text."""
    return data.decode("utf-8", "surrogateescape")


def verdict(target: Target, data: bytes) -> str | None:
    """Feed a decoder; answer what it did that it must not, or None."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(data)
    except target.allowed:
        pass
    # Whatever else comes out of it is what is looked for.
    except Exception as fault:
        return f"{type(fault).__name__} at {_place(fault)}: {ascii(str(fault))[:160]}"
    seconds = time.process_time() - began
    return f"took {seconds:.0f} s of the processor" if seconds > SECONDS_MAX else None


def _place(fault: BaseException) -> str:
    """Name the innermost line of ours, by which two findings are told apart."""
    frames = traceback.extract_tb(fault.__traceback__)
    ours = [frame for frame in frames if "/holdfast/" in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
