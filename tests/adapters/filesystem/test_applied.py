"""What was applied and is not synced yet: its files, where it begins and ends, what may leave no trace."""

from __future__ import annotations

from holdfast.adapters.filesystem.applied import Applied
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.overlay import Pending

WRITTEN = Operation(Kind.WRITE, "checkpoints/f", 0, b"x")
KEY_GONE = Operation(Kind.UNLINK, "keys/k")


def frame(number, *operations):
    return Pending(8 * number, 8 * number + 8, b"%d" % number, b"%d" % (number + 1), list(operations))


def test_frames_add_up_to_their_files_and_the_last_position():
    applied = Applied((0, b"0"))
    assert applied.start == applied.end == (0, b"0")
    for pending in (frame(0, WRITTEN), frame(1, WRITTEN, Operation(Kind.WRITE, "g"))):
        applied.add(pending, pending.operations)
    assert (applied.start, applied.end) == ((0, b"0"), (16, b"2"))
    assert applied.paths == {"checkpoints/f", "g"}
    assert applied.final is None


def test_the_last_frame_that_leaves_no_trace_is_remembered_by_where_it_begins():
    applied = Applied((0, b"0"))
    for pending in (frame(0, KEY_GONE), frame(1, WRITTEN, KEY_GONE), frame(2, WRITTEN)):
        applied.add(pending, pending.operations)
    assert applied.final == (8, b"1")
