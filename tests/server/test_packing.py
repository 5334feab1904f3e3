from __future__ import annotations

import gzip
import json

import pytest

from holdfast.server.operation import Asked, Identity
from holdfast.server.packing import PACKED_BYTES_MIN, VARY, packed

LARGE = {"text": "x" * PACKED_BYTES_MIN}


def asked(accepted: str) -> Asked[None, None]:
    return Asked({}, None, None, Identity("ann", frozenset()), "req-1", {"accept-encoding": accepted})


@pytest.mark.parametrize("accepted", ["gzip", "br, GZIP;q=0.5", "*", "deflate, gzip; q=1"])
def test_a_large_answer_is_packed_for_whoever_takes_it(accepted: str) -> None:
    answer = packed(asked(accepted), LARGE, {"ETag": '"1"'})
    assert answer.headers == {"ETag": '"1"', "Vary": VARY, "Content-Encoding": "gzip"}
    assert json.loads(gzip.decompress(answer.body)) == LARGE
    assert packed(asked(accepted), LARGE).body == answer.body


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip; q=0.0", "gzippy"])
def test_others_get_it_as_it_is(accepted: str) -> None:
    answer = packed(asked(accepted), LARGE)
    assert "Content-Encoding" not in answer.headers and json.loads(answer.body) == LARGE


def test_a_small_answer_is_left_alone() -> None:
    answer = packed(asked("gzip"), b"{}", media_type="application/x")
    assert (answer.body, answer.media_type, answer.headers) == (
        b"{}",
        "application/x",
        {"Vary": VARY},
    )
