"""Manifest lines: read back as written, and a wrong one is never believed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.filesystem.manifest import (
    Listed,
    Manifest,
    ManifestDamaged,
    entry_line,
    header_line,
    keyframe_line,
    parse,
    summed_line,
    transition_line,
)
from holdfast.domain.record import Entry, KeyframeEntry, Transition

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
entries = st.builds(
    Entry,
    st.integers(1, 10**6),
    text,
    text,
    text,
    text,
    parent=st.integers(0, 10**6),
    group=st.integers(0, 99),
    length=st.integers(0, 99),
    stage=st.none() | text,
    phase=st.none() | st.integers(),
    blobs=st.lists(text, max_size=2).map(tuple),
    pinned=st.booleans(),
    pruned=st.booleans(),
)


@given(entries, st.integers(0, 2**40))
def test_an_entry_is_read_back(entry, offset):
    manifest = parse(header_line("wf") + entry_line(entry, offset))
    assert manifest.entries == {entry.sequence: entry} and manifest.offsets == {entry.sequence: offset}


few = st.sampled_from([None, "a", "b"])


@given(
    st.lists(st.tuples(few, few, st.sampled_from([1, 1, 4]), st.integers(0, 3), st.booleans()), max_size=8)
)
def test_lines_that_leave_out_what_the_one_before_says_are_read_back(steps):
    lines, manifest, before, at, event_seq = [header_line("wf")], Manifest("wf"), None, 0, 0
    for sequence, (session, agent, group, events, is_odd) in enumerate(steps, start=1):
        event_seq += events
        entry = Entry(
            sequence,
            f"u{sequence}",
            "t",
            "agent_start",
            f"c{sequence}",
            sequence - 1,
            group=group,
            length=7 * sequence,
            agent=agent,
            session=session,
            event_seq=event_seq,
        )
        offset = at + is_odd
        lines.append(entry_line(entry, offset, before))
        manifest.entries[sequence], manifest.offsets[sequence] = entry, offset
        at = offset + entry.length
        before = Listed(entry, at)
    assert parse(b"".join(lines)) == manifest
    # Read piece by piece too, as a store does that follows another.
    read = parse(lines[0])
    for line in lines[1:]:
        read = parse(line, read)
    assert read == manifest
    assert parse(manifest.lines()) == manifest


@given(text, text, text, st.integers(0, 9), st.integers(0, 9), st.integers(2, 4), st.booleans())
def test_the_line_of_nearly_every_checkpoint_is_written_as_any_other(
    uuid, ts, checksum, length, size, seq, pinned
):
    before = Entry(1, "u", "t", "auto", "c", length=5, event_seq=1)
    entry = Entry(2, uuid, ts, "auto", checksum, 1, 0, length, size, event_seq=seq, pinned=pinned)
    line = entry_line(entry, 5, Listed(before, 5))
    fields = {"seq": 2, "id": uuid, "ts": ts, "checksum": checksum, "len": length, "size": size}
    fields |= {"pinned": pinned, "event_seq": seq if seq != 2 else 0}
    assert line == summed_line({key: told for key, told in fields.items() if told})


def test_a_line_that_repeats_nothing_is_no_line():
    first, second = (Entry(n, f"u{n}", "t", "x", f"c{n}", n - 1, group=1, length=9) for n in (1, 2))
    whole, short = entry_line(first, 0), entry_line(second, 9, Listed(first, 9))
    assert len(short) < len(entry_line(second, 9)) and b'"type"' not in short
    start = header_line("wf")
    assert parse(start + whole + short).entries[2] == second
    keyframe = keyframe_line(KeyframeEntry(1, "a" * 64, 7, "json"))
    for lines in (start + short, start + whole + keyframe + short, start + whole + short + short):
        with pytest.raises(ManifestDamaged):
            parse(lines)


def test_a_line_that_was_just_written_tells_what_is_known_and_only_in_its_place():
    first, second = (Entry(n, f"u{n}", "t", "x", f"c{n}", n - 1, group=1, length=9) for n in (1, 2))
    whole, short = entry_line(first, 0), entry_line(second, 9, Listed(first, 9))
    written = {whole: Listed(first, 9, line=whole), short: Listed(second, 18, line=short, before=first)}
    start, left = header_line("wf"), written.copy()
    read = parse(start + whole + short, written=left)
    assert read == parse(start + whole + short) and read.entries[2] is second and left == {}
    for lines in (start + short, start + whole + short + short):
        with pytest.raises(ManifestDamaged):
            parse(lines, written=written.copy())
    other = entry_line(replace(first, agent="another"), 0)
    assert parse(start + other + short, written=written.copy()).entries[2].agent == "another"
    moved = entry_line(first, 50)
    assert parse(start + moved + short, written=written.copy()).offsets[2] == 59


def some_manifest():
    manifest = Manifest("WF \u2028 odd")
    for sequence in (1, 2, 3):
        manifest.entries[sequence] = Entry(sequence, f"u{sequence}", "t", "agent_start", "c", sequence - 1)
        manifest.offsets[sequence] = sequence * 10
    manifest.keyframes[1] = KeyframeEntry(1, "a" * 64, 7, "json.zst", ("b" * 64,))
    return manifest


def test_a_manifest_written_anew_says_the_same():
    assert parse(some_manifest().lines()) == some_manifest()


def test_the_last_status_counts():
    lines = some_manifest().lines()
    lines += transition_line(Transition(2, "failed", 1)) + transition_line(Transition(2, "recovering", 1))
    lines += transition_line(Transition(99, "failed"))
    entry = parse(lines).entries[2]
    assert (entry.status, entry.retry_count) == ("recovering", 1)


def test_every_flipped_bit_is_found():
    lines = (
        header_line("wf") + keyframe_line(KeyframeEntry(1, "a" * 64, 7)) + transition_line(Transition(1, "x"))
    )
    for bit in range(len(lines) * 8):
        broken = bytearray(lines)
        broken[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ManifestDamaged):
            parse(bytes(broken))


def test_a_cut_line_is_found():
    lines = some_manifest().lines()
    with pytest.raises(ManifestDamaged):
        parse(lines[:-1])
    with pytest.raises(ManifestDamaged):
        parse(lines.partition(b"\n")[2])


@pytest.mark.parametrize(
    "line", [{"seq": 1}, {"seq": [], "at": 0}, {"keyframe": 1}, {"of": []}, {"pruned": 1, "groups": 2}]
)
def test_a_line_that_says_nothing_known_under_a_right_sum_is_found(line):
    with pytest.raises(ManifestDamaged):
        parse(header_line("W") + summed_line(line))


@pytest.mark.parametrize("run", [[1, 10**17], [-(10**17), 1]])
def test_a_run_of_removed_checkpoints_that_has_no_end_is_no_work(run):
    removed = {"pruned": [run], "groups": []}
    found = parse(header_line("W") + entry_line(Entry(1, "", "", "", ""), 0) + summed_line(removed))
    assert found.entries[1].pruned
