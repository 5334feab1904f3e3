"""Parts of an answer are the bytes that were asked for, of the version that was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.operation import Answer, Asked, Identity
from holdfast.server.packing import PACKED_BYTES_MIN
from holdfast.server.problems import Refusal
from holdfast.server.ranges import ranged

ETAG = '"1"'
DATA = bytes(range(100))


def answered(data: bytes = DATA, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    asked: Asked[None, None] = Asked({}, None, None, Identity("ann", frozenset()), "req-1", sent)
    return ranged(asked, data, {"ETag": ETAG})


@pytest.mark.parametrize(
    ("asked_for", "first", "last"),
    [("0-0", 0, 0), ("10-19", 10, 19), ("90-", 90, 99), ("90-500", 90, 99), ("-10", 90, 99), ("-500", 0, 99)],
)
def test_a_part_is_answered_with_its_place(asked_for, first, last):
    answer = answered(range=f"bytes={asked_for}")
    assert (answer.status, answer.body) == (206, DATA[first : last + 1])
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/100"
    assert answer.headers["ETag"] == ETAG


@given(st.integers(0, 120), st.integers(0, 120))
def test_two_parts_make_the_whole(size, cut):
    data = bytes(size)
    try:
        first = b"" if not cut else answered(data, range=f"bytes=0-{cut - 1}").body
        assert first + answered(data, range=f"bytes={cut}-").body == data
    except Refusal as refusal:
        assert refusal.status == 416 and (cut >= size)


@pytest.mark.parametrize("asked_for", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_where_there_are_no_such_bytes_the_size_is_told(asked_for):
    with pytest.raises(Refusal) as refused:
        answered(range=asked_for)
    assert refused.value.status == 416
    assert refused.value.headers == {"Content-Range": "bytes */100"}


@pytest.mark.parametrize(
    "asked_for", ["", "bytes=-", "bytes=9-3", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "x"]
)
def test_what_is_no_range_gets_the_whole(asked_for):
    answer = answered(range=asked_for)
    assert (answer.status, answer.body, answer.headers["Accept-Ranges"]) == (200, DATA, "bytes")


@pytest.mark.parametrize(
    ("named", "status"),
    [(ETAG, 206), ('"2"', 200), (f"W/{ETAG}", 200), ("Tue, 03 Nov 2026 08:00:00 GMT", 200)],
)
def test_only_the_same_version_is_gone_on_with(named, status):
    assert answered(range="bytes=0-9", if_range=named).status == status


def test_compressed_bytes_are_another_version_and_no_part_is_compressed():
    large = b"x" * PACKED_BYTES_MIN
    whole = answered(large, accept_encoding="gzip")
    assert (whole.headers["Content-Encoding"], whole.headers["ETag"]) == ("gzip", '"1-gzip"')
    part = answered(large, accept_encoding="gzip", range="bytes=0-9")
    assert (part.body, part.headers["ETag"]) == (large[:10], ETAG) and "Content-Encoding" not in part.headers
    assert answered(large, range="bytes=0-9", if_range='"1-gzip"').status == 200
