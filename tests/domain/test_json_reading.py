"""Whatever stands in a file, reading it as JSON answers something or raises one kind of error."""

from __future__ import annotations

import pytest

from holdfast.domain.json_reading import read_json, read_object

DEEP = "[" * 100_000


def test_json_is_read_from_text_and_bytes() -> None:
    assert read_json('{"a":[1,null]}') == read_object(b'{"a":[1,null]}') == {"a": [1, None]}
    assert read_json(b"3") == 3


@pytest.mark.parametrize("text", ["", "{", "nul", "\ud800", DEEP, DEEP.encode(), b"\xff"])
def test_what_is_no_json_or_too_deep_is_one_kind_of_error(text: str | bytes) -> None:
    for read in (read_json, read_object):
        with pytest.raises(ValueError):
            read(text)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"{}"'])
def test_what_is_no_object_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="no object"):
        read_object(text)
