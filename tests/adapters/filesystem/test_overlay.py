"""The overlay: readers see files as they will be, whatever has been applied so far."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import HEADER_BYTES, Frame, Kind, Operation
from holdfast.adapters.filesystem.overlay import Files, Overlay


def frame(end):
    return Frame(end - HEADER_BYTES, 0, 1, b"", b"d%d" % end, b"")


@pytest.fixture
def disk(tmp_path):
    return Disk(str(tmp_path))


def operations():
    write = st.builds(
        Operation, st.just(Kind.WRITE), st.just("a/f"), st.integers(0, 30), st.binary(min_size=1, max_size=20)
    )
    whole = st.builds(Operation, st.just(Kind.REPLACE), st.just("a/f"), st.just(0), st.binary(max_size=20))
    return st.lists(st.one_of(write, whole, st.just(Operation(Kind.UNLINK, "a/f"))), min_size=1, max_size=6)


@pytest.mark.sweep
@settings(max_examples=150)
@given(operations(), st.integers(0, 6), st.integers(0, 25), st.none() | st.integers(0, 25))
def test_laid_over_equals_applied(tmp_path_factory, listed, applied, offset, length):
    reference, partly = (Disk(str(tmp_path_factory.mktemp(n))) for n in ("whole", "part"))
    Applier(reference).apply(listed)
    Applier(partly).apply(listed[:applied])
    overlay = Overlay()
    for index, operation in enumerate(listed):
        overlay.add(frame(8 * index + 8), [operation])
    seen, truth = Files(partly, overlay), Files(reference, Overlay())
    assert seen.size("a/f") == truth.size("a/f")
    assert seen.read("a/f") == truth.read("a/f")
    assert seen.read("a/f", offset, length) == truth.read("a/f", offset, length)
    assert seen.list_folder("a") == truth.list_folder("a")


def growths():
    return st.lists(st.binary(max_size=9), min_size=1, max_size=8)


@pytest.mark.sweep
@settings(max_examples=150)
@given(growths(), st.integers(0, 8), st.integers(0, 40), st.none() | st.integers(0, 40))
def test_of_a_file_that_only_grows_any_window_is_seen(tmp_path_factory, added, applied, offset, length):
    disk = Disk(str(tmp_path_factory.mktemp("grown")))
    overlay, end = Overlay(), 0
    for index, data in enumerate(added):
        operation = Operation(Kind.WRITE, "f", end, data)
        if index < applied:
            Applier(disk).apply([operation])
        overlay.add(frame(8 * index + 8), [operation])
        end = operation.end
    # What the files hold by now may have been forgotten, or not yet.
    overlay.drop(8 * (applied // 2))
    seen, whole = Files(disk, overlay), b"".join(added)
    assert (seen.size("f"), seen.read("f")) == (len(whole), whole)
    assert seen.read("f", offset, length) == whole[offset : None if length is None else offset + length]


def test_dropping_forgets_only_what_the_files_hold(disk):
    overlay = Overlay()
    overlay.add(frame(8), [Operation(Kind.WRITE, "f", 0, b"one")])
    overlay.add(frame(16), [Operation(Kind.WRITE, "f", 3, b"two")])
    overlay.drop(8)
    assert [operation.data for operation in overlay.of("f")] == [b"two"]
    assert [pending.end for pending in overlay.through(16)] == [16]
    overlay.renew([(frame(24), [Operation(Kind.WRITE, "g", 0, b"three")])])
    assert overlay.paths() == ["g"] and [pending.end for pending in overlay.through(24)] == [24]
    overlay.renew(())
    assert overlay.paths() == [] and overlay.through(24) == []


def test_folders_of_pending_files_are_listed(disk):
    overlay = Overlay()
    overlay.add(frame(8), [Operation(Kind.WRITE, "checkpoints/ab/wf/manifest.jsonl", 0, b"x")])
    files = Files(disk, overlay)
    assert files.list_folders("checkpoints") == ["ab"]
    assert files.list_folders("checkpoints/ab") == ["wf"]
    assert files.list_folder("checkpoints/ab/wf") == ["manifest.jsonl"]


def test_a_file_that_is_not_there_is_none(disk):
    files = Files(disk, Overlay())
    assert files.read("nope") is None and files.size("nope") is None and files.list_folder("nope") == []


def test_what_is_dropped_before_anybody_asked_for_it_leaves_the_rest_to_be_found(disk):
    overlay = Overlay()
    for number in range(4):
        overlay.add(frame(8 * number + 8), [Operation(Kind.WRITE, "f", number, b"%d" % number)])
        if number == 1:
            assert len(overlay.of("f")) == 2
    drops = overlay.version("g")[0]
    overlay.drop(24)
    assert [operation.data for operation in overlay.of("f")] == [b"3"]
    assert overlay.version("f")[0] == drops + 1
    overlay.add(frame(40), [Operation(Kind.WRITE, "g", 0, b"x")])
    assert [pending.end for pending in overlay.through(40)] == [32, 40]
    overlay.drop(40)
    assert overlay.paths() == [] and overlay.through(40) == []
