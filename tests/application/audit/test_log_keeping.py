"""Heads are signed only over what grew out of the last one; proofs are given out only if they prove."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

import holdfast
from holdfast.adapters.crypto.keystore import KeyFolder
from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.log_keeping import (
    CHECKPOINT_FILE,
    HEADS_SESSION,
    ROOTS_FILE,
    VKEYS_FILE,
    LogKeeper,
    head_name,
    read_roots,
    write_roots,
)
from holdfast.application.audit.log_name import LOG, ORIGIN_FILE
from holdfast.config import Config
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    ConfigError,
    InvalidStateError,
)
from holdfast.domain.note import parse_note
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.tlogproof import verify_tlog_proof
from holdfast.domain.trail import decode_entry
from holdfast.domain.treehead import TreeHead, open_head, parse_head
from holdfast.domain.witness import Approval, judge
from holdfast.testing import FailingStore
from tests.application.logs import WITNESS, Desk, anchored, cosigned, make_desk, outcomes, replace_signing


def put(desk: Desk, name: str, data: bytes | None) -> None:
    outcomes(desk.store.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]))


def size_of(note: bytes | None) -> int:
    assert note is not None
    return parse_head(parse_note(note).text).size


def told(desk: Desk, session_id: str) -> list[str]:
    return [decode_entry(line, None).type for line in desk.store.trail(session_id)]


def rewrite(desk: Desk, index: int) -> None:
    """Change an entry where it is stored, as somebody does who may write."""
    store = desk.store
    assert isinstance(store, MemoryStore)
    record = store._leaves[index]
    store._leaves[index] = AuditRecord(record.id, record.head, record.data.replace(b'"n":', b'"m":'))


def test_the_log_is_named_once_for_ever() -> None:
    desk = make_desk()
    assert desk.keeper.known_origin() == ""
    name = desk.keeper.origin()
    assert name.startswith("holdfast/") and desk.keeper.origin() == desk.keeper.known_origin() == name
    assert make_desk(desk.store).keeper.origin() == name


def test_two_who_name_the_log_at_once_agree() -> None:
    class Raced(FailingStore):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            if ORIGIN_FILE in commits[0].files:
                self.store.commit([Commit(NO_WORKFLOW, Head(), files={ORIGIN_FILE: b"example.com/first\n"})])
            return super().commit(commits)

    assert make_desk(Raced()).keeper.origin() == "example.com/first"


def test_without_a_key_nothing_is_signed_and_nothing_is_written() -> None:
    for desk in (make_desk(key=False), replace_signing(make_desk(), None)):
        desk.tell(3)
        assert desk.keeper.anchor() is None
        assert list(desk.store.files("")) == []
        assert (desk.keeper.checkpoint(), desk.keeper.own_key(), desk.keeper.keys()) == (None, None, ())


def test_a_key_cannot_be_made_where_nothing_can_sign() -> None:
    with pytest.raises(ConfigError, match="cannot be checked here"):
        replace_signing(make_desk(), None).keeper.anchor(create_key=True)


def test_a_head_is_signed_stored_listed_and_told() -> None:
    desk = make_desk(key=False)
    desk.tell(5)
    head = anchored(desk)
    store, keeper = desk.store, desk.keeper
    key = keeper.own_key()
    assert key is not None and keeper.keys() == (key,)
    # Six entries of the session, the beginning of the other one, and the key that was made.
    opened, _ = open_head(head, [key], verify)
    assert opened == TreeHead(keeper.origin(), 8, keeper.tiles.root(8))
    assert store.file(CHECKPOINT_FILE) == store.file(head_name(8)) == keeper.checkpoint() == head
    assert store.file(VKEYS_FILE) == f"{key}\n".encode()
    [root] = json.loads(store.file(ROOTS_FILE) or b"")
    assert (root["size"], root["root"]) == (8, f"sha256:{opened.root.hex()}")
    assert root["timestamp"].startswith("2026-01-11T12:00:")
    assert told(desk, HEADS_SESSION) == ["SESSION_STARTED", AuditType.KEY_CREATED, AuditType.HEAD_SIGNED]
    last = decode_entry(list(store.leaves())[-1], None)
    assert last.facts == {"size": 8, "root": opened.root.hex(), "key": key.id.hex()}


def test_telling_of_a_head_needs_no_head_of_its_own() -> None:
    desk = make_desk()
    desk.tell(5)
    head = anchored(desk)
    assert [desk.keeper.anchor() for _ in range(3)] == [head] * 3
    desk.tell(1)
    assert size_of(desk.keeper.anchor()) == size_of(head) + 3
    assert [size_of(one) for one in desk.keeper.heads()] == [6, 9]


def test_a_session_that_was_closed_stays_closed() -> None:
    desk = make_desk()
    desk.tell(2)
    desk.trail.record(*desk.trail.told(AuditType.SESSION_CLOSED, session_id="s-1"))
    anchored(desk)
    assert desk.store.trail_head("s-1").closed


def test_every_head_grows_out_of_the_one_before() -> None:
    desk = make_desk()
    for step in range(12):
        desk.tell(60, first=60 * step)
        anchored(desk)
    heads = [parse_head(parse_note(note).text) for note in desk.keeper.heads()]
    assert len(heads) == 12 and len(read_roots(desk.store.file(ROOTS_FILE))) == 12
    assert [desk.keeper.tiles.root(head.size) for head in heads] == [head.root for head in heads]


def test_what_was_signed_and_then_changed_is_never_signed_over() -> None:
    desk = make_desk()
    desk.tell(5)
    head = anchored(desk)
    rewrite(desk, 3)
    desk.tell(5)
    # Full and right as they may be, the tiles do not hide what was done to the entries.
    desk.keeper.tiles.rebuild()
    with pytest.raises(ChecksumMismatchError, match="no head is signed"):
        desk.keeper.anchor()
    assert (list(desk.keeper.heads()), desk.keeper.checkpoint()) == ([head], head)
    assert told(desk, HEADS_SESSION)[-1] == AuditType.INTEGRITY_FAILED


def test_entries_that_are_gone_are_no_reason_to_sign_less() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    assert isinstance(desk.store, MemoryStore)
    del desk.store._leaves[4:]
    with pytest.raises(CheckpointCorruptError, match="its tree was made for 6"):
        desk.keeper.anchor()


@pytest.mark.parametrize("name", ["tile/0/001.p/45", "tile/1/000.p/1", "size"])
def test_damaged_tiles_are_no_reason_not_to_sign(name: str) -> None:
    desk = make_desk()
    desk.tell(300)
    anchored(desk)
    desk.tell(1)
    whole = desk.store.file(LOG + name)
    assert whole is not None
    put(desk, LOG + name, bytes(len(whole)))
    head = anchored(desk)
    assert size_of(head) == 304
    assert desk.log.verify().faults == ()


def test_a_last_head_that_nobody_here_signed_is_not_gone_on_from() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    forged = SigningKey.from_seed(desk.keeper.origin(), bytes(32))
    desk.tell(1)
    text = TreeHead(desk.keeper.origin(), 3, bytes(32)).text()
    put(desk, head_name(6), None)
    put(desk, head_name(3), f"{text}\n— {forged.key.name} AAAAAAAA\n".encode())
    with pytest.raises(CheckpointError, match="no key that is known"):
        desk.keeper.anchor()


def test_the_list_of_roots_is_a_view() -> None:
    desk = make_desk()
    desk.tell(1)
    put(desk, ROOTS_FILE, b"{]")
    anchored(desk)
    assert len(read_roots(desk.store.file(ROOTS_FILE))) == 1
    assert read_roots(b'{"size":1}') == read_roots(None) == read_roots(b"[1]") == []
    assert read_roots(b"[" * 200_000) == []
    assert json.loads(write_roots([])) == []


def test_signing_at_once_gives_one_history() -> None:
    desk = make_desk()
    faults: list[Exception] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                desk.tell(20, f"s-{number}")
                anchored(desk)
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    report = desk.log.verify()
    assert report.faults == () and report.heads == len(list(desk.keeper.heads())) >= 5


class Raced(FailingStore):
    """Lets somebody else be faster, always, where a file is expected."""

    is_on = False

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.is_on and CHECKPOINT_FILE in commits[0].expected_files:
            return [commits[0].file_conflict(CHECKPOINT_FILE)]
        return super().commit(commits)


def test_losing_every_race_ends_some_time() -> None:
    store = Raced()
    desk = make_desk(store)
    desk.tell(1)
    anchored(desk)
    desk.tell(1)
    store.is_on = True
    with pytest.raises(CheckpointConflictError, match="others keep signing"):
        desk.keeper.anchor()
    head = desk.keeper.checkpoint() or b""
    with pytest.raises(CheckpointConflictError, match="others keep changing"):
        desk.keeper.add_cosignature(cosigned(head))


def test_a_proof_shows_that_an_entry_is_in_the_log() -> None:
    desk = make_desk()
    desk.tell(300)
    anchored(desk)
    desk.tell(5, "s-2")
    anchored(desk)
    key = desk.keeper.own_key()
    assert key is not None
    for session_id, seq in (("s-1", 1), ("s-1", 301), ("s-2", 1), ("s-2", 6)):
        line = list(desk.store.trail(session_id))[seq - 1]
        proof = desk.keeper.proof(session_id, seq)
        assert verify_tlog_proof(proof, line, [key], verify)[0].size == 309
        with pytest.raises(ChecksumMismatchError):
            verify_tlog_proof(proof, line.replace(b"s-", b"S-"), [key], verify)


def test_an_entry_that_no_head_covers_gets_one_where_there_is_a_key() -> None:
    desk = make_desk()
    desk.tell(2)
    anchored(desk)
    desk.tell(1)
    assert desk.keeper.proof("s-1", 4).index == 5
    assert len(list(desk.keeper.heads())) == 2


def test_without_a_key_there_is_no_proof() -> None:
    desk = make_desk(key=False)
    desk.tell(2)
    with pytest.raises(CheckpointNotFoundError, match="no signed head covers the entry"):
        desk.keeper.proof("s-1", 2)


@pytest.mark.parametrize("seq", [-1, 0, 9])
def test_there_is_no_proof_for_what_is_not_there(seq: int) -> None:
    desk = make_desk()
    desk.tell(2)
    with pytest.raises(CheckpointNotFoundError, match="no such audit entry"):
        desk.keeper.proof("s-1", seq)


def test_damaged_tiles_are_no_reason_not_to_prove() -> None:
    desk = make_desk()
    desk.tell(300)
    anchored(desk)
    put(desk, LOG + "tile/0/000", bytes(8192))
    assert desk.keeper.proof("s-1", 7).index == 6


def test_what_is_not_as_signed_is_not_proven() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    rewrite(desk, 3)
    desk.keeper.tiles.rebuild()
    with pytest.raises(ChecksumMismatchError):
        desk.keeper.proof("s-1", 2)


def test_a_witness_signs_what_it_is_asked_and_the_head_keeps_it() -> None:
    desk = make_desk()
    desk.tell(5)
    first = parse_head(parse_note(anchored(desk)).text)
    desk.tell(500)
    second = anchored(desk)
    key = desk.keeper.own_key()
    assert key is not None
    for seen in (None, first):
        body = desk.keeper.add_checkpoint_request(seen.size if seen else 0)
        last_seen = {desk.keeper.origin(): seen}
        answer = judge(body, [key], last_seen.get, verify)
        assert isinstance(answer, Approval)
    assert isinstance(answer, Approval)
    line = f"{answer.cosign(WITNESS.key, WITNESS.sign, 5)}\n".encode()
    kept = desk.keeper.add_cosignature(line, [WITNESS.key])
    assert kept == second + line == desk.keeper.checkpoint() == desk.store.file(CHECKPOINT_FILE)
    assert desk.keeper.add_cosignature(line) == kept
    assert told(desk, HEADS_SESSION).count(AuditType.HEAD_COSIGNED) == 1
    trust = desk.log.trust(witness_keys=[WITNESS.key])
    assert desk.log.verify(trust).level.label == "witness"


def test_a_cosignature_of_an_older_head_is_kept_with_that() -> None:
    desk = make_desk()
    desk.tell(5)
    older = anchored(desk)
    desk.tell(5)
    newer = anchored(desk)
    kept = desk.keeper.add_cosignature(cosigned(older), [WITNESS.key])
    assert list(desk.keeper.heads()) == [kept, newer]
    assert desk.store.file(CHECKPOINT_FILE) == newer


def test_what_no_witness_signed_is_not_kept() -> None:
    desk = make_desk()
    desk.tell(5)
    head = anchored(desk)
    with pytest.raises(ChecksumMismatchError, match="no witness that is known"):
        desk.keeper.add_cosignature(head, [WITNESS.key])
    broken = cosigned(head).replace(b"w1 ", b"w1 A", 1)
    with pytest.raises(CheckpointError):
        desk.keeper.add_cosignature(broken, [WITNESS.key])
    other = make_desk()
    other.tell(7)
    with pytest.raises(CheckpointNotFoundError, match="never signed such a head"):
        desk.keeper.add_cosignature(cosigned(anchored(other)))


def test_a_witness_can_only_be_asked_about_what_was_signed() -> None:
    desk = make_desk()
    with pytest.raises(CheckpointNotFoundError, match="no signed head"):
        desk.keeper.add_checkpoint_request(0)
    desk.tell(3)
    anchored(desk)
    with pytest.raises(InvalidStateError, match="saw 9 entries, and 4 are signed"):
        desk.keeper.add_checkpoint_request(9)


WORKER = """
import sys
import holdfast
from holdfast.config import Config

