"""What is damaged is set aside with its bytes, told, refused, and let go only when it verifies."""

from __future__ import annotations

import random
import warnings
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery.quarantining import Quarantine
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointQuarantinedError,
    CheckpointWriteError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
    LegalHoldError,
    StoreDamageWarning,
    StoreReadOnlyError,
)
from holdfast.domain.quarantine import PIECE_BYTES, Kind, Quarantined
from holdfast.domain.record import Keyframe
from holdfast.domain.recovery_plan import Damage, Piece
from holdfast.domain.trail import read_fields
from holdfast.testing import FailingStore
from tests.application.services import make_service
from tests.damage import KINDS, Spoiler, derived_keyframes, flip

REASON = "its checksum is wrong"


@pytest.fixture(params=KINDS)
def spoiler(request: pytest.FixtureRequest, tmp_path: Path) -> Spoiler:
    return Spoiler(request.param, tmp_path)


def told(service: CheckpointService, type: str) -> list[dict[str, Any]]:
    """Read the facts of all entries of a type."""
    service.flush()
    store = service._engine.kit.store
    entries = map(read_fields, [*store.leaves(), *store.waiting()])
    return [entry["data"] for entry in entries if entry["type"] == type]


def damaged(spoiler: Spoiler, sequence: int = 3, count: int = 5) -> bytes:
    """Fill a store and spoil a record; answer what is stored of it now."""
    spoiler.fill(count)
    return flip(spoiler.spoil_record(sequence))


def test_a_damaged_checkpoint_is_kept_as_it_was_found_and_refused(spoiler):
    found = damaged(spoiler)
    with spoiler.opened() as service:
        quarantined = service.quarantine.put("WF", 3, REASON)
        assert service.quarantine.data(quarantined.name) == found
        assert (quarantined.kind, quarantined.place, quarantined.reason) == (Kind.CHECKPOINT, "WF@3", REASON)
        with pytest.raises(CheckpointQuarantinedError, match=quarantined.name):
            service.restore_checkpoint("WF@3")
        assert service.restore_checkpoint("WF@2").context["n"] == 1
    with spoiler.opened() as service:
        assert service.quarantine.get(quarantined.name) == quarantined
        assert service.quarantine.is_quarantined("WF", 3)
        assert not service.quarantine.is_quarantined("WF", 2)
        with pytest.raises(CheckpointQuarantinedError):
            service.fork_workflow("WF@3", "WF-2")


def test_the_trail_tells_of_it_in_the_commit_that_does_it_and_once(spoiler):
    damaged(spoiler)
    with spoiler.opened() as service:
        first = service.quarantine.put("WF", 3, REASON)
        assert service.quarantine.put("WF", 3, "again") == first
        (facts,) = told(service, AuditType.CHECKPOINT_QUARANTINED)
        assert (facts["cp_seq"], facts["quarantine"], facts["reason"]) == (3, first.name, REASON)
        assert facts["evidence"] == f"sha256:{first.sha256}"
        assert [one.name for one in service.quarantine.entries()] == [first.name]


def test_what_hangs_on_it_is_not_set_aside_but_told_why_it_cannot_be_used(spoiler):
    damaged(spoiler)
    with spoiler.opened() as service:
        quarantine = service.quarantine
        (damage,) = quarantine.why_unusable("WF", 5)
        assert (damage.piece, damage.sequence) == (Piece.RECORD, 3)
        assert quarantine.why_unusable("WF", 2) == ()
        done = quarantine.set_aside_invalid("WF", {3: "wrong", 4: "hangs", 5: "hangs"})
        assert [one.place for one in done.quarantined] == ["WF@3"]
        assert [n for n in range(1, 6) if quarantine.is_quarantined("WF", n)] == [3]


def test_what_follows_a_checkpoint_that_was_set_aside_is_whole_again(spoiler):
    spoiler.fill(4)
    with spoiler.opened() as service:
        # Remembered from here on: without a word the next checkpoint would be a change on top of it.
        service.create_checkpoint("WF", {"n": 4})
        store = service._engine.kit.store
        store.settle()
        [whole] = store.records("WF", 5, 5)
        spoiler.spoil_known_record(whole, 5)
        service.quarantine.put("WF", 5, REASON)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreDamageWarning)
            service.create_checkpoint("WF", {"n": 5})
        assert service.restore_checkpoint("WF@6").context == {"n": 5}
    with spoiler.opened() as service:
        assert service.load_latest("WF").context == {"n": 5}


