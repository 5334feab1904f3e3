import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    ChecksumMismatchError,
    InvalidStateError,
    UnstorableValueError,
)
from holdfast.domain.ids import GENESIS
from holdfast.domain.trail import (
    check_follows,
    decode_entry,
    encode_entry,
    head_after,
    place_of,
    read_fields,
)

NOW = datetime(2026, 1, 11, 14, 10, tzinfo=UTC)
COMMITMENT = "sha256:" + "0" * 64
STARTED = AuditEntry(NOW, AuditType.SESSION_STARTED, "s-1", agent="orchestrator", id="AE-001")
DECISION = AuditEntry(
    id="AE-002",
    timestamp=NOW,
    type=AuditType.AGENT_DECISION,
    session_id="s-1",
    workflow_id="WF-1",
    agent="ps-architect",
    actor="svc-7",
    outcome=Outcome.SUCCESS,
    correlation_id="c-9",
    facts={"cp_seq": 1},
    payload=COMMITMENT,
)
FIRST = encode_entry(STARTED, TrailHead("s-1"))
SECOND = encode_entry(DECISION, FIRST.head)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
FACTS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True).filter(lambda name: name != "payload"),
    st.integers(-(2**63) + 1, 2**63 - 1) | st.booleans() | TEXT,
    max_size=4,
)
ENTRIES = st.builds(
    AuditEntry,
    id=TEXT,
    timestamp=st.datetimes(timezones=st.just(UTC)),
    type=st.sampled_from([kind for kind in AuditType if kind != AuditType.SESSION_CLOSED])
    | st.just("OUR_OWN_2"),
    session_id=st.just("s-1"),
    workflow_id=st.none() | TEXT,
    agent=st.none() | TEXT,
    actor=st.none() | TEXT,
    outcome=st.sampled_from(Outcome),
    correlation_id=st.none() | TEXT,
    facts=FACTS,
    payload=st.just("") | st.just(COMMITMENT),
)


def rehashed(fields: dict) -> bytes:
    """Write fields as a line whose hash is right: what somebody could do who may write the store."""
    line = plainjson.dumps(fields | {"hash": ""}) + b"\n"
    digest = hashlib.sha256(line).hexdigest()
    return line.replace(b',"hash":""', f',"hash":"sha256:{digest}"'.encode(), 1)


def changed(**fields) -> bytes:
    """Write the second line with other fields; None takes one away."""
    now = json.loads(SECOND.data) | fields
    return rehashed({name: value for name, value in now.items() if value is not None})


def test_the_lines_are_those_of_the_format():
    assert FIRST.data == (
        b'{"id":"AE-001","seq":1,"ts":"2026-01-11T14:10:00.000000Z","type":"SESSION_STARTED","session":"s-1",'
        b'"agent":"orchestrator","outcome":"success","prev_hash":"GENESIS","hash":"'
        + FIRST.head.hash.encode()
        + b'"}\n'
    )
    assert SECOND.data == (
        b'{"id":"AE-002","seq":2,"ts":"2026-01-11T14:10:00.000000Z","type":"AGENT_DECISION","session":"s-1",'
        b'"workflow":"WF-1","agent":"ps-architect","actor":"svc-7","outcome":"success","correlation":"c-9",'
        b'"prev_hash":"' + FIRST.head.hash.encode() + b'","hash":"' + SECOND.head.hash.encode() + b'",'
        b'"data":{"cp_seq":1,"payload":"' + COMMITMENT.encode() + b'"}}\n'
    )


def test_the_hash_can_be_computed_with_other_tools():
    emptied = SECOND.data.replace(SECOND.head.hash.encode(), b"")
    assert SECOND.head.hash == "sha256:" + hashlib.sha256(emptied).hexdigest()


@given(ENTRIES)
def test_an_entry_survives_the_round_trip(entry):
    record = encode_entry(entry, FIRST.head)
    found = decode_entry(record.data, FIRST.head)
    moment = max(entry.timestamp, NOW)
    assert found == replace(
        entry,
        timestamp=moment,
        clock=entry.timestamp if entry.timestamp < NOW else None,
        seq=2,
        prev_hash=FIRST.head.hash,
        hash=record.head.hash,
    )
    assert record.head == head_after(read_fields(record.data))
    assert decode_entry(record.data, None) == found


@given(ENTRIES)
def test_the_line_is_what_the_encoder_makes_of_its_fields(entry):
    line = encode_entry(entry, FIRST.head).data
    assert plainjson.dumps(read_fields(line)) + b"\n" == line


def test_threads_that_wait_for_their_turn_are_no_clock_that_steps_back():
    head = encode_entry(STARTED, TrailHead("s-1")).head
    for late, is_told in ((timedelta(seconds=1), False), (timedelta(seconds=1, microseconds=1), True)):
        line = encode_entry(replace(DECISION, timestamp=NOW - late), head).data
        assert (b'"clock"' in line) is is_told
        assert b'"ts":"2026-01-11T14:10:00.000000Z"' in line


