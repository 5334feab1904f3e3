import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, UnstorableValueError
from holdfast.domain.event import Event, chain_hash, decode_event, encode_event, encode_pointer
from holdfast.domain.ids import GENESIS

NOW = datetime(2026, 1, 11, 14, 10, tzinfo=UTC)
EVENT = Event(
    seq=4,
    timestamp=NOW,
    type="TASK_ASSIGNED",
    workflow_id="WF-2026-001",
    agent="worker-1",
    step_id="s-4",
    parent_id="s-1",
    cp_seq=1,
    cost={"tokens": 100, "usd": 0.002},
    data={"task": "TASK-001"},
)

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXT, PLAIN, max_size=3).filter(lambda value: "$hf" not in value)
EVENTS = st.builds(
    Event,
    seq=st.integers(1, 2**53),
    timestamp=st.datetimes(timezones=st.just(UTC)),
    type=TEXT,
    workflow_id=TEXT,
    agent=st.none() | TEXT,
    step_id=st.none() | TEXT,
    parent_id=st.none() | TEXT,
    cp_seq=st.none() | st.integers(1, 2**53),
    cost=st.none() | OBJECTS,
    data=OBJECTS,
)


def test_the_line_is_the_one_of_the_format():
    record = encode_event(EVENT, GENESIS)
    assert record.data == (
        b'{"seq":4,"ts":"2026-01-11T14:10:00.000000Z","type":"TASK_ASSIGNED","wf":"WF-2026-001",'
        b'"agent":"worker-1","step_id":"s-4","parent_id":"s-1","cp_seq":1,"cost":{"tokens":100,"usd":0.002},'
        b'"data":{"task":"TASK-001"},"hash":"' + record.hash.encode() + b'"}\n'
    )
    assert (record.seq, record.timestamp) == (4, "2026-01-11T14:10:00.000000Z")


def test_the_hash_can_be_computed_with_other_tools():
    record = encode_event(EVENT, "sha256:before")
    emptied = record.data.replace(record.hash.encode(), b"")
    assert record.hash == "sha256:" + hashlib.sha256(b"sha256:before\n" + emptied).hexdigest()


def test_fields_without_a_value_are_left_out():
    fields = json.loads(encode_event(Event(1, NOW, "WORKFLOW_STARTED", "WF"), GENESIS).data)
    assert list(fields) == ["seq", "ts", "type", "wf", "data", "hash"]


@given(EVENTS)
def test_the_line_is_what_the_encoder_makes_of_its_fields(event):
    line = encode_event(event, GENESIS).data
    assert plainjson.dumps(plainjson.loads(line)) + b"\n" == line


def test_a_name_that_cannot_be_stored_is_refused():
    with pytest.raises(UnstorableValueError, match="surrogates"):
        encode_event(replace(EVENT, agent="\ud800"), GENESIS)


@given(EVENTS, TEXT)
def test_an_event_survives_the_round_trip(event, previous_hash):
    record = encode_event(event, previous_hash)
    expected = replace(event, hash=record.hash)
    assert decode_event(record.data, previous_hash) == expected
    assert decode_event(record.data.removesuffix(b"\n"), previous_hash) == expected
    assert decode_event(record.data, None) == expected


@given(TEXT, st.none() | TEXT, st.integers(1, 2**53), st.integers(1, 2**53), TEXT)
def test_what_only_points_to_a_checkpoint_is_written_as_any_event(workflow_id, agent, seq, cp_seq, previous):
    event = Event(seq, NOW, "CHECKPOINT_CREATED", workflow_id, agent, cp_seq=cp_seq)
    written = encode_event(event, previous)
    named = "CHECKPOINT_CREATED", workflow_id, agent
    assert encode_pointer(*named, seq, written.timestamp, cp_seq, previous) == written


def test_what_only_points_to_a_checkpoint_has_no_lone_surrogates_either():
    with pytest.raises(UnstorableValueError):
        encode_pointer("CHECKPOINT_CREATED", "\ud800", None, 1, "2026-01-11T14:10:00.000000Z", 1, GENESIS)


@given(EVENTS, st.data())
def test_any_flipped_byte_is_found(event, data):
    line = encode_event(event, GENESIS).data
    place = data.draw(st.integers(0, len(line) - 1))
    flipped = line[place] ^ data.draw(st.integers(1, 255))
    with pytest.raises(ChecksumMismatchError):
        decode_event(line[:place] + bytes([flipped]) + line[place + 1 :], GENESIS)


@given(EVENTS, st.data())
def test_a_torn_line_is_found(event, data):
    line = encode_event(event, GENESIS).data
    length = data.draw(st.integers(0, len(line) - 2))
    with pytest.raises(ChecksumMismatchError):
        decode_event(line[:length], GENESIS)


@given(st.lists(EVENTS, min_size=2, max_size=6), st.data())
def test_a_missing_or_exchanged_event_breaks_the_chain(events, data):
    lines, previous = [], GENESIS
    for seq, event in enumerate(events, start=1):
        record = encode_event(replace(event, seq=seq), previous)
        lines.append(record.data)
        previous = record.hash
    gap = data.draw(st.integers(0, len(lines) - 2))
    before = GENESIS if gap == 0 else decode_event(lines[gap - 1], None).hash
    with pytest.raises(ChecksumMismatchError, match=f"event {gap + 2}"):
        decode_event(lines[gap + 1], before)


def test_a_mismatch_names_the_event():
    line = encode_event(EVENT, GENESIS).data.replace(b"TASK-001", b"TASK-002")
    with pytest.raises(ChecksumMismatchError, match="event 4"):
        decode_event(line, GENESIS)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b'{"seq":1}',
        b'{"seq":true,"ts":"2026-01-11T14:10:00Z","type":"A","wf":"W","data":{},"hash":""}',
        b'{"seq":1,"ts":"2026-01-11T14:10:00Z","type":"A","wf":"W","data":[],"hash":""}',
        b'{"seq":1,"ts":"2026-01-11T14:10:00Z","type":"A","wf":"W","cost":3,"data":{},"hash":""}',
        b'{"seq":1,"ts":"noon","type":"A","wf":"W","data":{},"hash":""}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_event_is_refused_even_unchecked(line):
    with pytest.raises(CheckpointCorruptError):
        decode_event(line, None)


def test_a_rightly_hashed_line_that_is_no_event_is_refused():
    unhashed = b'{"seq":9,"hash":""}\n'
    line = unhashed[:-3] + chain_hash(GENESIS, unhashed).encode() + unhashed[-3:]
    with pytest.raises(CheckpointCorruptError, match="event 9"):
        decode_event(line, GENESIS)
