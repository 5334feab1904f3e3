import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.log_check import Level, LogSource, Trust, Verdict, verify_log
from holdfast.domain.merkle import EMPTY_ROOT, leaf_hash, root_of
from holdfast.domain.note import COSIGNATURE, Note, parse_note, sign_text
from holdfast.domain.tiles import TreeEdge
from holdfast.domain.trail import decode_entry, encode_entry
from holdfast.domain.trail_check import Fault, Kind
from holdfast.domain.treehead import TreeHead
from tests.trails import (
    EVERYTHING,
    KEY_ONLY,
    LOG_KEY,
    ORIGIN,
    WITNESS_KEY,
    Log,
    make_log,
    signed_head,
)

LOG = make_log(12, (4, 8, 10), waiting=2, closes=[11])
PINNED = Trust(verify, (LOG_KEY.key,), pins=(LOG.pin(-1),))
NOBODY = Trust(verify)


def failed(log: Log, trust: Trust = KEY_ONLY):
    report = log.check(trust)
    assert report.verdict() == Verdict.FAILED
    assert report.first_fault is not None
    return report.first_fault


def cut(log: Log, size: int, *, heads: int) -> Log:
    """Put a log back: fewer entries, fewer heads, and the tiles to go with it."""
    smaller = make_log(size, (), closes=[11])
    return replace(log, lines=log.lines[:size], waiting=[], heads=log.heads[:heads], tiles=smaller.tiles)


@pytest.mark.parametrize(
    ("trust", "level", "covered"),
    [
        (NOBODY, Level.CHAIN, (0, 0, 0)),
        (KEY_ONLY, Level.SIGNED, (10, 0, 0)),
        (PINNED, Level.PINNED, (10, 10, 0)),
        (EVERYTHING, Level.WITNESSED, (10, 0, 10)),
    ],
)
def test_the_level_is_what_the_evidence_carries(trust, level, covered):
    report = LOG.check(trust)
    assert report.level == level
    assert (report.signed_size, report.pinned_size, report.witnessed_size) == covered
    assert report.verdict(level) == Verdict.OK
    if level < Level.WITNESSED:
        assert report.verdict(Level(level + 1)) == Verdict.INCONCLUSIVE


def test_the_report_tells_everything_there_is():
    report = LOG.check()
    assert report.head == TreeHead(ORIGIN, 12, report.head.root)
    assert (report.entries, report.waiting, report.tail) == (14, 2, 4)
    assert report.tail_since == "2026-01-11T14:00:10.000000Z"
    assert (report.sessions, report.open_sessions) == (2, 2)
    assert (report.heads, report.tiles, report.missing_tiles) == (3, 4, 0)
    assert (report.payloads, report.erased, report.clock_steps) == (6, 0, 0)
    assert (report.fault_count, report.faults, report.first_fault) == (0, (), None)
    assert [level.label for level in Level] == ["none", "chain", "signed head", "pinned head", "witness"]


def test_what_nobody_vouches_for_is_all_tail():
    report = LOG.check(NOBODY)
    assert (report.tail, report.tail_since) == (14, "2026-01-11T14:00:00.000000Z")
    report = make_log(4, (4,), waiting=1).check()
    assert (report.tail, report.tail_since) == (1, "2026-01-11T14:00:04.000000Z")
    report = make_log(4, (4,)).check()
    assert (report.tail, report.tail_since) == (0, "")


def test_an_empty_log_is_sound():
    report = verify_log(LogSource([], heads=[signed_head(0, EMPTY_ROOT)]), EVERYTHING)
    assert (report.verdict(), report.level, report.head.root) == (Verdict.OK, Level.WITNESSED, EMPTY_ROOT)


@pytest.mark.parametrize("sizes", [(256,), (255, 256, 257), (100, 300, 600)])
def test_a_log_of_many_tiles_is_verified(sizes):
    log = make_log(600, sizes, sessions=7)
    report = log.check()
    assert (report.verdict(), report.signed_size, report.heads) == (Verdict.OK, sizes[-1], len(sizes))
    assert report.missing_tiles == 0


@pytest.mark.parametrize("index", [0, 255, 256, 511, 512, 598])
def test_a_change_in_a_log_of_many_tiles_is_found_at_its_entry(index):
    log = make_log(600, (300, 599), sessions=7)
    fault = failed(log.with_line(index, log.lines[index].replace(b"planner", b"planned")))
    assert (fault.kind, fault.index) == (Kind.ENTRY, index)


