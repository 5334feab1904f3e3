"""JSON Patch as it is sent."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.domain.json_patch import EditError, Step, patched
from holdfast.domain.tree import NOTHING
from holdfast.server.json_patch import Edit, steps


@pytest.mark.parametrize("path", ["a", "/a~", "/a~2b", "//~"])
def test_what_is_no_pointer_is_no_edit(path):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"op": "remove", "path": path}, Edit)


def test_what_was_not_sent_is_nothing():
    sent = [{"op": "remove", "path": "/a"}, {"op": "copy", "path": "/b", "from": "/c"}]
    read = msgspec.convert([*sent, {"op": "add", "path": "/d", "value": None}], list[Edit])
    assert steps(read) == [
        Step("remove", "/a", NOTHING),
        Step("copy", "/b", NOTHING, "/c"),
        Step("add", "/d", None),
    ]


def test_what_was_sent_is_applied_or_refused():
    assert patched({"n": 1}, steps([Edit("replace", "/n", 2)])) == {"n": 2}
    with pytest.raises(EditError) as refused:
        patched({"n": 1}, steps([Edit("add", "/n")]))
    assert refused.value.why == "add needs a value"