def test_a_clock_that_steps_back_is_told_and_time_goes_on():
    back = encode_entry(replace(DECISION, timestamp=NOW - timedelta(days=10)), FIRST.head)
    found = decode_entry(back.data, FIRST.head)
    assert (found.timestamp, found.clock) == (NOW, NOW - timedelta(days=10))
    assert b'"ts":"2026-01-11T14:10:00.000000Z","clock":"2026-01-01T14:10:00.000000Z"' in back.data
    later = decode_entry(
        encode_entry(replace(DECISION, timestamp=NOW + timedelta(1)), back.head).data, back.head
    )
    assert later.clock is None


def test_times_are_utc_whatever_zone_they_come_in():
    berlin = timezone(timedelta(hours=2))
    record = encode_entry(replace(DECISION, timestamp=NOW.astimezone(berlin)), FIRST.head)
    assert decode_entry(record.data, FIRST.head).timestamp == NOW


def test_the_entry_that_closes_a_session_says_where_it_ends():
    closed = encode_entry(replace(STARTED, type=AuditType.SESSION_CLOSED, facts={"entries": 7}), SECOND.head)
    assert closed.head.closed
    assert decode_entry(closed.data, SECOND.head).facts == {
        "entries": 7,
        "last_seq": 3,
        "head": SECOND.head.hash,
    }
    wrong = json.loads(closed.data)
    for data in ({"last_seq": 4, "head": SECOND.head.hash}, {"last_seq": 3, "head": FIRST.head.hash}, {}):
        with pytest.raises(CheckpointCorruptError, match="where the session ends"):
            decode_entry(rehashed(wrong | {"data": data}), SECOND.head)


def test_after_its_end_a_session_can_only_start_again():
    closed = encode_entry(replace(STARTED, type=AuditType.SESSION_CLOSED), SECOND.head)
    with pytest.raises(InvalidStateError, match="begins with SESSION_STARTED, also when it was closed"):
        encode_entry(DECISION, closed.head)
    again = encode_entry(STARTED, closed.head)
    assert decode_entry(again.data, closed.head).seq == 4


def test_a_session_begins_with_its_start():
    with pytest.raises(InvalidStateError, match="begins with SESSION_STARTED"):
        encode_entry(DECISION, TrailHead("s-1"))
    with pytest.raises(InvalidStateError, match="belongs to the session 's-2'"):
        encode_entry(replace(STARTED, session_id="s-2"), TrailHead("s-1"))


BAD_LINKS = {
    "belongs to the session 's-2'": {"session": "s-2"},
    "entry 2 should stand here, not entry 3": {"seq": 3},
    "entry 2 should stand here, not entry 1": {"seq": 1},
    "does not follow the entry before": {"prev_hash": COMMITMENT},
    "made before the entry before": {"ts": "2026-01-11T14:09:59.999999Z"},
    "taken from the entry before, and it was not": {
        "ts": "2026-01-11T14:10:01.000000Z",
        "clock": "2026-01-11T14:10:00.500000Z",
    },
}


@pytest.mark.parametrize("problem", BAD_LINKS)
def test_an_entry_that_does_not_follow_is_told_with_its_place(problem):
    line = changed(**BAD_LINKS[problem])
    assert decode_entry(line, None)
    with pytest.raises(CheckpointCorruptError, match=problem) as caught:
        decode_entry(line, FIRST.head)
    assert caught.value.place.startswith("audit entry ")


BAD_FIELDS = [
    {"id": None},
    {"id": ""},
    {"id": 5},
    {"id": "x" * 513},
    {"session": None},
    {"session": ["s-1"]},
    {"workflow": 1},
    {"agent": ""},
    {"actor": {}},
    {"correlation": True},
    {"seq": None},
    {"seq": 0},
    {"seq": True},
    {"seq": 2.0},
    {"seq": "2"},
    {"ts": None},
    {"ts": "2026-01-11T14:10:00Z"},
    {"ts": "2026-02-30T14:10:00.000000Z"},
    {"ts": "2026-01-11T24:00:00.000000Z"},
    {"ts": "2026-01-11 14:10:00.000000Z"},
    {"ts": 5},
    {"clock": "2026-01-11T14:10:00.000000Z"},
    {"clock": "yesterday"},
    {"clock": 5},
    {"type": None},
    {"type": "lower"},
    {"type": 5},
    {"outcome": None},
    {"outcome": "fine"},
    {"outcome": ["success"]},
    {"prev_hash": None},
    {"prev_hash": "sha256:1"},
    {"prev_hash": 7},
    {"data": []},
    {"data": {"payload": "sha256:1"}},
    {"data": {"payload": 5}},
    {"data": {"Upper": 1}},
    {"data": {"deep": {}}},
    {"data": {"half": 0.5}},
    {"data": {"long": "x" * 513}},
    {"data": {"huge": 2**63}},
    {"data": {f"f{at}": at for at in range(20)}},
]


@pytest.mark.parametrize("fields", BAD_FIELDS, ids=str)
def test_a_line_with_the_right_hash_and_wrong_fields_is_refused(fields):
    with pytest.raises(CheckpointCorruptError, match="no audit entry"):
        decode_entry(changed(**fields), None)


