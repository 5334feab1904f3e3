"""Inputs that fuzzing found, and that once got something out of a decoder that is no error of ours."""

from __future__ import annotations

import pytest

from tests.fuzz.table import TARGETS
from tests.fuzz.target import verdict

DEEP = 1_200
TOKEN = (
    b'{"id": "01234567", "name": "ci", "sha256": "", "scopes": ["read"], "created_by": null, '
    b'"created_at": "2026-01-11T14:30:00Z", "expires_at": null}'
)
REPORT = (
    b'{"place": "W@1", "reason": "r", "sha256": "", "bytes": 1, "found_at": "", "kind": "file", '
    b'"parts": [], "files": []}'
)
#: Target, input, and what came of it.
CRASHERS = (
    ("manifest", b'{"manifest":1,"wf":"W\x17"', "JSONDecodeError"),
    ("manifest", b'{"manifest":1,"wf":"W"}\n{"seq":1}', "KeyError: a line without its place"),
    ("manifest", b'{"manifest":1,"wf":"W"}\n{"seq":[],"at":0}', "TypeError"),
    ("manifest", b'{"manifest":1,"wf":"W"}\n{"pruned":[[1,99999999999999999]],"groups":[]}', "no end"),
    (
        "manifest",
        b'{"manifest":1,"wf":"W"}\n{"seq":0,"type":"t","at":0}',
        "lost when written anew",
    ),
    ("record", b'{},{"b":2,"checksum":"' + b"0" * 71 + b'"}\n', "ValueError: two values in one line"),
    ("journal_frame", b"\x01", "struct.error: less than the head of an operation"),
    ("journal_frame", b"\x09" + bytes(14), "ValueError: no kind of operation"),
    ("journal_frame", b"\x01\x01\0" + bytes(12) + b"\xff", "UnicodeDecodeError"),
    ("journal_frame", b"\x01\x01\0\x05" + bytes(11) + b"a", "an operation that lacks its bytes came back"),
    ("quarantine_report", REPORT.replace(b"W@1", b"\\ud800"), "UnicodeEncodeError"),
    ("token_file", b"[" * DEEP, "RecursionError"),
    ("token_file", TOKEN.replace(b"ci", b"\\ud800"), "UnicodeEncodeError"),
    ("langgraph_value", b'[1,"messages"]', "TypeError"),
    ("langgraph_value", b'[{},{"send":null}]', "KeyError"),
    ("langgraph_value", b'[[],"unheard of"]', "AssertionError"),
    ("config_file", b"a = " + b"[" * DEEP, "RecursionError"),
    ("redaction_rules", b"keys = " + b"[" * DEEP, "RecursionError"),
    ("redaction_pattern", b"name\n" + b"(" * DEEP + b"a" + b")" * DEEP, "RecursionError"),
)


@pytest.mark.parametrize(
    "name, data, was", CRASHERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_was_found_once_is_an_answer_or_an_error_of_ours(name: str, data: bytes, was: str) -> None:
    assert verdict(TARGETS[name], data) is None, f"again: {was}"