def made_anew(log: Log, index: int) -> Log:
    """Change an entry and every hash after it, tiles included: all that one can do without the key."""
    trails: dict[str, TrailHead] = {}
    lines = []
    for at, line in enumerate([*log.lines, *log.waiting]):
        found = decode_entry(line, None)
        head = trails.get(found.session_id) or TrailHead(found.session_id)
        record = encode_entry(replace(found, actor="svc-8") if at == index else found, head)
        trails[found.session_id] = record.head
        lines.append(record.data)
    edge = TreeEdge()
    tiles: dict[str, bytes] = {}
    for size in (4, 8, 10, 12):
        leaves = [leaf_hash(line) for line in lines[edge.size : size]]
        tiles.update((tile.path, data) for tile, data in edge.append(leaves))
    return replace(log, lines=lines[:12], waiting=lines[12:], tiles=tiles)


@pytest.mark.parametrize("index", range(12))
def test_a_trail_made_anew_from_some_entry_on_is_found_by_the_signed_heads_and_by_nothing_less(index):
    forged = made_anew(LOG, index)
    assert replace(forged, heads=[]).check(KEY_ONLY).verdict() == Verdict.OK
    if index >= 10:
        # Behind the last signed head nobody vouches for it, and the report says so.
        report = forged.check(KEY_ONLY)
        assert (report.verdict(), report.tail) == (Verdict.OK, 4)
        return
    fault = failed(forged)
    good_size = max(size for size in (0, 4, 8) if size <= index)
    assert fault.kind == Kind.HEAD
    assert f"look from entry {good_size} on" in fault.problem
    assert failed(replace(forged, tiles=LOG.tiles)).index == index


@pytest.mark.parametrize("index", range(12))
def test_every_entry_that_is_deleted_is_found_where_it_was(index):
    lines = [*LOG.lines[:index], *LOG.lines[index + 1 :]]
    # Behind the last head, only waiting entries of the same session or the tile show it.
    assert failed(replace(LOG, lines=lines)).index in (
        (index,) if index < 10 else (index, index + 1, index + 2)
    )


@pytest.mark.parametrize("index", range(12))
def test_every_entry_that_is_not_there_is_named(index):
    lines: list[bytes | None] = [*LOG.lines]
    lines[index] = None
    report = verify_log(LogSource(lines, heads=LOG.heads), KEY_ONLY)
    assert report.first_fault is not None
    assert (report.first_fault.index, report.first_fault.problem) == (index, "an audit entry is not there")
    assert report.level == Level.NONE