def test_fields_that_are_not_known_here_are_left_alone():
    line = changed(zone="eu")
    assert decode_entry(line, FIRST.head).type == AuditType.AGENT_DECISION


TWICE = SECOND.data[:-2] + b',"seq":9}\n'
NESTED = b'{"a":{"b":1,"hash":""},"id":"x","hash":"sha256:1"}\n'


@pytest.mark.parametrize(
    "line",
    [
        TWICE,
        NESTED,
        SECOND.data + b"\n",
        SECOND.data[:-1],
        SECOND.data.replace(b',"actor"', b',\n"actor"'),
        SECOND.data.replace(b"svc-7", b"\\ud800"),
        b'[1,"hash":""]\n',
        b'"text,\\"hash\\":\\""\n',
    ],
)
def test_two_readers_never_see_two_entries_in_one_line(line):
    at = line.find(b',"hash":"') + len(b',"hash":"')
    end = line.find(b'"', at)
    digest = hashlib.sha256(line[:at] + line[end:]).hexdigest()
    forged = line[:at] + f"sha256:{digest}".encode() + line[end:]
    with pytest.raises(CheckpointCorruptError):
        decode_entry(forged, None)


def test_every_bit_of_a_line_matters_and_the_entry_is_named():
    for bit in range(len(SECOND.data) * 8):
        line = bytearray(SECOND.data)
        line[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumMismatchError) as caught:
            decode_entry(bytes(line), FIRST.head)
        assert "audit" in caught.value.place


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_an_entry_or_a_told_error(data):
    with pytest.raises(CheckpointCorruptError):
        decode_entry(data, None)


@given(
    st.dictionaries(
        st.sampled_from(["id", "seq", "ts", "type", "session", "outcome", "prev_hash", "data", "clock"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | TEXT
        | st.lists(TEXT, max_size=2)
        | st.dictionaries(TEXT, TEXT, max_size=2),
    )
)
def test_any_fields_under_a_right_hash_are_an_entry_or_a_told_error(fields):
    try:
        decode_entry(rehashed(json.loads(SECOND.data) | fields), FIRST.head)
    except CheckpointCorruptError as fault:
        assert fault.place


BAD_FACTS = [
    {"payload": COMMITMENT},
    {"Name": 1},
    {"": 1},
    {5: 1},
    {"deep": [1]},
    {"float": 1.5},
    {"none": None},
    {"long": "x" * 513},
    {f"f{at}": at for at in range(17)},
]


@pytest.mark.parametrize("facts", BAD_FACTS, ids=lambda facts: str(facts)[:30])
def test_facts_are_references_and_nothing_else(facts):
    with pytest.raises(UnstorableValueError, match="no plain references"):
        encode_entry(replace(DECISION, facts=facts), FIRST.head)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "lower"},
        {"outcome": "fine"},
        {"agent": ""},
        {"payload": "sha256:1"},
        {"actor": "x" * 513},
    ],
    ids=str,
)
def test_what_could_not_be_read_back_is_not_written(fields):
    with pytest.raises(InvalidStateError, match="cannot be written"):
        encode_entry(replace(DECISION, **fields), FIRST.head)


class Lookalike(str):
    """Equal to a text, and none that a line may hold."""


@pytest.mark.parametrize("agent", [Lookalike("planner"), ["planner"], 7], ids=repr)
def test_what_only_equals_a_name_that_was_written_is_refused(agent):
    encode_entry(replace(DECISION, agent="planner"), FIRST.head)
    with pytest.raises(InvalidStateError, match="'agent' is no short text"):
        encode_entry(replace(DECISION, agent=agent), FIRST.head)


def test_a_line_fits_into_a_bundle_of_the_log():
    facts = {f"f{at}": "\U0001f600" * 512 for at in range(16)}
    assert len(encode_entry(replace(DECISION, facts=facts), FIRST.head).data) < 2**16
    # A control character takes six bytes in JSON.
    longest = "\x01" * 512
    names = {
        "id": longest,
        "agent": longest,
        "actor": longest,
        "workflow_id": longest,
        "correlation_id": longest,
        "session_id": longest,
    }
    with pytest.raises(UnstorableValueError, match="bytes, more than 65535"):
        encode_entry(
            replace(DECISION, facts=dict.fromkeys(facts, longest), **names),
            replace(FIRST.head, session_id=longest),
        )
    with pytest.raises(UnstorableValueError):
        encode_entry(replace(DECISION, agent="\ud800"), FIRST.head)


def test_a_bad_line_is_named_by_what_it_claims_and_prints_nothing_strange():
    assert place_of(SECOND.data) == "audit entry 2 (AE-002) of session 's-1'"
    assert place_of(b'{"id":"\x1b[31m","seq":2,') == "an audit line without id and sequence"
    assert place_of(b"") == "an audit line without id and sequence"


def test_following_is_checked_by_itself_too():
    check_follows(read_fields(SECOND.data), FIRST.head)
    with pytest.raises(CheckpointError):
        check_follows(read_fields(SECOND.data), TrailHead("s-1", 1, GENESIS))
