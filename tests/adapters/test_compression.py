"""Compression gives back the bytes, and no bytes can make it fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.compression import NAMES, compress, decompress
from holdfast.domain.errors import CheckpointCorruptError, ConfigError

LIMIT_BYTES = 10_000_000
BOMB_BYTES = 200_000_000

every_compression = pytest.mark.parametrize("name", NAMES)
packed = pytest.mark.parametrize("name", ["zstd", "gzip"])


@every_compression
@given(data=st.binary(max_size=2_000))
def test_bytes_come_back(name: str, data: bytes) -> None:
    assert decompress(name, compress(name, [data]), len(data), LIMIT_BYTES) == data


@every_compression
@pytest.mark.parametrize("size", [0, 1, 131_072, 1_000_001])
def test_sizes_come_back(name: str, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert decompress(name, compress(name, [data], 1), size, LIMIT_BYTES) == data


@packed
def test_the_same_bytes_compress_to_the_same_bytes(name: str) -> None:
    assert compress(name, [b"abc" * 1_000]) == compress(name, [b"abc" * 1_000])


@every_compression
@pytest.mark.parametrize("off_by", [-1, 1])
def test_a_wrong_declared_size_is_refused(name: str, off_by: int) -> None:
    with pytest.raises(CheckpointCorruptError, match="declared"):
        decompress(name, compress(name, [b"x" * 1_000]), 1_000 + off_by, LIMIT_BYTES)


@every_compression
def test_a_declared_size_above_the_limit_is_refused(name: str) -> None:
    for size in (-1, LIMIT_BYTES + 1):
        with pytest.raises(CheckpointCorruptError, match="limit"):
            decompress(name, compress(name, [b"x"]), size, LIMIT_BYTES)


@packed
def test_trailing_cut_and_damaged_bytes_are_refused(name: str) -> None:
    data = compress(name, [b"some text, " * 100])
    for damaged in (
        data + b"x",
        data + data,
        data[:-1],
        data[:-5],
        data[:10],
        b"",
        data[:20] + b"\xff" + data[21:],
    ):
        with pytest.raises(CheckpointCorruptError):
            decompress(name, damaged, 1_100, LIMIT_BYTES)


def _bombs() -> dict[str, bytes]:
    stream = zstd.ZstdCompressor()
    chunk = bytes(10_000_000)
    undeclared = b"".join(stream.compress(chunk) for _ in range(20)) + stream.flush()
    return {
        "zstd": zstd.compress(bytes(BOMB_BYTES)),
        "zstd without its size": undeclared,
        "gzip": gzip.compress(bytes(BOMB_BYTES), 1),
    }


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["zstd", "zstd without its size", "gzip"])
def test_a_bomb_costs_no_more_than_was_declared(kind: str) -> None:
    bomb = _bombs()[kind]
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointCorruptError):
            decompress(kind.split()[0], bomb, 1_000, LIMIT_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_frame_that_declares_a_huge_size_is_refused() -> None:
    frame = bytes.fromhex("28b52ffde0") + (2**60).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(CheckpointCorruptError):
        decompress("zstd", frame, 1_000, LIMIT_BYTES)


def test_gzip_can_be_read_by_others() -> None:
    assert gzip.decompress(compress("gzip", [b"a", b"bc"])) == b"abc"
    assert zlib.decompress(compress("gzip", [b"a", b"bc"]), 31) == b"abc"


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(ConfigError):
        compress("lzma", [])
    with pytest.raises(ConfigError):
        decompress("lzma", b"", 0, 1)
