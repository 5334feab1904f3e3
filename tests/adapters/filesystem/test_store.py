"""The filesystem store: all of the conformance suite, and what only it promises."""

from __future__ import annotations

import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.adapters.filesystem import slimming
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.conformance.store import StoreConformance
from holdfast.domain.errors import (
    CheckpointError,
    StateTooLargeError,
    StoreClosedError,
    StoreDamageWarning,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from holdfast.domain.record import Commit, Head
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


class TestFilesystemStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.root = str(tmp_path / "store")

    def open_store(self):
        return FilesystemStore.open(self.root, journal_bytes=JOURNAL_BYTES)

    def reopen(self, store):
        store.close()
        return FilesystemStore.open(self.root, journal_bytes=JOURNAL_BYTES)


def test_a_store_is_made_only_if_asked(tmp_path):
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError):
            FilesystemStore.open(str(tmp_path / "none"), **options)
    assert not (tmp_path / "none").exists()


def test_a_read_only_opening_writes_nothing(store, fill, root):
    fill("wf", 2)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    reader = FilesystemStore.open(str(root), read_only=True)
    assert reader.read_only and reader.head("wf") == store.head("wf")
    with pytest.raises(StoreReadOnlyError):
        reader.commit([commits.checkpoint("wf", reader.head("wf"))])
    with pytest.raises(StoreReadOnlyError):
        reader.settle()
    reader.close()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_everything_is_closed_to_others(store, fill, root):
    fill("wf", 2)
    store.settle()
    for path in root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_values_larger_than_the_journal_are_kept(store, root):
    data = b"v" * (2 * JOURNAL_BYTES)
    sha256 = commits.sha256(data)
    assert store.commit([Commit("wf", Head(), blobs={sha256: data})]) == [None]
    assert store.blob(sha256) == data


