"""Every state a power cut may leave: what was acknowledged is there, the rest wholly or not at all."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import ring
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.frame import Frame
from holdfast.adapters.filesystem.journal import Journal
from holdfast.adapters.filesystem.ring import Ring
from holdfast.adapters.filesystem.trail_draft import TrailDraft
from holdfast.adapters.filesystem.trails import Trails
from tests.crash.evidence import keep
from tests.crash.explorer import Explorer
from tests.sizes import daily

NEVER = 10**9


# Names in order, or any name may be missing.
@pytest.mark.parametrize("ordered", daily([True, False], [False]))
def test_no_power_cut_loses_tears_or_invents_anything(ordered: bool, campaign: bool) -> None:
    explorer = Explorer(ordered, samples=2, repeat_every=25, nest_every=600)
    if campaign:
        explorer = Explorer(ordered, samples=60, repeat_every=10, nest_every=100)
    explorer.run()
    name = "crash_states_ordered" if ordered else "crash_states_unordered"
    keep(name, explorer.counts, explorer.violations, campaign=campaign)
    assert explorer.violations == []
    assert explorer.counts["states"] > 300


# -- the harness goes red when the protocol is broken --------------------------------------------


def violations(samples: int = 2, first_operation: int = 0) -> list[str]:
    explorer = Explorer(samples=samples, repeat_every=NEVER, nest_every=NEVER, first_only=True)
    explorer.first_operation = first_operation
    explorer.run()
    return explorer.violations


def test_it_goes_red_without_the_sync_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ring, "sync", lambda self: None)
    assert violations() != []


def test_it_goes_red_when_the_journal_is_recycled_before_the_files_are_synced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Applier, "sync", lambda self: None)
    assert violations() != []


def test_it_goes_red_without_the_digest_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode_unchecked(header: bytes, payload: bytes) -> Frame:
        lsn = int.from_bytes(header[8:16], "little")
        durable = int.from_bytes(header[16:24], "little")
        return Frame(lsn, durable, 0, header[32:64], header[64:96], payload)

    monkeypatch.setattr(ring, "decode_frame", decode_unchecked)
    assert violations() != []


def test_it_goes_red_when_folders_are_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Applier, "_sync_folder", lambda self, folder: None)
    assert violations() != []


def test_it_goes_red_when_the_settled_point_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    def settle_lightly(self: Ring, settled: int, chain: bytes) -> None:
        block = self.superblock
        self.superblock = ring.Superblock(block.generation, block.counter + 1, block.capacity, settled, chain)
        self._disk.write(self.handle, self.superblock.encode(), 0)

    monkeypatch.setattr(Ring, "settle", settle_lightly)
    assert violations(samples=40, first_operation=320) != []


def test_it_goes_red_when_an_entry_gets_no_place_in_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrailDraft, "_append_place", lambda self, line: None)
    assert any("where they are not" in text for text in violations())


def test_it_goes_red_when_a_session_that_another_wrote_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Trails, "follow", lambda self, folder: None)
    assert any("audit entry" in text for text in violations(first_operation=60))


def test_it_goes_red_when_the_journal_keeps_what_was_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ring, "wipe", lambda self, settled, end: None)
    assert any("is left in journal" in text for text in violations(first_operation=140))


def test_it_goes_red_when_a_commit_is_acknowledged_before_its_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Journal, "sync", lambda self, appended: None)
    assert violations() != []
