"""A trail is taken along sealed; what arrived before is remembered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.export_source import ExportSource
from holdfast.application.audit.trail_copying import (
    IMPORTS,
    MANIFEST,
    TrailCopier,
    TrailCopy,
    import_id,
    write_import,
)
from holdfast.application.privacy.import_erasure import without_payloads
from holdfast.application.transport.copying import Copier
from holdfast.domain.audit_entry import AuditEntry, AuditRecord
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ChecksumMismatchError,
)
from holdfast.domain.log_check import Level, LogReport, Verdict
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.application.logs import Desk, anchored, make_desk, outcomes
from tests.application.services import make_service
from tests.independent_verifier import check_folder


def imports(store: Store) -> list[dict[str, Any]]:
    """Give the manifest of each trail that was imported into a store."""
    names = [name for name in store.files(IMPORTS) if name.endswith(f"/{MANIFEST}")]
    return [json.loads(store.file(name) or b"") for name in names]


def telling(desk: Desk) -> tuple[AuditEntry, ...]:
    return desk.trail.told(AuditType.TRAIL_IMPORTED)


@pytest.fixture
def source() -> Desk:
    desk = make_desk()
    desk.tell(300)
    anchored(desk)
    return desk


def test_a_trail_arrives_whole_and_one_entry_says_so(source: Desk, tmp_path: Path) -> None:
    target = make_desk(FilesystemStore.open(tmp_path / "target"))
    target.tell(2)
    copied = TrailCopier(source.store, target.store).copy(telling(target))
    assert (copied.id, copied.origin) == (import_id(source.store), source.keeper.origin())
    assert (copied.size, copied.entries) == (301, 301)
    last = decode_entry(list(target.store.leaves())[-1], None)
    assert (last.type, last.facts) == (AuditType.TRAIL_IMPORTED, copied.facts())
    # The target's own log is what it was, with that entry.
    assert target.log.verify().faults == ()
    write_import(target.store, copied.id, tmp_path / "out")
    report = ExportSource(tmp_path / "out").verify(source.log.trust())
    assert (report.verdict(Level.SIGNED), report.entries, report.payloads) == (Verdict.OK, 301, 300)
    target.store.close()


def test_copied_again_only_what_is_new_is_written(source: Desk, tmp_path: Path) -> None:
    target = MemoryStore()
    first = TrailCopier(source.store, target).copy()
    again = TrailCopier(source.store, target).copy()
    assert (again.files, again.bytes, again.size) == (0, 0, first.size)
    source.tell(300)
    anchored(source)
    grown = TrailCopier(source.store, target).copy()
    assert grown.id == first.id and grown.size > 600 and 0 < grown.bytes < first.bytes * 1.2
    [manifest] = imports(target)
    assert (manifest["size"], manifest["import"]) == (grown.size, first.id)
    # Partial tiles of the first time are gone.
    assert not [name for name in target.files(IMPORTS) if name.endswith(".p/45")]
    write_import(target, grown.id, tmp_path / "out")
    assert ExportSource(tmp_path / "out").verify(source.log.trust()).verdict(Level.SIGNED) is Verdict.OK


def test_a_source_that_was_cut_since_is_found_out(source: Desk) -> None:
    target = MemoryStore()
    TrailCopier(source.store, target).copy()
    before = {name: target.file(name) for name in target.files("")}
    assert isinstance(source.store, MemoryStore)
    del source.store._leaves[200:]
    with pytest.raises(ChecksumMismatchError, match="has 200 entries, and 301 arrived before"):
        TrailCopier(source.store, target).copy()
    assert {name: target.file(name) for name in target.files("")} == before


def test_a_source_that_was_rewritten_since_is_found_out(source: Desk) -> None:
    target = MemoryStore()
    TrailCopier(source.store, target).copy()
    assert isinstance(source.store, MemoryStore)
    record = source.store._leaves[100]
    source.store._leaves[100] = AuditRecord(record.id, record.head, record.data.replace(b"W1", b"W0"))
    source.keeper.tiles.rebuild()
    with pytest.raises(ChecksumMismatchError, match="not the one that arrived before"):
        TrailCopier(source.store, target).copy()


class Cut(FailingStore):
    """Loses its power after a number of commits."""

    def __init__(self, commits_left: int) -> None:
        super().__init__(MemoryStore())
        self.commits_left = commits_left

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if not self.commits_left:
            raise CheckpointWriteError("the power is gone")
        self.commits_left -= 1
        return super().commit(commits)


@pytest.mark.parametrize("commits", [0, 1])
def test_an_interrupted_copy_is_finished_the_next_time(commits: int, source: Desk, tmp_path: Path) -> None:
    target = Cut(commits)
    with pytest.raises(CheckpointWriteError):
        TrailCopier(source.store, target).copy()
    # New files may be there, and what makes them an import is not.
    assert imports(target) == []
    target.commits_left = 9
    copied = TrailCopier(source.store, target).copy()
    write_import(target, copied.id, tmp_path / "out")


def test_a_store_without_a_trail_has_none_to_take_along() -> None:
    target = MemoryStore()
    copier = TrailCopier(MemoryStore(), target)
    assert copier.copy() == copier.plan() == TrailCopy()
    assert list(target.files("")) == []


def test_an_import_that_was_changed_is_not_written_out_as_if_nothing_were(
    source: Desk, tmp_path: Path
) -> None:
    target = MemoryStore()
    copied = TrailCopier(source.store, target).copy()
    name = f"{IMPORTS}{copied.id}/tile/entries/000"
    forged = (target.file(name) or b"").replace(b"W1", b"W0", 1)
    outcomes(target.commit([Commit(NO_WORKFLOW, Head(), files={name: forged})]))
    with pytest.raises(CheckpointCorruptError, match="not what arrived"):
        write_import(target, copied.id, tmp_path / "out")
    with pytest.raises(CheckpointNotFoundError):
        write_import(target, "nothing", tmp_path / "none")


def test_whoever_copies_a_store_takes_its_trail_along(tmp_path: Path) -> None:
    service = make_service()
    service.create_checkpoint("W", {"number": 1})
    kit, target = service._engine.kit, make_desk()

    def tell(type: AuditType, workflow_id: str | None, facts: dict[str, int | str]) -> AuditEntry:
        return target.trail.told(type, workflow_id=workflow_id, facts=facts)[0]

    copier = Copier(kit.store, target.store, kit.packer, kit.formats, tell=tell)
    planned = copier.plan(["W"], with_trail=True).trail
    assert planned is not None and planned.entries == 2
    result = copier.copy(["W"], with_trail=True)
    assert result.trail is not None and result.trail.entries == 2
    types = [decode_entry(line, None).type for line in target.store.leaves()]
    assert types == ["SESSION_STARTED", AuditType.STORE_COPIED, AuditType.TRAIL_IMPORTED]
    assert copier.copy(["W"]).trail is None
    # Nothing arrived, so nothing is told.
    assert len(list(target.store.leaves())) == 3


def erase(target: Store, *workflow_ids: str) -> int:
    files, count = without_payloads(target, workflow_ids)
    outcomes(target.commit([Commit(NO_WORKFLOW, Head(), files=files)]))
    return count


def report_of(source: Desk, target: Store, folder: Path) -> LogReport:
    write_import(target, import_id(source.store), folder)
    return ExportSource(folder).verify(source.log.trust())


def counts(report: LogReport) -> tuple[int, int, int]:
    return len(report.faults), report.payloads, report.erased


def test_a_payload_that_was_erased_does_not_come_back_with_the_next_copy(
    source: Desk, tmp_path: Path
) -> None:
    target = MemoryStore()
    TrailCopier(source.store, target).copy()
    assert erase(target, "W1") == 150
    assert TrailCopier(source.store, target).copy().files == 0
    source.tell(300, first=300)
    anchored(source)
    TrailCopier(source.store, target).copy()
    # Those of before are gone, those that came since are there.
    assert counts(report_of(source, target, tmp_path / "out")) == (0, 450, 150)
    assert TrailCopier(source.store, target).copy().files == 0


def test_a_payload_that_was_erased_before_a_head_covered_it_does_not_come_back(
    source: Desk, tmp_path: Path
) -> None:
    target = MemoryStore()
    source.tell(10, first=300)
    TrailCopier(source.store, target).copy()
    assert erase(target, "W1") == 155
    anchored(source)
    TrailCopier(source.store, target).copy()
    assert counts(report_of(source, target, tmp_path / "out")) == (0, 155, 155)


class Unhurried(FailingStore):
    """Has entries that wait for their place in the tree, as a store with many writers does."""

    read_only = True

    def __init__(self, store: Store, size: int) -> None:
        super().__init__(store)
        self.size = size

    def integrate(self) -> int:
        return self.size

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        return islice(self.store.leaves(after=after), max(self.size - after, 0))

    def waiting(self) -> Iterator[bytes]:
        return self.store.leaves(after=self.size)

    def place(self, session_id: str, seq: int) -> int | None:
        found = self.store.place(session_id, seq)
        return found if found is not None and found < self.size else None


def test_a_payload_that_was_erased_while_its_entry_had_no_place_does_not_come_back(tmp_path: Path) -> None:
    source, target = make_desk(), MemoryStore()
    source.tell(10)
    anchored(source)
    source.tell(10, first=10)
    size = source.store.integrate()
    unhurried = Unhurried(source.store, size - 4)
    TrailCopier(unhurried, target).copy()
    assert erase(target, "W1") == 10
    source.tell(2, first=20)
    TrailCopier(unhurried, target).copy()
    unhurried.size = size + 2
    TrailCopier(unhurried, target).copy()
    assert counts(report_of(source, target, tmp_path / "out")) == (0, 12, 10)


def tell_large(desk: Desk, count: int, size: int) -> None:
    for number in range(count):
        told = desk.trail.told(
            "AGENT_DECISION", session_id="S/large", workflow_id=f"W{number % 2}", payload={"text": "x" * size}
        )
        desk.trail.record(*told)


@pytest.mark.sweep
@pytest.mark.parametrize("is_covered", [True, False])
@pytest.mark.parametrize(("count", "size"), [(12, 1_000_000), (900, 12_000)])
def test_large_payloads_fit_every_store_and_verify(
    count: int, size: int, is_covered: bool, tmp_path: Path
) -> None:
    source, target = make_desk(), FilesystemStore.open(tmp_path / "target")
    source.tell(2)
    anchored(source)
    tell_large(source, count, size)
    if is_covered:
        anchored(source)
    TrailCopier(source.store, target).copy()
    assert counts(report_of(source, target, tmp_path / "out")) == (0, count + 2, 0)
    vkey = str(ExportSource(tmp_path / "out").keys()[0])
    assert f"{count + 2} payloads" in check_folder(tmp_path / "out", vkey)
    files = [target.file(name) or b"" for name in target.files(IMPORTS)]
    assert max(map(len, files)) < 1_100_000
    assert TrailCopier(source.store, target).copy().files == 0
    assert erase(target, "W1") == count // 2 + 1
    TrailCopier(source.store, target).copy()
    assert counts(report_of(source, target, tmp_path / "erased")) == (0, count // 2 + 1, count // 2 + 1)
    target.close()


def test_what_is_damaged_in_an_import_is_no_payload_that_is_held(source: Desk, tmp_path: Path) -> None:
    target = MemoryStore()
    name = f"{IMPORTS}{TrailCopier(source.store, target).copy().id}/payloads/000.jsonl"
    lines = (target.file(name) or b"").splitlines(keepends=True)
    outcomes(target.commit([Commit(NO_WORKFLOW, Head(), files={name: b"?\n" + b"".join(lines[1:])})]))
    TrailCopier(source.store, target).copy()
    assert counts(report_of(source, target, tmp_path / "out")) == (0, 299, 1)


@pytest.mark.parametrize("data", [b"torn", b"[]", b'{"size":"3","root":""}', b'{"size":3}', b"[" * 100_000])
def test_an_import_whose_manifest_was_damaged_is_not_gone_on_with(source: Desk, data: bytes) -> None:
    target = MemoryStore()
    name = f"{IMPORTS}{TrailCopier(source.store, target).copy().id}/{MANIFEST}"
    outcomes(target.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]))
    with pytest.raises(CheckpointCorruptError, match="cannot be read") as refusal:
        TrailCopier(source.store, target).copy()
    assert refusal.value.place == name


class Busy(FailingStore):
    """Somebody erases from its imports just before a copy ends."""

    times = 1

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.times and any(commit.expected_files for commit in commits):
            self.times -= 1
            erase(self.store, f"W{self.times % 2}")
            [sums] = [name for name in self.store.files(IMPORTS) if name.endswith("sha256sums")]
            touched = {sums: (self.store.file(sums) or b"") + b"%d" % self.times}
            self.store.commit([Commit(NO_WORKFLOW, Head(), files=touched)])
        return super().commit(commits)


@pytest.mark.sweep
def test_what_is_erased_while_a_copy_is_under_way_stays_erased(source: Desk, tmp_path: Path) -> None:
    target = Busy(MemoryStore())
    TrailCopier(source.store, target.store).copy()
    source.tell(10, first=300)
    anchored(source)
    TrailCopier(source.store, target).copy()
    assert counts(report_of(source, target.store, tmp_path / "out")) == (0, 160, 150)
    source.tell(1)
    target.times = 100
    with pytest.raises(CheckpointConflictError):
        TrailCopier(source.store, target).copy()