def test_events_larger_than_the_journal_are_kept(store, fill, root):
    before = fill("other", 2)
    events = tuple(commits.event("wf", n + 1, data="x" * 1000) for n in range(2 * JOURNAL_BYTES // 1000))
    assert store.commit([Commit("wf", Head(), events=events)]) == [None]
    store.close()
    with closing(FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)) as again:
        assert list(again.events("wf")) == [event.data for event in events]
        assert again.head("other") == before


def test_events_larger_than_any_journal_are_refused(store, monkeypatch):
    monkeypatch.setattr(slimming, "FRAME_BYTES_MAX", JOURNAL_BYTES)
    events = tuple(commits.event("wf", n + 1, data="x" * 1000) for n in range(2 * JOURNAL_BYTES // 1000))
    with pytest.raises(StateTooLargeError, match="Record less"):
        store.commit([Commit("wf", Head(), events=events)])
    assert store.head("wf") == Head()


def test_more_than_the_ring_holds_goes_through_it(store, fill):
    head = fill("wf", 400, pad="x" * 500)
    assert store.head("wf") == head and len(list(store.records("wf", 1, 400))) == 400


def test_damage_in_the_journal_is_told_and_kept(store, fill, root):
    fill("wf", 3)
    committer = store._committer
    assert committer is not None
    ring = root / committer.journal.ring.path
    copy = ring.read_bytes()
    store.close()
    broken = bytearray(copy)
    broken[8192 + 200] ^= 1
    ring.write_bytes(bytes(broken))
    with pytest.warns(StoreDamageWarning, match="quarantine"):
        again = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    assert any("journal" in finding.place for finding in again.check())
    assert len(list(again.records("wf", 1, 3))) == 3
    again.close()


def test_a_closed_store_says_so(store):
    store.close()
    store.close()
    with pytest.raises(StoreClosedError):
        store.head("wf")


def test_stats_tell_what_is_pending(store, fill):
    fill("wf", 2)
    assert store.stats()["pending_bytes"] > 0
    store.settle()
    assert store.stats()["pending_bytes"] == 0


def test_a_folder_that_is_away_is_told_and_nothing_is_made_in_its_place(tmp_path: Path) -> None:
    place, away = tmp_path / "store", tmp_path / "away"
    with holdfast.open(str(place)) as service:
        service.create_checkpoint("WF-1", {"n": 1})
        service.flush()
        place.rename(away)
        for ask in (
            lambda: service.create_checkpoint("WF-1", {"n": 2}),
            lambda: service.workflows(),
            lambda: service._engine.kit.store.integrate(),
        ):
            with pytest.raises(CheckpointError, match="gone, or another"):
                ask()
        assert not place.exists()
        away.rename(place)
        service.create_checkpoint("WF-1", {"n": 3})
    with holdfast.open(str(place)) as service:
        assert service.restore_checkpoint("WF-1@latest").context == {"n": 3}
        assert service.audit.verify().fault_count == 0


def test_what_was_refused_while_the_folder_was_away_is_not_found_in_it_later(tmp_path: Path) -> None:
    place, away, crashed = (tmp_path / name for name in ("store", "away", "crashed"))
    with holdfast.open(str(place)) as service:
        service.create_checkpoint("WF-1", {"n": 1})
        place.rename(away)
        with pytest.raises(CheckpointError, match="gone, or another"):
            service.create_checkpoint("WF-1", {"n": 2})
        away.rename(place)
        shutil.copytree(place, crashed)
    with holdfast.open(str(crashed)) as service:
        assert service.restore_checkpoint("WF-1@latest").context == {"n": 1}


def test_events_that_are_being_put_in_the_place_of_others_are_no_file_of_events_yet(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path)) as service:
        service.append_event("WF-1", "A")
        service.append_event("WF-1", "B")
    [events] = tmp_path.glob("events/*/*/events_*.jsonl")
    # Left by whoever was killed before it had its name, or not finished yet by somebody else.
    half = events.with_name(events.name + ".tmp")
    half.write_bytes(events.read_bytes().splitlines(keepends=True)[0])
    with holdfast.open(str(tmp_path)) as service:
        assert service.append_event("WF-1", "C").seq == 3
        assert [event.type for event in service.events("WF-1")] == ["A", "B", "C"]
    assert b'"C"' in events.read_bytes() and b'"C"' not in half.read_bytes()


def test_another_folder_in_its_place_is_not_taken_for_the_store(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path / "other")) as service:
        service.create_checkpoint("WF-2", {})
    with holdfast.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("WF-1", {})
        service.flush()
        (tmp_path / "store").rename(tmp_path / "away")
        (tmp_path / "other").rename(tmp_path / "store")
        with pytest.raises(CheckpointError, match="gone, or another"):
            service.create_checkpoint("WF-1", {"n": 2})
        (tmp_path / "store").rename(tmp_path / "other")
        (tmp_path / "away").rename(tmp_path / "store")


def test_a_store_whose_journal_is_gone_goes_on_and_says_so(tmp_path):
    first = commits.checkpoint("wf", Head())
    with closing(FilesystemStore.open(str(tmp_path))) as store:
        assert store.commit([first]) == [None]
    shutil.rmtree(tmp_path / "journal")
    with pytest.warns(StoreDamageWarning, match="journal's folder was gone"):
        store = FilesystemStore.open(str(tmp_path))
    with closing(store):
        assert store.head("wf") == first.head
        assert any("journal" in str(problem) for problem in store.check())
        second = commits.checkpoint("wf", first.head)
        assert store.commit([second]) == [None]
    with closing(FilesystemStore.open(str(tmp_path))) as store:
        assert store.head("wf") == second.head


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.StateSizeWarning")
def test_what_is_large_and_lies_nowhere_else_makes_the_journal_grow(tmp_path):
    text = "wave " * 1_000_000
    with holdfast.open(str(tmp_path / "store"), session="s") as service:
        service.record_decision("WF", "d", rationale=text)
        service.create_checkpoint("WF", {"n": 1}, agent_state={"text": text}, stage_state={"text": text})
        service.create_checkpoint("WF", {"n": 2})
    with holdfast.open(str(tmp_path / "store"), session="s") as service:
        found = service.get_by_id("WF@1")
        assert found is not None and found.agent_state == found.stage_state == {"text": text}
        assert service.audit.verify_chain_integrity("s") == (True, None)


def test_a_store_that_is_opened_again_writes_no_keyframe_that_is_not_due(tmp_path):
    def keyframes(url: str) -> list[int]:
        settings = {"background": False, "retain": False, "session": "s"}
        for number in range(5):
            with holdfast.open(url, **settings) as service:
                for n in range(1 if number else 3):
                    service.create_checkpoint("w", {"text": "kelp " * 10_000, "n": 10 * number + n})
                service.prune_checkpoints("w", retain_count=2, retain_days=0)
        with holdfast.open(url, **settings) as service:
            return [one.sequence for one in service._engine.kit.store.keyframes("w")]

    assert keyframes(str(tmp_path / "files")) == keyframes(f"sqlite:{tmp_path}/store.db")
