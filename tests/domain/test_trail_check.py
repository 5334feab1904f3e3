from dataclasses import replace
from datetime import timedelta

import pytest

from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.trail import decode_entry, encode_entry, head_after, read_fields
from holdfast.domain.trail_check import FAULTS_MAX, Fault, Faults, Kind, verify_session
from tests.trails import NOW, make_log

LOG = make_log(6, (), sessions=1, closes=[5])
LINES = LOG.lines


def check(lines):
    return verify_session(lines, "s-0")


def flipped(line, bit):
    changed = bytearray(line)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_sound_trail_is_found_sound():
    report = verify_session(iter(LINES), "s-0", lambda session_id, seq: LOG.payloads.get((session_id, seq)))
    assert report.is_sound and report.first_fault is None
    assert (report.entries, report.payloads, report.erased, report.clock_steps) == (6, 3, 0, 0)
    assert report.head.seq == 6 and report.head.closed


def test_a_trail_without_entries_is_sound_and_empty():
    assert check([]).head == TrailHead("s-0")
    assert check([]).is_sound


@pytest.mark.sweep
@pytest.mark.parametrize("index", range(6))
def test_every_bit_that_is_flipped_is_found_at_its_entry(index):
    line = LINES[index]
    for bit in range(len(line) * 8):
        # The lines before are right, which another test shows: they need not be read each time.
        report = check([*LINES[:index], flipped(line, bit), *LINES[index + 1 : index + 2]])
        assert report.first_fault is not None
        assert report.first_fault.kind == Kind.ENTRY and report.first_fault.index == index


PAIRS = [(first, second) for second in range(6) for first in range(second)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_that_is_swapped_is_found_at_the_first(first, second):
    lines = list(LINES)
    lines[first], lines[second] = lines[second], lines[first]
    fault = check(lines).first_fault
    assert fault is not None
    assert (fault.index, fault.seq, fault.session_id) == (first, second + 1, "s-0")
    assert f"entry {first + 1} should stand here" in fault.problem or "begins with" in fault.problem


@pytest.mark.parametrize("index", range(5))
def test_every_entry_that_is_deleted_is_found_where_it_was(index):
    report = check([*LINES[:index], *LINES[index + 1 :]])
    assert report.first_fault is not None
    assert report.first_fault.index == index
    assert f"entry {index + 1} should stand here, not entry {index + 2}" in report.first_fault.problem
    assert report.fault_count == 1


@pytest.mark.parametrize("index", range(6))
def test_every_entry_that_is_written_twice_is_found(index):
    fault = check([*LINES[: index + 1], *LINES[index:]]).first_fault
    assert fault is not None and fault.index == index + 1


@pytest.mark.parametrize("length", range(6))
def test_a_tail_that_is_cut_off_is_beyond_what_a_chain_shows_and_the_report_says_how_far_it_goes(length):
    report = check(LINES[:length])
    assert report.is_sound
    assert report.entries == report.head.seq == length
    assert not report.head.closed


@pytest.mark.parametrize("cut", [1, 7, 200])
def test_a_line_that_is_cut_off_is_found(cut):
    fault = check([*LINES[:3], LINES[3][:-cut]]).first_fault
    assert fault is not None and fault.index == 3


def test_entries_of_another_session_do_not_belong():
    other = make_log(4, (), sessions=2).lines
    fault = verify_session([other[0], other[1]], "s-0").first_fault
    assert fault is not None and (fault.index, fault.session_id) == (1, "s-1")
    fault = verify_session(LINES, "s-1").first_fault
    assert fault is not None and fault.index == 0


def test_a_payload_that_was_changed_is_found_and_one_that_was_erased_is_counted():
    payloads = {place: payload for (_, place), payload in LOG.payloads.items()}
    changed, erased, *_ = sorted(payloads)
    payloads[changed] += b" "
    del payloads[erased]
    report = verify_session(LINES, "s-0", lambda session_id, seq: payloads.get(seq))
    assert (report.payloads, report.erased) == (1, 1)
    [fault] = report.faults
    assert (fault.kind, fault.seq) == (Kind.PAYLOAD, changed)
    assert str(fault).startswith("a payload is not the one that was committed to: payload of audit entry")


def test_of_very_many_faults_the_first_are_kept_and_all_are_counted():
    faults = Faults()
    for index in (*range(400, 501), None, *range(399, 0, -1)):
        faults.add(Fault(Kind.ENTRY, "wrong", "somewhere", index))
    assert faults.counts.total() == 501
    assert [fault.index for fault in faults.kept()] == list(range(1, FAULTS_MAX + 1))
    assert faults.has(Kind.ENTRY) and not faults.has(Kind.TILE, Kind.HEAD)


def test_a_clock_that_stepped_back_is_counted():
    first = LINES[0]
    head = head_after(read_fields(first))
    back = encode_entry(replace(decode_entry(LINES[1], head), timestamp=NOW - timedelta(days=10)), head)
    report = check([first, back.data])
    assert report.is_sound and report.clock_steps == 1


def test_a_trail_is_read_as_it_comes():
    read = []

    def lines():
        for number, line in enumerate(LINES):
            read.append(number)
            yield line

    assert check(lines()).entries == len(read) == 6
