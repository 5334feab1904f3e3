"""The short way to read a line says nothing that the long way does not say, too."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain import trail
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.errors import CheckpointError
from holdfast.domain.usual_line import read_usual

NOW = datetime(2026, 1, 11, 12, tzinfo=UTC)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
plain_names = st.text(st.sampled_from("abz09 -_.,:{}[]!~"), min_size=1, max_size=20)
facts = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "payload"),
    st.one_of(st.integers(-(2**63) + 1, 2**63 - 1), st.booleans(), plain_names, names, st.just("")),
    max_size=5,
)


@st.composite
def entries(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> AuditEntry:
    optional = st.none() | texts
    return AuditEntry(
        NOW + timedelta(microseconds=draw(st.integers(0, 10**12))),
        draw(st.sampled_from(["SESSION_STARTED", "NOTED", "SESSION_CLOSED"])),
        draw(texts),
        draw(optional),
        draw(optional),
        draw(optional),
        draw(st.sampled_from(["success", "failure", "refused", "unknown"])),
        draw(optional),
        draw(facts),
        stored=draw(st.sampled_from([b"", b"something"])),
    )


def exactly(line: bytes) -> dict[str, Any] | None:
    """Read the long way, which believes the hash that stands there."""
    try:
        stated = json.loads(line)["hash"]
        return trail._read_exactly(line, stated)
    except (CheckpointError, ValueError, KeyError, TypeError):
        return None


def lines_of(entry: AuditEntry) -> list[bytes]:
    return [record.data for record in trail.chain([entry], TrailHead)]


@given(entries(names) | entries(plain_names))
def test_what_is_written_is_read_alike(entry: AuditEntry) -> None:
    for line in lines_of(entry):
        usual = read_usual(line)
        assert usual in (None, exactly(line))
        assert trail.read_fields(line) == exactly(line)


@given(entries(plain_names).filter(lambda entry: entry.type == "NOTED"))
def test_a_plain_line_takes_the_short_way(entry: AuditEntry) -> None:
    is_plain = all(type(fact) is not str or fact.isascii() for fact in entry.facts.values())
    is_small = all(type(fact) is str or abs(fact) < 10**18 for fact in entry.facts.values())
    is_bare = not any(char in str(fact) for fact in entry.facts.values() for char in '"\\\x7f\n\r\t')
    is_bare = is_bare and all(char >= " " for fact in entry.facts.values() for char in str(fact))
    for line in lines_of(entry):
        assert (read_usual(line) is not None) >= (is_plain and is_small and is_bare)


@given(entries(plain_names), st.data())
def test_a_changed_line_is_never_read_otherwise(entry: AuditEntry, data: st.DataObject) -> None:
    line = lines_of(entry)[-1]
    at = data.draw(st.integers(0, len(line) - 1))
    length = data.draw(st.integers(0, 12))
    piece = data.draw(
        st.sampled_from([b"", b'"', b"{", b"0", b"\\", b',"n":1', b"x" * 9]) | st.binary(max_size=4)
    )
    changed = line[:at] + piece + line[at + length :]
    usual = read_usual(changed)
    assert usual is None or usual == exactly(changed)


LINE = (
    b'{"id":"AE-1","seq":2,"ts":"2026-01-11T12:00:00.000000Z","type":"NOTED","session":"s","outcome":"success",'
    b'"prev_hash":"GENESIS","hash":"sha256:' + b"a" * 64 + b'","data":{"n":1}}\n'
)
WRONG = {
    "a day that is none": (b"2026-01-11", b"2026-02-30"),
    "a fact twice": (b'"n":1', b'"n":1,"n":2'),
    "a commitment that is none": (b'"n":1', b'"payload":"sha256:0"'),
    "a commitment that is a number": (b'"n":1', b'"payload":1'),
    "the end of a session": (b"NOTED", b"SESSION_CLOSED"),
    "a clock": (b',"type"', b',"clock":"2026-01-11T11:00:00.000000Z","type"'),
    "no newline": (b"}\n", b"}"),
    "a space": (b'"seq":', b'"seq": '),
    "another order": (b'"id":"AE-1","seq":2', b'"seq":2,"id":"AE-1"'),
    "too many facts": (b'"n":1', b",".join(b'"n%d":1' % n for n in range(20))),
    "a fraction": (b'"n":1', b'"n":1.5'),
    "a number with a zero before": (b'"seq":2', b'"seq":02'),
    "a word that is none": (b"success", b"victory"),
    "letters of others": (b"AE-1", "AE-ä".encode()),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_looks_different_is_left_to_the_long_way(what: str) -> None:
    assert read_usual(LINE) == exactly(LINE) is not None
    changed = LINE.replace(*WRONG[what])
    assert changed != LINE and read_usual(changed) is None


@example("x")
@given(plain_names)
def test_a_session_is_told_without_reading_the_line(name: str) -> None:
    for told in (name, f'{name}"session":"x"', f"{name}\\", 'ä"'):
        [line, _] = lines_of(AuditEntry(NOW, "NOTED", told))
        assert trail.session_of(line) == told
    assert trail.session_of(b"nothing") == trail.session_of(b'"session":"\\ud800"') == ""