def test_a_damaged_keyframe_is_rebuilt_from_the_older_one_and_its_bytes_are_kept(spoiler):
    spoiler.fill(80)
    with spoiler.opened() as service:
        sequence = derived_keyframes(service)[0]
    found = flip(spoiler.spoil_keyframe(sequence))
    with spoiler.opened() as service:
        with pytest.warns(StoreDamageWarning):
            before = service.restore_checkpoint(f"WF@{sequence}")
        kept = service.quarantine.rebuild_keyframe("WF", sequence)
        assert kept is not None and kept.kind is Kind.KEYFRAME and kept.released is not None
        assert service.quarantine.data(kept.name) == found
    with spoiler.opened() as service:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert service.restore_checkpoint(f"WF@{sequence}") == before
        assert service.quarantine.rebuild_keyframe("WF", sequence) is None
        assert service.quarantine.why_unusable("WF", 80) == ()
        assert [finding for finding in service._engine.kit.store.check() if finding.harm] == []
        assert len(told(service, AuditType.CHECKPOINT_QUARANTINED)) == 1
        assert len(told(service, AuditType.QUARANTINE_RELEASED)) == 1


def test_a_record_that_a_whole_keyframe_stands_in_for_is_kept_and_bars_nothing(spoiler):
    spoiler.fill(80)
    with spoiler.opened() as service:
        sequence = derived_keyframes(service)[0]
    found = flip(spoiler.spoil_record(sequence))
    with spoiler.opened() as service:
        assert service.quarantine.why_unusable("WF", 80) == ()
        done = service.quarantine.set_aside_invalid("WF", {sequence: "the record is wrong"})
        assert [one.kind for one in done.quarantined] == [Kind.PIECE]
        assert service.quarantine.data(done.quarantined[0].name) == found
        assert service.restore_checkpoint(f"WF@{sequence}").context["n"] == sequence - 1
        assert service.quarantine.set_aside_invalid("WF", {sequence: "again"}) == done


def test_a_keyframe_that_is_gone_is_rebuilt_too(spoiler):
    spoiler.fill(80)
    with spoiler.opened() as service:
        sequence = derived_keyframes(service)[0]
    spoiler.spoil_keyframe(sequence, lambda data: b"")
    with spoiler.opened() as service:
        done = service.quarantine.set_aside("WF", [Damage(Piece.KEYFRAME, sequence, "it is empty")])
        assert (done.rebuilt, done.notes) == ((sequence,), ())
        assert service.validate_checkpoint(f"WF@{sequence}").notes == ()


def test_a_keyframe_that_nothing_older_leads_to_bars_its_checkpoint(spoiler):
    spoiler.fill(3)
    spoiler.spoil_keyframe(1)
    with spoiler.opened() as service:
        damage = service.quarantine.why_unusable("WF", 3)
        assert [(one.piece, one.sequence) for one in damage] == [(Piece.KEYFRAME, 1)]
        done = service.quarantine.set_aside("WF", damage)
        assert [one.kind for one in done.quarantined] == [Kind.CHECKPOINT]
        assert done.rebuilt == () and "cannot be rebuilt" in done.notes[0]
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("WF@1")


def test_of_a_damaged_blob_the_bytes_are_kept_and_what_is_whole_is_only_named(spoiler):
    large = random.Random(1).randbytes(50_000).hex()
    spoiler.fill(1, large=large, other=large[::-1])
    with spoiler.opened() as service:
        [entry] = service._engine.kit.store.entries("WF")
        store = service._engine.kit.store
        names = sorted({*entry.blobs, *store.keyframes("WF")[0].blobs})
    found = flip(spoiler.spoil_blob(names[0]))
    with spoiler.opened() as service:
        damage = service.quarantine.why_unusable("WF", 1)
        assert [one.piece for one in damage] == [Piece.BLOB]
        [quarantined] = service.quarantine.set_aside("WF", damage).quarantined
        copied = {part.name: part.is_copied for part in quarantined.parts}
        assert copied == {"record": True, "keyframe": False, **{f"blob-{n}": n == names[0] for n in names}}
        assert service.quarantine.data(quarantined.name).endswith(found)