place, key, name = sys.argv[1:]
config = Config(store=place, signing_key=key, session=name, background=False, head_interval=10**9)
with holdfast.open(config=config) as service:
    for number in range(30):
        service.audit.log_event("NOTED", facts={"n": number})
        service.audit.keeper.anchor()
"""


@pytest.mark.sweep
def test_processes_that_sign_at_once_give_one_history(tmp_path: Path) -> None:
    place, key = str(tmp_path / "store"), str(tmp_path / "key")
    config = Config(store=place, signing_key=key, background=False)
    with holdfast.open(config=config) as service:
        service.audit.log_event("NOTED")
        service.audit.keeper.anchor(create_key=True)
        programs = [
            subprocess.Popen([sys.executable, "-c", WORKER, place, key, f"s-{number}"]) for number in range(3)
        ]
        assert [program.wait() for program in programs] == [0, 0, 0]
        report = service.audit.verify()
    assert (report.faults, report.missing_tiles) == ((), 0)
    assert report.heads == len({size_of(head) for head in service_heads(config)}) - 1 > 3
    assert report.sessions == 5


def service_heads(config: Config) -> list[bytes]:
    with holdfast.open(config=config, read_only=True) as service:
        return list(service.audit.keeper.heads())


def test_a_store_that_was_rewritten_gets_no_signature_of_the_key(tmp_path: Path) -> None:
    """Who writes the store can take every head out of it, but not what the key remembers."""
    keys = KeyFolder(folder=tmp_path / "keys")
    real = make_desk()
    real.tell(5)
    real = replace(real, keeper=LogKeeper(replace(real.kit, signing=keys), real.trail))
    real.keeper.anchor(create_key=True)
    forged = make_desk()
    forged.tell(9, session_id="s-2")
    kept = {name: real.store.file(name) for name in (ORIGIN_FILE, VKEYS_FILE)}
    assert forged.store.commit([Commit(NO_WORKFLOW, Head(), files=kept)]) == [None]
    keeper = LogKeeper(replace(forged.kit, signing=keys), forged.trail)
    with pytest.raises(ChecksumMismatchError, match="not what was signed before"):
        keeper.anchor()
    assert list(keeper.heads()) == []


def test_a_store_that_was_put_back_gets_no_second_head_of_one_size(tmp_path: Path) -> None:
    keys = KeyFolder(folder=tmp_path / "keys")
    store = FilesystemStore.open(tmp_path / "store")
    desk = make_desk(store)
    desk.tell(3)
    LogKeeper(replace(desk.kit, signing=keys), desk.trail).anchor(create_key=True)
    store.close()
    copytree(tmp_path / "store", tmp_path / "backup")

    def go_on(place: Path, number: int) -> bytes | None:
        again = make_desk(FilesystemStore.open(place))
        again.tell(1, first=number)
        try:
            return LogKeeper(replace(again.kit, signing=keys), again.trail).anchor()
        finally:
            again.store.close()

    assert go_on(tmp_path / "store", 10) is not None
    with pytest.raises(ChecksumMismatchError):
        go_on(tmp_path / "backup", 20)
