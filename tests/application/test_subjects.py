"""Who a workflow is about is known by a pseudonym, and by name in one place that can go."""

from __future__ import annotations

from functools import partial

import pytest

import holdfast
from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.application.subjects import FOLDER, SECRET, Subjects
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.conformance.history import in_threads
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, InvalidIdError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.testing import FailingStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def subjects(store: MemoryStore) -> Subjects:
    return CheckpointService(build_kit(store, Config(session="s-1", background=False))).subjects


def test_a_declared_workflow_is_found_by_the_person_and_the_person_by_the_workflow(
    subjects: Subjects,
) -> None:
    pseudonym = subjects.declare("W", "alice@example.com")
    assert subjects.declare("V", "alice@example.com") == pseudonym
    assert subjects.declare("W", "alice@example.com") == pseudonym
    subjects.declare("V", "bob")
    assert subjects.known("alice@example.com").workflows == ("W", "V")
    assert [subject.name for subject in subjects.of("W")] == ["alice@example.com"]
    assert {subject.name for subject in subjects.of("V")} == {"alice@example.com", "bob"}
    assert subjects.known("carol").workflows == ()


def test_the_trail_knows_the_pseudonym_only(subjects: Subjects, store: MemoryStore) -> None:
    pseudonym = subjects.declare("W", "alice@example.com")
    lines = list(store.leaves())
    assert any(pseudonym.encode() in line for line in lines)
    assert not any(b"alice" in line for line in lines)


def test_declaring_somebody_new_in_an_encrypted_store_is_no_step_of_the_clock(monkeypatch) -> None:
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    with holdfast.open("memory:", encrypt=True, encryption_key="env:STORE_KEY") as service:
        service.create_checkpoint("W", {"step": 1})
        service.subjects.declare("W", "alice")
        assert service.audit.verify().clock_steps == 0


def test_pseudonyms_differ_from_store_to_store(subjects: Subjects) -> None:
    other = CheckpointService(build_kit(MemoryStore(), Config())).subjects
    assert subjects.pseudonym("alice") == subjects.pseudonym("alice")
    assert subjects.pseudonym("alice") != other.pseudonym("alice")


def test_who_comes_second_takes_the_secret_that_is_there(store: MemoryStore) -> None:
    class Racing(FailingStore):
        def file(self, name: str) -> bytes | None:
            found = super().file(name)
            if name == SECRET and found is None:
                store.commit([Commit(NO_WORKFLOW, Head(), files={SECRET: b"first" * 8})])
            return found

    late = CheckpointService(build_kit(Racing(store), Config(background=False))).subjects
    early = CheckpointService(build_kit(store, Config(background=False))).subjects
    assert late.pseudonym("alice") == early.pseudonym("alice")


def test_declarations_made_at_once_are_all_kept(store: MemoryStore) -> None:
    openings = [CheckpointService(build_kit(store, Config())).subjects for _ in range(4)]

    def declare(number: int) -> None:
        for count in range(5):
            openings[number].declare(f"W-{number}-{count}", "alice")

    in_threads([partial(declare, number) for number in range(4)])
    assert len(openings[0].known("alice").workflows) == 20


def test_a_declaration_that_never_gets_through_says_so(store: MemoryStore) -> None:
    class Refusing(FailingStore):
        def commit(self, commits):
            conflict = CheckpointConflictError("never")
            return [conflict if commit.files and SECRET not in commit.files else None for commit in commits]

    subjects = CheckpointService(build_kit(Refusing(store), Config(background=False))).subjects
    store.commit([Commit(NO_WORKFLOW, Head(), files={SECRET: b"s" * 32})])
    with pytest.raises(CheckpointConflictError, match="without pause"):
        subjects.declare("W", "alice")


def test_what_is_no_id_and_what_cannot_be_read_is_told(subjects: Subjects, store: MemoryStore) -> None:
    with pytest.raises(InvalidIdError):
        subjects.declare("W", "")
    wrong = (
        b'{"subject":3,"workflows":[]}',
        b'{"subject":"a","workflows":[{}]}',
        b'{"subject":"a","workflows":"W"}',
    )
    for data in (b"torn", b"[" * 100_000, *wrong):
        store.commit([Commit(NO_WORKFLOW, Head(), files={FOLDER + "ab": data})])
        with pytest.raises(CheckpointCorruptError, match="cannot be read"):
            subjects.listing()


def test_somebody_named_like_a_credential_is_not_declared(subjects: Subjects, store: MemoryStore) -> None:
    secret = "sk-ant-api03-" + "Zq7Lw2Xe9Rt4Yu1Io6Pa3Sd8Fg5Hj0Kl" * 2
    with pytest.raises(InvalidIdError, match="the subject holds what looks like a secret") as refusal:
        subjects.declare("W", secret)
    assert secret not in f"{refusal.value} {refusal.value.place}"
    assert list(store.files(FOLDER)) == []


def test_a_declaration_that_was_swapped_with_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "00" * 32)
    with bootstrap.open("memory:", encrypt=True, encryption_key="env:TEST_KEY", background=False) as service:
        subjects, store = service.subjects, service._engine.kit.store
        names = [FOLDER + subjects.declare(*about) for about in (("W", "alice"), ("V", "bob"))]
        files = dict(zip(names, map(store.file, reversed(names)), strict=True))
        store.commit([Commit(NO_WORKFLOW, Head(), files=files)])
        with pytest.raises(CheckpointCorruptError):
            subjects.known("alice")