def test_a_checkpoint_is_released_only_when_it_verifies_and_its_evidence_stays(spoiler):
    spoiler.fill(5)
    whole = spoiler.spoil_record(3)
    with spoiler.opened() as service:
        quarantined = service.quarantine.put("WF", 3, REASON)
        with pytest.raises(CheckpointQuarantinedError, match="does not verify"):
            service.quarantine.release(quarantined.name, "I hope it is well")
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("WF@3")
    spoiler_put_right(spoiler, whole)
    with spoiler.opened() as service:
        # Right again, and still refused: somebody has to say so.
        assert service.validate_checkpoint("WF@3").notes[0].startswith("in quarantine")
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("WF@3")
        released = service.quarantine.release(quarantined.name, "from a backup")
        assert released.released is not None and released.released.reason == "from a backup"
        assert service.quarantine.release(quarantined.name, "again") == released
        assert service.restore_checkpoint("WF@3").context["n"] == 2
        assert service.quarantine.data(quarantined.name) == flip(whole)
        (facts,) = told(service, AuditType.QUARANTINE_RELEASED)
        assert facts["reason"] == "from a backup"


def spoiler_put_right(spoiler: Spoiler, whole: bytes) -> None:
    """Bring the right bytes of checkpoint 3 back."""
    spoiler.spoil_record(3, lambda data: whole)


def test_what_is_damaged_again_after_its_release_is_set_aside_again(spoiler):
    spoiler.fill(5)
    whole = spoiler.spoil_record(3)
    with spoiler.opened() as service:
        first = service.quarantine.put("WF", 3, REASON)
    spoiler_put_right(spoiler, whole)
    with spoiler.opened() as service:
        service.quarantine.release(first.name, "from a backup")
    spoiler.spoil_record(3)
    with spoiler.opened() as service:
        again = service.quarantine.put("WF", 3, "the same again")
        assert again.name == first.name and again.bars
        assert service.quarantine.is_quarantined("WF", 3)
        assert len(told(service, AuditType.CHECKPOINT_QUARANTINED)) == 2


def test_dropping_removes_the_evidence_and_makes_nothing_usable(spoiler):
    damaged(spoiler)
    with spoiler.opened() as service:
        name = service.quarantine.put("WF", 3, REASON).name
        service.quarantine.drop(name, "case closed")
        assert list(service._engine.kit.store.files("quarantine/")) == []
        with pytest.raises(CheckpointNotFoundError):
            service.quarantine.get(name)
        with pytest.raises(ChecksumMismatchError):
            service.restore_checkpoint("WF@3")
        assert told(service, AuditType.QUARANTINE_DROPPED)[0]["reason"] == "case closed"


def test_a_legal_hold_keeps_evidence(spoiler):
    damaged(spoiler)
    with spoiler.opened() as service:
        name = service.quarantine.put("WF", 3, REASON).name
        service.holds.place(workflow_id="WF", reason="a case")
        with pytest.raises(LegalHoldError):
            service.quarantine.drop(name, "no longer wanted")
        assert service.quarantine.get(name).bars


def test_erasing_a_workflow_takes_its_evidence_along(spoiler):
    spoiler.fill(3, secret="a very private matter")
    spoiler.fill(2, workflow_id="OTHER")
    spoiler.spoil_keyframe(1)
    spoiler.spoil_record(2, workflow_id="OTHER")
    with spoiler.opened() as service:
        service.quarantine.set_aside("WF", service.quarantine.why_unusable("WF", 1))
        service.quarantine.put("OTHER", 2, REASON)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreDamageWarning)
            service.erasure.workflow("WF", reason="asked for")
        assert [one.place for one in service.quarantine.entries()] == ["OTHER@2"]
    if spoiler.kind == "file":
        held = [path for path in spoiler.folder.rglob("*") if path.is_file()]
        assert not [path for path in held if b"a very private matter" in path.read_bytes()]


def test_of_what_cannot_be_located_that_is_said(spoiler):
    spoiler.fill(3)
    spoiler.spoil_record(3, lambda data: None)
    with spoiler.opened() as service:
        quarantined = service.quarantine.put("WF", 3, "the record is gone")
        assert quarantined.size_bytes == len(service.quarantine.data(quarantined.name)) == 0
        assert "nothing stored of it could be located" in quarantined.reason
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("WF@3")


