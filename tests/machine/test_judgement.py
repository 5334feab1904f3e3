"""What the harnesses judge by, tried without a machine: states of a log, histories, what is missing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.quick_calls import quick_calls
from tests.campaign import Done, Ledger, harness_results, write_result
from tests.machine import contenders
from tests.machine.block_device import Entry
from tests.machine.block_states import SECTOR_BYTES, Recorded, states
from tests.machine.outcome import Harness, Order, Outcome
from tests.machine.subjects import UnsyncedDisk
from tests.machine.tracing import Fault, Traced, faults_for

FLUSH = Entry(-1, b"")


def page(number: int, mark: bytes) -> Entry:
    return Entry(number * SECTOR_BYTES, mark * SECTOR_BYTES)


def test_what_was_flushed_is_in_every_state_and_what_was_not_yet_written_in_none() -> None:
    log = [page(0, b"a"), FLUSH, page(1, b"b"), page(2, b"c"), FLUSH, page(3, b"d")]
    recorded = Recorded(bytes(4 * SECTOR_BYTES), log, [])
    seen = set()
    for count, way, image in states(recorded, [1, 2, 3, 4, 4, 4, 4, 5, 6], random.Random(1)):
        marks = bytes(image[n * SECTOR_BYTES] for n in range(4))
        seen.add((count, marks))
        if count >= 2:
            assert marks[:1] == b"a"
        if count >= 5:
            assert marks[1:3] == b"bc"
        assert count > 5 or marks[3:] == b"\0"
        assert way != "prefix" or marks.count(0) == 4 - sum(not one.is_flush for one in log[:count])
    assert len(seen) > 6


def test_only_what_had_been_told_by_then_is_asked_for() -> None:
    lines = [(3, "ack WF-0 1 aa"), (7, "ack WF-0 2 bb")]
    recorded = Recorded(b"", [], lines)
    assert [recorded.told_at(count).count for count in (2, 3, 6, 7)] == [0, 1, 1, 2]


def done(word: str, sequence: int, token: int, began: int, ended: int) -> contenders.Done:
    return contenders.Done(word, sequence, token, began, ended)


def test_a_history_that_a_single_thread_could_have_made_is_let_through() -> None:
    good = [done("wrote", 1, 1, 0, 5), done("read", 1, 1, 6, 7), done("wrote", 2, 2, 4, 9)]
    assert contenders._is_no_history(good) == []


def test_other_histories_are_not() -> None:
    first = done("wrote", 1, 1, 0, 5)
    for wrong in (
        done("wrote", 1, 1, 6, 7),
        done("wrote", 2, 0, 6, 7),
        done("wrote", 2, 1, -3, -2),
        done("read", 0, 1, 6, 7),
        done("read", 1, 1, -3, -2),
    ):
        assert contenders._is_no_history([first, wrong]) != []


def test_who_has_the_older_lease_must_not_begin_to_write_once_the_newer_one_was_given() -> None:
    newer = done("holds", 2, 2, 3, 6)
    assert contenders._is_no_history([newer, done("wrote", 1, 1, 5, 9)]) == []
    assert contenders._is_no_history([newer, done("wrote", 1, 1, 7, 9)]) != []


def test_calls_are_numbered_by_kind_and_only_those_on_the_store_are_hurt() -> None:
    log = [
        '7 write(1<pipe:[9]>, ""..., 3) = 3',
        '7 write(5</place/store>, ""..., 3) = 3',
        "7 fdatasync(5</place/store>) = 0",
        "7 fdatasync(6</elsewhere>) = -1 EIO (Input/output error) (INJECTED)",
    ]
    seen = Traced(0, [], log, "")
    calls = seen.calls_below("/place")
    assert calls == [("write", 2), ("fdatasync", 1)]
    assert not seen.was_hit(Fault("fdatasync", 2, "EIO"), "/place")
    assert {str(fault) for fault in faults_for(calls[:1])} == {
        "EIO at write 2",
        "KILL at write 2",
        "ENOSPC at write 2",
    }


def test_what_a_commit_asks_of_the_system_is_watched_the_wish_to_hurry_too() -> None:
    log = [
        '7 pwrite64(5</place/store/journal/ring-000001>, ""..., 3, 0) = 3',
        "7 sync_file_range(5</place/store/journal/ring-000001>, 0, 3, SYNC_FILE_RANGE_WRITE) = 0",
        "7 fdatasync(5</place/store/journal/ring-000001>) = 0",
    ]
    calls = Traced(0, [], log, "").calls_below("/place")
    assert calls == [("pwrite64", 1), ("sync_file_range", 1), ("fdatasync", 1)]
    assert {fault.what for fault in faults_for(calls[1:2])} == {"EIO", "ENOSPC", "KILL"}


def test_what_is_never_synced_is_not_hurried_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a power cut may find it on the device, and the control is weaker than it was."""
    hurried: list[int] = []
    monkeypatch.setattr(quick_calls(), "hurry", lambda handle, *_: hurried.append(handle))
    disks = Disk(str(tmp_path)), UnsyncedDisk(str(tmp_path))
    handles = [disk.open("ring", write=True, create=True) for disk in disks]
    for disk, handle in zip(disks, handles, strict=True):
        disk.overwrite(handle, b"frame", 3)
        assert disk.read(handle, 9, 0) == b"\0\0\0frame"
        disk.close(handle)
    assert hurried == handles[:1]


def test_what_a_machine_does_not_have_is_named() -> None:
    wanted = {"programs": ("no-such-program",), "modules": ("no_module",), "paths": ("/no/path",)}
    harness = Harness("it", ("files",), lambda order: Outcome("it", order), **wanted, needs_root=False)
    said = harness.missing()
    assert all(name in said for names in wanted.values() for name in names)
    assert Outcome("it", Order("files", 1, 1)).told(said)["not_run"] == said


def about(*, is_control: bool, is_red: bool = False, not_run: str = "") -> dict[str, object]:
    kept = {"harness": "cuts", "store": "files", "seed": 1, "acknowledged": 5, "counts": {"early": 2}}
    return {**kept, "is_control": is_control, "is_red": is_red, "not_run": not_run}


def test_the_result_adds_parts_up_and_puts_the_control_beside_them(tmp_path: Path) -> None:
    parts = [Done(f"part{n}", "passed", 1.5, 10, about=about(is_control=False)) for n in range(2)]
    control = Done("control", "passed", 1.0, 0, about=about(is_control=True, is_red=True))
    [told] = harness_results([*parts, control], "tree")
    assert (told["cases"], told["acknowledged"], told["counts"]["early"]) == (20, 10, 4)
    assert (told["control"], told["seconds"], told["violations"]) == ("red", 4.0, 0)
    green = Done("control", "passed", 1.0, 0, about=about(is_control=True))
    assert harness_results([*parts, green], "tree")[0]["control"] == "not red"
    ledger = Ledger(tmp_path / "campaign", "tree")
    write_result(ledger, ["control"], [control])
    assert '"harness": "cuts"' in (tmp_path / "campaign" / "result.json").read_text()


def test_what_could_not_run_is_told_and_tried_again() -> None:
    absent = Done("part1", "not run", 0.1, about=about(is_control=False, not_run="no XFS"))
    assert not absent.is_over
    [told] = harness_results([absent], "tree")
    assert told["not_run"] == "no XFS" and told["control"] == "not run"
