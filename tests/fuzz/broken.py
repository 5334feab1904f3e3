"""A decoder that is broken on purpose: behind three bytes that have to be guessed, an IndexError gets out."""

from __future__ import annotations

from tests.fuzz.target import Target


def _decode(data: bytes) -> int:
    if data[:1] != b"H":
        return 0
    if data[1:2] != b"F":
        return 1
    if data[2:3] != b"X":
        return 2
    return data[data[3] + 4] if len(data) > 3 else 3


TARGET = Target("broken", _decode, lambda: [b"....", bytes(8)])