PAIRS = [(first, second) for second in range(12) for first in range(second)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_that_is_swapped_is_found_at_the_first(first, second):
    lines = list(LOG.lines)
    lines[first], lines[second] = lines[second], lines[first]
    fault = failed(replace(LOG, lines=lines))
    assert fault.index == first


@pytest.mark.parametrize(("first", "second"), [(first, first + 1) for first in range(9)])
def test_two_neighbours_of_different_sessions_that_change_places_are_found_by_the_heads_alone(first, second):
    """Both chains stay as they were: only the tree knows the order."""
    lines = list(LOG.lines)
    lines[first], lines[second] = lines[second], lines[first]
    log = replace(LOG, lines=lines, tiles={})
    assert log.check(NOBODY).faults[0].kind == Kind.HEAD
    fault = failed(log)
    assert (fault.kind, fault.index) == (Kind.HEAD, None)
    assert "the entries are not those it was made for" in fault.problem
    assert replace(log, heads=[]).check(KEY_ONLY).verdict() == Verdict.OK


@pytest.mark.parametrize("size", range(12))
def test_a_tail_that_is_cut_off_below_the_last_head_is_found_by_that_head(size):
    report = cut(LOG, size, heads=3).check(KEY_ONLY)
    if size >= 10:
        assert report.verdict(Level.SIGNED) == Verdict.OK
        assert report.tail == size - 10
        return
    assert report.verdict() == Verdict.FAILED
    # The chain is whole as far as it goes.
    assert report.level == Level.CHAIN
    fault = report.first_fault
    assert fault is not None
    assert (fault.kind, fault.index) == (Kind.HEAD, size)
    assert f"entries {size} to " in fault.problem


@pytest.mark.parametrize(("size", "heads"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (9, 2)])
def test_a_log_put_back_to_an_older_state_is_found_by_the_pin_and_by_nothing_less(size, heads):
    older = cut(LOG, size, heads=heads)
    assert older.check(KEY_ONLY).verdict() == Verdict.OK
    report = older.check(PINNED)
    assert report.verdict() == Verdict.FAILED
    assert report.level == (Level.SIGNED if heads else Level.CHAIN)
    fault = report.first_fault
    assert fault is not None
    assert (fault.kind, fault.index, fault.place) == (Kind.PIN, size, "pinned head of size 10")


def test_a_log_that_shows_others_something_else_is_found_by_the_pin():
    other = make_log(12, (4, 8, 10), sessions=3)
    assert other.check(KEY_ONLY).verdict() == Verdict.OK
    report = other.check(PINNED)
    assert report.verdict() == Verdict.FAILED
    assert {fault.kind for fault in report.faults} == {Kind.PIN}


def test_a_witness_that_did_not_sign_is_no_witness():
    unwitnessed = [signed_head(pin.size, pin.root, witnessed=False) for pin in map(LOG.pin, range(3))]
    report = replace(LOG, heads=unwitnessed).check()
    assert (report.level, report.witnessed_size) == (Level.SIGNED, 0)
    assert report.verdict(Level.WITNESSED) == Verdict.INCONCLUSIVE
    report = replace(LOG, heads=[*LOG.heads[:1], *unwitnessed[1:]]).check()
    assert (report.level, report.witnessed_size, report.signed_size) == (Level.WITNESSED, 4, 10)


def test_a_quorum_counts_witnesses_and_not_names():
    second = SigningKey.generate("witness.example/w2", COSIGNATURE)
    alias = SigningKey.from_seed("witness.example/alias", bytes(range(1, 33)), COSIGNATURE)

    def witnessed_by(*signers):
        text = LOG.pin(2).text()
        lines = [sign_text(text, LOG_KEY.key, LOG_KEY.sign)]
        lines += [sign_text(text, signer.key, signer.sign, timestamp=1) for signer in signers]
        keys = (WITNESS_KEY.key, second.key, alias.key)
        trust = replace(KEY_ONLY, witness_keys=keys, quorum=2)
        return replace(LOG, heads=[Note(text, tuple(lines)).encode()]).check(trust).level

    assert witnessed_by(WITNESS_KEY) == Level.SIGNED
    assert witnessed_by(WITNESS_KEY, alias) == Level.SIGNED
    assert witnessed_by(WITNESS_KEY, second) == Level.WITNESSED


def test_heads_of_other_keys_and_other_logs_are_refused():
    stranger = SigningKey.generate(ORIGIN)
    text = LOG.pin(0).text()
    unknown = Note(text, (sign_text(text, stranger.key, stranger.sign),)).encode()
    fault = failed(replace(LOG, heads=[unknown, *LOG.heads[1:]]))
    assert "signed by no key of the log" in fault.problem and "signed head 1" in fault.place
    foreign = signed_head(4, LOG.pin(0).root, origin="example.org/other")
    assert "of another log, 'example.org/other'" in failed(replace(LOG, heads=[foreign])).problem
    # Who knows no key can say nothing of signatures, but the roots must fit all the same.
    assert replace(LOG, heads=[unknown]).check(NOBODY).level == Level.CHAIN
    wrong_pin = replace(PINNED, pins=(replace(LOG.pin(0), origin="example.org/other"),))
    assert "it is of another log" in failed(LOG, wrong_pin).problem


def test_keys_that_were_changed_are_both_known():
    second = SigningKey.generate(ORIGIN)
    text = LOG.pin(2).text()
    newer = Note(text, (sign_text(text, second.key, second.sign),)).encode()
    log = replace(LOG, heads=[*LOG.heads[:2], newer])
    report = log.check(Trust(verify, (LOG_KEY.key, second.key)))
    assert (report.verdict(Level.SIGNED), report.signed_size) == (Verdict.OK, 10)


def test_a_tile_that_is_missing_is_no_harm_and_one_that_is_wrong_is_named():
    log = make_log(300, (300,))
    tiles = dict(log.tiles)
    del tiles["tile/0/000"]
    report = replace(log, tiles=tiles).check()
    assert (report.verdict(), report.missing_tiles) == (Verdict.OK, 1)
    upper = bytearray(log.tiles["tile/1/000.p/1"])
    upper[5] ^= 1
    fault = failed(replace(log, tiles=log.tiles | {"tile/1/000.p/1": bytes(upper)}))
    assert (fault.kind, fault.place) == (Kind.TILE, "tile/1/000.p/1, hash 0")
    fault = failed(replace(log, tiles=log.tiles | {"tile/0/000": b"short"}))
    assert "5 bytes instead of 8192" in fault.problem


def test_waiting_entries_must_go_on_from_the_tree():
    fault = failed(replace(LOG, waiting=[LOG.waiting[1].replace(b"svc-7", b"svc-8")]))
    assert fault.index == 12
    assert failed(replace(LOG, waiting=[LOG.lines[0]])).index == 12


def test_a_payload_that_was_erased_leaves_everything_else_valid():
    report = replace(LOG, payloads={}).check()
    assert (report.verdict(Level.WITNESSED), report.payloads, report.erased) == (Verdict.OK, 0, 6)
    place = next(iter(LOG.payloads))
    fault = failed(replace(LOG, payloads=LOG.payloads | {place: b"other"}))
    assert (fault.kind, fault.session_id, fault.seq) == (Kind.PAYLOAD, *place)


def flips(data: bytes, *, everything: bool):
    """Flip each bit, or on other days one bit of each byte."""
    for bit in range(len(data) * 8) if everything else (8 * at + at % 8 for at in range(len(data))):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit // 8, bytes(changed)


SMALL = make_log(5, (2, 5))


@pytest.mark.sweep
@pytest.mark.parametrize("index", range(5))
def test_every_bit_flipped_in_an_entry_is_found_at_that_entry(index, campaign):
    for _, line in flips(SMALL.lines[index], everything=campaign):
        fault = failed(SMALL.with_line(index, line), EVERYTHING)
        assert (fault.kind, fault.index) == (Kind.ENTRY, index)


@pytest.mark.parametrize("path", SMALL.tiles)
def test_every_bit_flipped_in_a_tile_is_found_at_that_hash(path, campaign):
    for at, data in flips(SMALL.tiles[path], everything=campaign):
        fault = failed(replace(SMALL, tiles=SMALL.tiles | {path: data}), EVERYTHING)
        assert (fault.kind, fault.index) == (Kind.TILE, at // 32)
        assert fault.place == f"{path}, hash {at // 32}"


@pytest.mark.parametrize("number", range(2))
def test_every_bit_flipped_in_a_signed_head_is_found_at_that_head(number, campaign):
    note = parse_note(SMALL.heads[number])
    whole = Note(note.text, note.signatures[:1]).encode()
    for _, data in flips(whole, everything=campaign):
        heads = [*SMALL.heads]
        heads[number] = data
        fault = failed(replace(SMALL, heads=heads), KEY_ONLY)
        assert fault.kind == Kind.HEAD and fault.place.startswith(f"signed head {number + 1}")


def test_every_bit_flipped_in_a_cosignature_takes_the_witness_away(campaign):
    whole = SMALL.heads[1]
    start = whole.rindex("\u2014".encode())
    for at, data in flips(whole, everything=campaign):
        if at >= start:
            report = replace(SMALL, heads=[SMALL.heads[0], data]).check()
            assert report.verdict() == Verdict.FAILED or report.witnessed_size == 2


@pytest.mark.parametrize("place", SMALL.payloads)
def test_every_bit_flipped_in_a_payload_is_found_at_its_entry(place, campaign):
    for _, data in flips(SMALL.payloads[place], everything=campaign):
        fault = failed(replace(SMALL, payloads=SMALL.payloads | {place: data}))
        assert (fault.kind, fault.session_id, fault.seq) == (Kind.PAYLOAD, *place)


ANYTHING = st.binary(max_size=40) | st.sampled_from(
    [*LOG.lines, *LOG.waiting, *LOG.heads, *LOG.tiles.values()]
)


@given(
    lines=st.lists(st.none() | ANYTHING, max_size=8),
    waiting=st.lists(ANYTHING, max_size=4),
    heads=st.lists(ANYTHING, max_size=4),
    tile=st.none() | ANYTHING,
    payload=st.none() | ANYTHING,
)
def test_whatever_is_given_is_reported_and_nothing_raises(lines, waiting, heads, tile, payload):
    source = LogSource(lines, waiting, heads, lambda _: tile, lambda session_id, seq: payload)
    for trust in (NOBODY, EVERYTHING, PINNED):
        report = verify_log(source, trust)
        assert report.verdict() in Verdict
        assert report.head.size == len(lines)
        assert report.fault_count >= len(report.faults)


@given(st.data())
def test_what_is_found_right_is_what_was_signed(data):
    """However entries are taken away, moved, repeated or changed: what a head covers is covered truly."""
    lines = data.draw(st.lists(st.sampled_from(LOG.lines), max_size=14) | st.permutations(LOG.lines))
    heads = data.draw(st.lists(st.sampled_from(LOG.heads), max_size=3))
    report = replace(LOG, lines=lines, heads=heads, waiting=[]).check()
    if report.verdict(Level.SIGNED) == Verdict.OK:
        assert lines[: report.signed_size] == LOG.lines[: report.signed_size]
        assert report.signed_size > 0


def test_memory_does_not_grow_with_the_entries():
    def peak(size: int) -> int:
        head = TrailHead("s-0")
        entry = decode_entry(make_log(1, ()).lines[0], None)

        def lines() -> Iterator[bytes]:
            nonlocal head
            for _ in range(size):
                record = encode_entry(entry, head)
                head = record.head
                yield record.data

        tracemalloc.start()
        try:
            assert verify_log(LogSource(lines()), NOBODY).entries == size
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Ten times the entries: half a megabyte of lines more to read, and none of it kept.
    assert peak(2_000) < peak(200) + 100_000


def source_of(log: Log, **parts: object) -> LogSource:
    given = {"heads": log.heads, "read_tile": lambda tile: log.tiles.get(tile.path), **parts}
    return LogSource(log.lines, **given)


def test_tiles_that_were_made_for_more_give_a_cut_tail_away() -> None:
    log = make_log(20, (10,))
    report = verify_log(source_of(log, tree_size=23), KEY_ONLY)
    assert [(fault.kind, fault.index) for fault in report.faults] == [(Kind.TILE, 20)]
    assert "made for 23 entries" in str(report.first_fault)


def test_tiles_of_an_earlier_size_are_compared_there() -> None:
    log, longer = make_log(300, (280,)), make_log(310, (280,))
    tiles = {path: data for path, data in log.tiles.items() if not path.endswith(".p/24")}
    read = {"read_tile": lambda tile: tiles.get(tile.path)}
    report = verify_log(source_of(longer, tree_size=300, tree_root=log_root(log), **read), KEY_ONLY)
    assert report.fault_count == 0 and report.tiles > 1
    tiles["tile/0/001.p/44"] = bytes(44 * 32)
    report = verify_log(source_of(longer, tree_size=300, **read), KEY_ONLY)
    assert report.first_fault is not None and report.first_fault.index == 256


def log_root(log: Log) -> bytes:
    return root_of([leaf_hash(line) for line in log.lines])


def test_tiles_that_say_another_root_do_not_fit() -> None:
    log = make_log(20, (10,))
    assert verify_log(source_of(log, tree_size=20, tree_root=log_root(log)), KEY_ONLY).fault_count == 0
    report = verify_log(source_of(log, tree_size=20, tree_root=bytes(32)), KEY_ONLY)
    assert [fault.kind for fault in report.faults] == [Kind.TILE]


def test_a_session_that_knows_more_than_the_log_is_found() -> None:
    log = make_log(20, (20,))
    hash_of = json.loads(log.lines[18])["hash"]
    right = TrailHead("s-0", 10, hash_of)
    assert verify_log(source_of(log, trail_heads=[right, TrailHead("s-1", 3)]), KEY_ONLY).fault_count == 0
    for wrong in (TrailHead("s-0", 11), TrailHead("s-0", 10, "sha256:0"), TrailHead("s-7", 1)):
        report = verify_log(source_of(log, trail_heads=[wrong]), KEY_ONLY)
        assert [fault.session_id for fault in report.faults] == [wrong.session_id]


def test_what_the_reader_found_counts_and_is_asked_for_last() -> None:
    log = make_log(20, (20,))
    read: list[bytes] = []

    def lines() -> Iterator[bytes]:
        for line in log.lines:
            read.append(line)
            yield line

    def found() -> Iterator[Fault]:
        assert len(read) == 20
        yield Fault(Kind.FILE, "a view does not fit", "there")

    report = verify_log(LogSource(lines(), heads=log.heads, faults=found()), KEY_ONLY)
    assert (report.level, report.fault_count) == (Level.NONE, 1)
