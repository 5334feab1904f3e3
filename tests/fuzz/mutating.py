"""Changes of bytes that are the same every time: what the daily run tries instead of a fuzzer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.fuzz.target import INPUT_BYTES_MAX

_NUMBERS = (b"0", b"-1", b"18446744073709551616", b"1e999", b"NaN", b"null", b"[]", b"{}", b'""', b"true")
_PIECES = (
    *_NUMBERS,
    b"\n",
    b'"',
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\x80\x81",
    b"[" * 1_200,
    b'{"a":' * 1_200,
    b"(" * 1_200,
    b"../",
)


def mutations(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Give changed copies of seeds: flipped, cut, doubled, joined, and with awkward pieces put in."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _change(data, chance, seeds)
        yield bytes(data[:INPUT_BYTES_MAX])


def _change(data: bytearray, chance: random.Random, seeds: Sequence[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 1, 2, 4, 16, 64)))
    match chance.randrange(6):
        case 0 if at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = data[at:end]
        case 3:
            data[at:end] = chance.choice(_PIECES)
        case 4:
            data[at:] = chance.choice(seeds)[at:]
        case _:
            data[at:at] = chance.choice(_PIECES)