def test_what_was_never_there_cannot_be_set_aside(spoiler):
    spoiler.fill(1)
    with spoiler.opened() as service:
        for workflow_id, sequence in (("WF", 9), ("NOBODY", 1)):
            with pytest.raises(CheckpointNotFoundError):
                service.quarantine.put(workflow_id, sequence, REASON)
        with pytest.raises(CheckpointNotFoundError):
            service.quarantine.release("../../etc/passwd", "curious")
        with pytest.raises(InvalidIdError):
            service.quarantine.drop("x", "")


def test_large_evidence_is_kept_in_pieces(spoiler):
    digits = random.Random(2)
    spoiler.fill(1, lines=[b64encode(digits.randbytes(1500)).decode() for _ in range(220)])
    found = flip(spoiler.spoil_keyframe(1))
    assert len(found) > PIECE_BYTES
    with spoiler.opened() as service:
        quarantined = service.quarantine.put("WF", 1, REASON)
        assert len(quarantined.files) > 1
        assert service.quarantine.data(quarantined.name).endswith(found)
        store = service._engine.kit.store
        service._engine.trail.commit((), {quarantined.files[1]: b"something else"})
        with pytest.raises(ChecksumMismatchError, match="evidence itself"):
            service.quarantine.data(quarantined.name)
        service.quarantine.drop(quarantined.name, "it is worthless")
        assert list(store.files("quarantine/")) == []


@pytest.mark.parametrize("kind", ["file", "sqlite", "postgres"])
def test_who_may_only_read_is_refused_all_the_same_and_told_that_nothing_is_set_aside(kind, tmp_path):
    spoiler = Spoiler(kind, tmp_path)
    damaged(spoiler)
    with spoiler.opened(read_only=True, audit=False) as service:
        with pytest.raises(StoreReadOnlyError, match="stays unused"):
            service.quarantine.put("WF", 3, REASON)
        done = service.quarantine.set_aside("WF", service.quarantine.why_unusable("WF", 3))
        assert done.quarantined == () and done.notes[0].startswith("not set aside, the record of")
        with pytest.raises(CheckpointCorruptError):
            service.restore_checkpoint("WF@3")
    with spoiler.opened() as service:
        service.quarantine.put("WF", 3, REASON)
    with (
        spoiler.opened(read_only=True, audit=False) as service,
        pytest.raises(CheckpointQuarantinedError),
    ):
        service.restore_checkpoint("WF@3")


def test_of_two_who_set_the_same_aside_at_once_both_are_answered_and_one_tells(spoiler):
    damaged(spoiler)
    with spoiler.opened() as service, spoiler.opened() as other:
        reports = [one.quarantine.put("WF", 3, REASON) for one in (service, other)]
        assert reports[0] == reports[1]
        assert len(told(service, AuditType.CHECKPOINT_QUARANTINED)) == 1


class Overtaken(FailingStore):
    """A store in which somebody else is faster once."""

    rival: Quarantine | None = None

    def commit(self, commits):
        if self.rival is not None and commits[0].files:
            rival, self.rival = self.rival, None
            rival.put("WF", 3, "somebody else's reason")
        return super().commit(commits)


def test_who_is_overtaken_answers_what_the_other_kept():
    store = Overtaken(make_service()._engine.kit.store)
    service, rival = make_service(store), make_service(store.store)
    for n in range(5):
        service.create_checkpoint("WF", {"n": n})
    store.rival = rival.quarantine
    assert service.quarantine.put("WF", 3, REASON).reason == "somebody else's reason"


def test_a_rebuilding_that_was_cut_short_is_finished_by_the_next():
    memory = MemoryStore()
    store = FailingStore(memory)
    service = make_service(store)
    for n in range(80):
        service.create_checkpoint("WF", {"n": n})
    sequence = derived_keyframes(service)[0]
    keyframes = memory._workflows["WF"].keyframes
    whole = keyframes[sequence]
    keyframes[sequence] = type(whole)(whole.entry, flip(whole.data))
    store.fail("put_keyframe", CheckpointWriteError("no space"))
    with pytest.raises(CheckpointWriteError):
        service.quarantine.rebuild_keyframe("WF", sequence)
    (kept,) = service.quarantine.entries()
    assert kept.released is None
    assert service.quarantine.rebuild_keyframe("WF", sequence) is not None
    assert service.quarantine.get(kept.name).released is not None
    assert keyframes[sequence] == whole


