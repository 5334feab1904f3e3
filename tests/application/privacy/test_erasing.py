"""What is erased is gone from every byte, everything else is as it was, and every proof still holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.access import ANSWERS
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidIdError,
    KeyDestroyedError,
    LegalHoldError,
)
from holdfast.domain.log_check import LogSource, Trust, verify_log
from holdfast.domain.personal import Erased, Personal
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail import decode_entry

MARK = "the-words-of-alice"


def open_store(url: str) -> CheckpointService:
    return bootstrap.open(url, session="s-1", actor="ann", retain=False, background=False)


@pytest.fixture(params=["memory", "file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {"memory": "memory:", "file": f"{tmp_path}/store", "sqlite": f"sqlite:{tmp_path}/store.db"}[
        request.param
    ]


def fill(service: CheckpointService, workflow_id: str, words: str) -> None:
    for n in range(4):
        service.create_checkpoint(workflow_id, {"n": n, "said": f"{words} {n}", "long": words * 2000})
    service.append_event(workflow_id, "SAID", {"words": words})
    service.record_decision(workflow_id, f"believe {words}", rationale=words)


def contents(service: CheckpointService, workflow_id: str) -> list[Any]:
    """Take everything that is kept of a workflow."""
    store = service._engine.kit.store
    entries = list(store.entries(workflow_id))
    records = list(store.records(workflow_id, 1, entries[-1].sequence))
    trail = [line for line in store.leaves() if f'"workflow":"{workflow_id}"'.encode() in line]
    payloads = [store.payload("s-1", decode_entry(line, None).seq) for line in trail]
    return [entries, records, list(store.events(workflow_id)), trail, payloads]


def check_log(service: CheckpointService) -> int:
    """Verify the whole log; answer how many payloads are gone."""
    store = service._engine.kit.store
    source = LogSource(store.leaves(), store.waiting(), read_payload=store.payload)
    report = verify_log(source, Trust(lambda *signed: False))
    assert report.faults == ()
    return report.erased


def test_an_erased_workflow_is_gone_and_its_neighbour_untouched(url: str) -> None:
    with open_store(url) as service:
        fill(service, "W", MARK)
        fill(service, "V", "the words of bob")
        before, trail = contents(service, "V"), list(service._engine.kit.store.leaves())
        done = service.erasure.workflow("W", reason="request 17")
        assert (done.workflows, done.payloads) == (("W",), 1)
        assert service.load_latest("W") is None
        assert MARK not in str(service.events("W"))
        assert contents(service, "V") == before
        assert list(service._engine.kit.store.leaves())[: len(trail)] == trail
        assert check_log(service) == 1
        told = [decode_entry(line, None) for line in service._engine.kit.store.leaves()]
        erased, whole = (entry for entry in told if entry.type == AuditType.DATA_ERASED)
        assert erased.facts["reason"] == whole.facts["reason"] == "request 17"
        assert (erased.workflow_id, whole.facts["payloads"]) == ("W", 1)
        assert service.erasure.workflow("W", reason="again").workflows == ("W",)
        assert [finding for finding in service._engine.kit.store.check() if finding.harm] == []
        service.create_checkpoint("W", {"n": "new"})
        assert service.restore_checkpoint("W@latest").context == {"n": "new"}


def test_not_one_byte_of_what_was_erased_is_left_on_the_disk(url: str, tmp_path: Path) -> None:
    if url == "memory:":
        return
    with open_store(url) as service:
        fill(service, "W", MARK)
        assert found(tmp_path), "the search would find it"
        service.erasure.workflow("W", reason="request 17")
        assert found(tmp_path) == []
    assert found(tmp_path) == []


def test_a_workflow_without_decisions_leaves_no_byte_either(url: str, tmp_path: Path) -> None:
    with open_store(url) as service:
        service.create_checkpoint("W", {"said": MARK})
        service.create_checkpoint("W", {"said": MARK * 2})
        service.append_event("W", "SAID", {"words": MARK})
        service.erasure.workflow("W", reason="request 17")
        assert found(tmp_path) == []


def keep_answers(service: CheckpointService) -> None:
    """Keep answers as a server does, first that the keys are taken: one is done, and one at work."""
    kit = service._engine.kit
    for answer in ("null", f'{{"status":200,"headers":{{}},"body":"{MARK}","code":""}}'):
        files: dict[str, bytes | None] = {}
        for number, said in enumerate([answer, "null"]):
            name = f"{ANSWERS}20261118/{number:040x}.json"
            fields = f'"digest":"{number:064x}","at":"2026-11-18T20:00:00Z","owner":"o","request_id":"r"'
            line = f'{{{fields},"answer":{said}}}'.encode()
            files[name] = line if kit.vault is None else kit.vault.seal_file(name, line)
        assert kit.store.commit([Commit(NO_WORKFLOW, Head(), files=files)]) == [None]


def kept_answers(service: CheckpointService) -> list[bytes]:
    kit = service._engine.kit
    read = [(name, kit.store.file(name) or b"") for name in kit.store.files(ANSWERS)]
    return [data if kit.vault is None else kit.vault.open_file(name, data) for name, data in read]


@pytest.mark.parametrize("is_again", [False, True])
def test_answers_that_a_server_kept_go_with_a_workflow(url: str, tmp_path: Path, is_again: bool) -> None:
    with open_store(url) as service:
        service.create_checkpoint("W", {"n": 1})
        if is_again:
            # As an erasure of a version that did not know of answers left it.
            service.erasure.workflow("W", reason="request 30")
        keep_answers(service)
        service._engine.kit.store.settle()
        assert bool(found(tmp_path)) == (url != "memory:"), "the search would find it"
        service.erasure.workflow("W", reason="request 30")
        done, taken = kept_answers(service)
        assert b'"answer_not_kept"' in done and b"0" * 64 in done
        assert b'"answer":null' in taken
        assert MARK.encode() not in done
        assert found(tmp_path) == []
    assert found(tmp_path) == []


def test_answers_that_a_server_kept_go_with_a_person(url: str, tmp_path: Path) -> None:
    with open_store(url) as service:
        service.create_checkpoint("W", {"n": 1})
        service.subjects.declare("W", "alice")
        service.subjects.declare("W", "bob")
        keep_answers(service)
        service._engine.kit.store.settle()
        assert service.erasure.subject("alice", reason="request 31").kept_workflows == ("W",)
        assert MARK.encode() not in b"".join(kept_answers(service))
        assert found(tmp_path) == []


def found(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if MARK.encode() in path.read_bytes()]


def test_a_person_is_erased_with_every_workflow_that_is_about_nobody_else(url: str) -> None:
    with open_store(url) as service:
        for workflow_id in ("W", "V", "U"):
            fill(service, workflow_id, MARK)
        for workflow_id, subject in (("W", "alice"), ("V", "alice"), ("V", "bob"), ("U", "bob")):
            service.subjects.declare(workflow_id, subject)
        before = contents(service, "U")
        done = service.erasure.subject("alice", reason="request 18")
        assert (done.workflows, done.kept_workflows) == (("W",), ("V",))
        assert service.load_latest("W") is None
        assert service.load_latest("V") is not None
        assert contents(service, "U") == before
        assert service.subjects.known("alice").workflows == ()
        assert [subject.name for subject in service.subjects.listing()] == ["bob"]
        check_log(service)
        with pytest.raises(CheckpointNotFoundError, match="nothing is known"):
            service.erasure.subject("alice", reason="again")


def test_a_legal_hold_stops_an_erasure_before_anything_is_done(url: str) -> None:
    with open_store(url) as service:
        fill(service, "W", MARK)
        service.subjects.declare("W", "alice")
        by_workflow = service.holds.place(workflow_id="W", reason="case 4")
        for erase in (
            lambda: service.erasure.workflow("W", reason="r"),
            lambda: service.erasure.subject("alice", reason="r"),
        ):
            with pytest.raises(LegalHoldError, match="case 4"):
                erase()
        service.holds.release(by_workflow.id, reason="closed")
        service.holds.place(subject="alice", reason="case 5")
        with pytest.raises(LegalHoldError, match="case 5"):
            service.erasure.subject("alice", reason="r")
        assert service.load_latest("W") is not None
        assert len(service.events("W")) == 6


def test_what_is_not_there_cannot_be_erased_and_a_reason_is_asked_for(url: str) -> None:
    with open_store(url) as service:
        with pytest.raises(CheckpointNotFoundError, match="no such workflow"):
            service.erasure.workflow("W", reason="r")
        fill(service, "W", MARK)
        with pytest.raises(InvalidIdError):
            service.erasure.workflow("W", reason="")


def test_a_workflow_of_events_alone_is_erased_too(url: str) -> None:
    with open_store(url) as service:
        service.append_event("W", "SAID", {"words": MARK})
        service.erasure.workflow("W", reason="request 19")
        assert MARK not in str(service.events("W"))
        check_log(service)


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CheckpointService]:
    """A service over an encrypted store with workflows about alice, about bob, and about both."""
    monkeypatch.setenv("TEST_KEY", "00" * 32)
    url = f"{tmp_path}/sealed"
    settings = {"encrypt": True, "encryption_key": "env:TEST_KEY", "retain": False, "background": False}
    with bootstrap.open(url, session="s-1", **settings) as service:
        for workflow_id, about in (("W", "alice"), ("V", "alice"), ("V", "bob"), ("U", "bob")):
            fill(service, workflow_id, MARK)
            service.subjects.declare(workflow_id, about)
        service.create_checkpoint("U", {"note": Personal("alice", MARK), "other": Personal("bob", MARK)})
        yield service


def stored(service: CheckpointService) -> list[Any]:
    """Take every stored byte that is not a key."""
    return [contents(service, workflow_id) for workflow_id in ("W", "V", "U")]


def test_destroying_a_key_erases_a_workflow_and_changes_no_stored_byte(sealed: CheckpointService) -> None:
    before, trail = stored(sealed), list(sealed._engine.kit.store.leaves())
    done = sealed.erasure.workflow("W", reason="request 20")
    assert (done.workflows, done.keys) == (("W",), 1)
    assert stored(sealed)[1:] == before[1:]
    assert list(sealed._engine.kit.store.records("W", 1, 4)) == before[0][1]
    assert list(sealed._engine.kit.store.leaves())[: len(trail)] == trail
    for read in (lambda: sealed.load_latest("W"), lambda: sealed.restore_checkpoint("W@1")):
        with pytest.raises(KeyDestroyedError):
            read()
    assert sealed.load_latest("V") is not None
    check_log(sealed)


def test_answers_that_a_server_kept_are_not_there_to_be_opened(sealed: CheckpointService) -> None:
    for erase in (
        lambda: sealed.erasure.workflow("W", reason="request 32"),
        lambda: sealed.erasure.subject("alice", reason="request 32"),
    ):
        keep_answers(sealed)
        erase()
        done, taken = kept_answers(sealed)
        assert b'"answer_not_kept"' in done and MARK.encode() not in done
        assert b'"answer":null' in taken


def test_a_person_is_erased_wherever_they_were_sealed(sealed: CheckpointService) -> None:
    done = sealed.erasure.subject("alice", reason="request 21")
    assert (done.workflows, done.kept_workflows, done.keys) == (("W",), ("V",), 2)
    with pytest.raises(KeyDestroyedError):
        sealed.load_latest("W")
    state = sealed.restore_checkpoint("U@latest")
    assert isinstance(state.context["note"], Erased)
    assert state.context["other"] == Personal("bob", MARK)
    assert [subject.name for subject in sealed.subjects.listing()] == ["bob"]
    check_log(sealed)
    with pytest.raises(CheckpointNotFoundError, match="nothing is known"):
        sealed.erasure.subject("alice", reason="again")


def test_who_is_spoken_of_cannot_be_read_without_the_key(sealed: CheckpointService, tmp_path: Path) -> None:
    sealed.holds.place(subject="alice", reason="claim")
    files = [path for path in (tmp_path / "sealed").rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"alice" in path.read_bytes()]
    assert not found(tmp_path)


def test_payloads_that_no_single_commit_can_erase_go_all_the_same(tmp_path: Path) -> None:
    with bootstrap.open(f"{tmp_path}/store", session="s-1", background=False, redact=False) as service:
        service.create_checkpoint("W", {"n": 1})
        for _ in range(12):
            service.audit.log_event("SAID", workflow_id="W", payload={"words": MARK * 60_000})
        assert service.erasure.workflow("W", reason="request 23").payloads == 12
        assert found(tmp_path) == []
        check_log(service)


def test_a_damaged_entry_keeps_nobody_from_being_erased(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/store") as service:
        fill(service, "W", MARK)
    [trail] = (tmp_path / "store" / "audit").rglob("s-1/audit_trail.jsonl")
    lines = trail.read_bytes().splitlines(keepends=True)
    damaged = [line.replace(b'"success"', b'"failure"') for line in lines[:-1]]
    trail.write_bytes(b"".join([*damaged, lines[-1]]))
    with bootstrap.open(f"{tmp_path}/store", retain=False, background=False) as service:
        assert service.erasure.workflow("W", reason="request 24").payloads == 1
    assert found(tmp_path) == []


def test_what_is_declared_during_an_erasure_is_not_forgotten(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(url) as service:
        fill(service, "W", MARK)
        service.subjects.declare("W", "alice")
        remove = service._engine.writer.remove

        def declare_and_remove(*removal: Any) -> Any:
            service.subjects.declare("V", "alice")
            return remove(*removal)

        with monkeypatch.context() as patched:
            patched.setattr(service._engine.writer, "remove", declare_and_remove)
            with pytest.raises(CheckpointConflictError):
                service.erasure.subject("alice", reason="request 25")
        assert service.subjects.known("alice").workflows == ("W", "V")
        assert service.erasure.subject("alice", reason="request 25").workflows == ("W", "V")


def test_a_hold_on_a_shared_workflow_keeps_what_was_sealed_in_it(sealed: CheckpointService) -> None:
    hold = sealed.holds.place(workflow_id="V", reason="case 19")
    with pytest.raises(LegalHoldError, match="case 19"):
        sealed.erasure.subject("alice", reason="request 27")
    sealed.holds.release(hold.id, reason="closed")
    assert sealed.erasure.subject("alice", reason="request 27").kept_workflows == ("V",)


def test_a_fork_of_what_is_about_a_person_goes_with_it(url: str) -> None:
    with open_store(url) as service:
        fill(service, "W", MARK)
        service.fork_workflow("W@2", "F")
        service.subjects.declare("W", "alice")
        service.fork_workflow("F@1", "G")
        service.fork_workflow("W@2", "B")
        service.subjects.declare("B", "bob")
        done = service.erasure.subject("alice", reason="request 23")
        assert (set(done.workflows), done.kept_workflows) == ({"W", "F", "G"}, ("B",))
        assert service.load_latest("G") is None
        assert service.load_latest("B") is not None


def test_a_hold_on_a_workflow_keeps_what_was_sealed_there(sealed: CheckpointService) -> None:
    hold = sealed.holds.place(workflow_id="U", reason="case 6")
    with pytest.raises(LegalHoldError, match="case 6"):
        sealed.erasure.subject("alice", reason="request 24")
    assert sealed.restore_checkpoint("U@latest").context["note"] == Personal("alice", MARK)
    sealed.holds.release(hold.id, reason="closed")
    sealed.erasure.subject("alice", reason="request 24")


def test_a_hold_on_a_person_keeps_what_was_sealed_for_others_where_it_is_about_them(
    sealed: CheckpointService,
) -> None:
    sealed.subjects.declare("U", "carol")
    sealed.fork_workflow("U@latest", "F")
    hold = sealed.holds.place(subject="carol", reason="case 7")
    with pytest.raises(LegalHoldError, match="case 7"):
        sealed.erasure.subject("alice", reason="request 25")
    for workflow_id in ("U", "F"):
        assert sealed.restore_checkpoint(f"{workflow_id}@latest").context["note"] == Personal("alice", MARK)
    sealed.holds.release(hold.id, reason="closed")
    sealed.erasure.subject("alice", reason="request 25")


def test_a_hold_on_a_person_is_none_on_what_was_erased_before(sealed: CheckpointService) -> None:
    for workflow_id in ("C1", "C2"):
        fill(sealed, workflow_id, "of carol")
        sealed.subjects.declare(workflow_id, "carol")
    sealed.fork_workflow("C2@latest", "F")
    for workflow_id in ("C1", "F"):
        sealed.erasure.workflow(workflow_id, reason="request 26")
    # Begun anew, with something of alice in it.
    sealed.create_checkpoint("C1", {"note": Personal("alice", MARK)})
    hold = sealed.holds.place(subject="carol", reason="case 8")
    with pytest.raises(LegalHoldError, match="case 8"):
        sealed.erasure.subject("alice", reason="request 27")
    sealed.holds.release(hold.id, reason="closed")
    sealed.erasure.workflow("C1", reason="request 28")
    sealed.holds.place(subject="carol", reason="case 9")
    assert sealed.erasure.subject("alice", reason="request 29").keys
