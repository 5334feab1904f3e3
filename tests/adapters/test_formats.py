"""A payload says how it was written, and is read back whatever way that was."""

from __future__ import annotations

from itertools import product
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given

from holdfast.adapters.formats import Encoded, Formats, for_mode
from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, ConfigError
from tests.values import fingerprint, plain_trees

EVERY_WAY = [
    Formats(encoding, compression, threshold_bytes=0)
    for encoding, compression in product(["json", "msgpack", "cbor"], ["none", "zstd", "gzip"])
]


@pytest.mark.sweep
@given(plain_trees)
def test_any_formats_read_what_any_other_wrote(plain: Any) -> None:
    reader = Formats()
    for formats in EVERY_WAY:
        made = formats.encode(plain)
        back = reader.decode(made.encoding, made.compression, made.data, len(made.raw))
        assert fingerprint(back) == fingerprint(plain)


def test_small_payloads_are_not_compressed() -> None:
    small, large = {"a": "x" * 1_000}, {"a": "x" * 200_000}
    raw = b'{"a":"' + b"x" * 1_000 + b'"}'
    assert Formats().encode(small) == Encoded("json", "none", raw, raw)
    made = Formats().encode(large)
    assert (made.encoding, made.compression, len(made.raw)) == ("msgpack", "zstd", 200_008)
    assert len(made.data) < 1_000


def test_compression_that_does_not_help_is_left_out() -> None:
    assert Formats("msgpack", threshold_bytes=0).encode([1, 2]).compression == "none"


def test_json_that_stays_as_it_is_can_be_read() -> None:
    letters = "".join(Random(7).choices(ascii_letters + digits, k=200_000))
    assert Formats().encode([letters]) == Encoded("json", "none", *2 * (plainjson.dumps([letters]),))
    assert Formats("json", "none").encode("x" * 200_000).encoding == "json"


def test_numbers_are_compressed_where_only_their_json_gives_way() -> None:
    chance = Random(7)
    made = Formats().encode([chance.random() for _ in range(20_000)])
    assert (made.encoding, made.compression) == ("json", "zstd")


@pytest.mark.parametrize(
    ("mode", "encoding"), [("default", "json"), ("performance", "msgpack"), ("compliance", "cbor")]
)
def test_a_mode_chooses_the_encoding(mode: str, encoding: str) -> None:
    assert for_mode(mode).encode([1]).encoding == encoding


def test_a_payload_above_the_limit_is_refused() -> None:
    made = Formats().encode(["x" * 200_000])
    with pytest.raises(CheckpointCorruptError, match="limit"):
        Formats(limit_bytes=100_000).decode(made.encoding, made.compression, made.data, len(made.raw))


def test_unknown_names_are_refused() -> None:
    for make in (lambda: Formats("xml"), lambda: Formats("json", "lzma"), lambda: for_mode("fastest")):
        with pytest.raises(ConfigError):
            make()
    with pytest.raises(ConfigError):
        Formats().decode("xml", "none", b"", 0)