def test_what_is_wrong_in_another_way_than_its_bytes_is_set_aside_too():
    service = make_service()
    for n in range(3):
        service.create_checkpoint("WF", {"n": n})
    done = service.quarantine.set_aside_invalid("WF", {2: "the state has 9 bytes, 10 were committed"})
    assert [(one.place, one.kind) for one in done.quarantined] == [("WF@2", Kind.CHECKPOINT)]


def test_a_file_of_the_store_is_listed_too_and_can_only_be_dropped(tmp_path):
    from holdfast.adapters.filesystem.disk import Disk
    from holdfast.adapters.filesystem.quarantine import set_aside

    spoiler = Spoiler("file", tmp_path)
    spoiler.fill(1)
    set_aside(Disk(str(spoiler.folder)), "checkpoints/Ab/manifest.jsonl", "it was cut", b"half a li")
    with spoiler.opened() as service:
        (report,) = service.quarantine.entries()
        assert (report.kind, report.place) == (Kind.FILE, "checkpoints/Ab/manifest.jsonl")
        assert service.quarantine.data(report.name) == b"half a li"
        with pytest.raises(InvalidStateError, match="no checkpoint"):
            service.quarantine.release(report.name, "it is fine")
        service.quarantine.drop(report.name, "it was rebuilt")
        assert service.quarantine.entries() == []
    assert not [path for path in (spoiler.folder / "quarantine").rglob("*") if path.is_file()]


def test_a_report_that_cannot_be_read_is_listed_and_dropped():
    service = make_service()
    service.create_checkpoint("WF", {"n": 1})
    service._engine.trail.commit((), {"quarantine/broken.json": b"{", "quarantine/broken.bin": b"bytes"})
    (report,) = service.quarantine.entries()
    assert report == Quarantined("broken", "quarantine/broken.json", report.reason, "", 0, "")
    with pytest.raises(CheckpointCorruptError):
        service.quarantine.get("broken")
    service.quarantine.drop("broken", "nobody knows what it was")
    assert list(service._engine.kit.store.files("quarantine/")) == []


def test_in_an_encrypted_store_a_forgery_is_set_aside_and_no_word_is_readable():
    from tests.application.secrecy.test_sealing import everything, fill, replace_record
    from tests.encrypted import MARKER, encrypted_store
    from tests.encrypted import service as encrypted_service

    store = encrypted_store()
    fill(store)
    fill(store, "V")
    # Every checksum is right: only who has the key can tell that it was sealed for another place.
    replace_record(store, 3, store._workflows["V"].records[3])
    with encrypted_service(store) as service:
        [problem] = service.validate_checkpoint("W@3").problems
        done = service.quarantine.set_aside_invalid("W", {3: problem})
        assert [(one.place, one.kind) for one in done.quarantined] == [("W@3", Kind.CHECKPOINT)]
        with pytest.raises(CheckpointQuarantinedError):
            service.restore_checkpoint("W@3")
        assert service.quarantine.data(done.quarantined[0].name) == store._workflows["W"].records[3]
    assert MARKER.encode() not in everything(store)


def change_in(record: bytes) -> bytes:
    """The part of a record that no column of a database says too."""
    return record[record.index(b'"ops":') : record.index(b',"checksum":')]


def test_a_bit_that_flips_in_the_file_of_a_database_is_evidence_as_it_is(tmp_path):
    spoiler = Spoiler("sqlite", tmp_path)
    spoiler.fill(3)
    with spoiler.opened(read_only=True, audit=False) as service:
        [whole] = service._engine.kit.store.records("WF", 2, 2)
    path = tmp_path / "store.db"
    data = path.read_bytes()
    stored = change_in(whole)
    assert data.count(stored) == 1
    path.write_bytes(data.replace(stored, flip(stored)))
    with spoiler.opened() as service:
        done = service.quarantine.set_aside("WF", service.quarantine.why_unusable("WF", 3))
        assert [service.quarantine.data(one.name) for one in done.quarantined] == [
            whole.replace(stored, flip(stored))
        ]


def test_a_page_of_a_database_that_cannot_be_read_is_told_and_nothing_else_fails(tmp_path):
    spoiler = Spoiler("sqlite", tmp_path)
    spoiler.fill(40, filler="x" * 3000)
    path = tmp_path / "store.db"
    data = bytearray(path.read_bytes())
    with spoiler.opened(read_only=True, audit=False) as service:
        [whole] = service._engine.kit.store.records("WF", 20, 20)
    page = bytes(data).index(change_in(whole)) // 4096 * 4096
    data[page : page + 8] = b"\xff" * 8
    path.write_bytes(data)
    with spoiler.opened(read_only=True, audit=False) as service:
        with pytest.raises(CheckpointCorruptError):
            service.restore_checkpoint("WF@20")
        assert "record" not in dict(service._engine.kit.store.evidence("WF", 20))
    with spoiler.opened(audit=False) as service:
        done = service.quarantine.set_aside("WF", [Damage(Piece.RECORD, 20, "its page is damaged")])
        assert "malformed" in done.quarantined[0].reason and "could be located" in done.quarantined[0].reason
        with pytest.raises(CheckpointCorruptError):
            service.restore_checkpoint("WF@20")


def kept_keyframe() -> tuple[MemoryStore, CheckpointService, Quarantined, Keyframe]:
    """Damage a keyframe whose rebuilding fails; answer the standing evidence and the right keyframe."""
    memory = MemoryStore()
    store = FailingStore(memory)
    service = make_service(store)
    for n in range(80):
        service.create_checkpoint("WF", {"n": n})
    sequence = derived_keyframes(service)[0]
    whole = memory._workflows["WF"].keyframes[sequence]
    memory._workflows["WF"].keyframes[sequence] = Keyframe(whole.entry, flip(whole.data))
    store.fail("put_keyframe", CheckpointWriteError("no space"))
    done = service.quarantine.set_aside("WF", [Damage(Piece.KEYFRAME, sequence, "wrong")])
    assert done.quarantined == () and "no space" in done.notes[0]
    [report] = service.quarantine.entries()
    return memory, service, report, whole


def test_evidence_of_a_keyframe_is_released_once_the_keyframe_is_right():
    memory, service, report, whole = kept_keyframe()
    with pytest.raises(CheckpointQuarantinedError, match="does not verify"):
        service.quarantine.release(report.name, "hope")
    memory._workflows["WF"].keyframes[whole.entry.sequence] = whole
    assert service.quarantine.release(report.name, "from a backup").released is not None


def test_a_report_on_a_keyframe_that_cannot_be_read_is_written_anew():
    memory, service, report, whole = kept_keyframe()
    memory._files[report.report] = b"{"
    assert service.quarantine.rebuild_keyframe("WF", whole.entry.sequence) is not None
    assert service.quarantine.get(report.name).released is not None


def test_a_state_that_is_not_the_one_listed_makes_no_keyframe():
    memory, service, _, whole = kept_keyframe()
    entries = memory._workflows["WF"].entries
    sequence = whole.entry.sequence
    entries[sequence] = replace(entries[sequence], checksum="sha256:" + "0" * 64)
    with pytest.raises(ChecksumMismatchError):
        service.quarantine.rebuild_keyframe("WF", sequence)
    done = service.quarantine.set_aside("WF", [Damage(Piece.RECORD, sequence, "another checksum is listed")])
    assert [one.kind for one in done.quarantined] == [Kind.CHECKPOINT]


def test_a_mark_whose_report_is_gone_gets_a_new_one():
    store = MemoryStore()
    service = make_service(store)
    service.create_checkpoint("WF", {"n": 1})
    first = service.quarantine.put("WF", 1, REASON)
    del store._files[first.report]
    assert service.quarantine.put("WF", 1, "anew").reason == "anew"
    assert service.quarantine.get(first.name).bars


def test_who_is_overtaken_again_and_again_is_told_so():

    class AlwaysBehind(MemoryStore):
        def _refusal(self, commit, head):
            return commit.file_conflict("x") if commit.files else super()._refusal(commit, head)

    service = make_service(AlwaysBehind())
    service.create_checkpoint("WF", {"n": 1})
    with pytest.raises(CheckpointConflictError):
        service.quarantine.put("WF", 1, REASON)
