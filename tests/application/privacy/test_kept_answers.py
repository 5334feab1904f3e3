"""Answers that a server kept are emptied; that they were given, for what and by whom stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.privacy import kept_answers
from holdfast.application.privacy.kept_answers import KeptAnswers, without_answer
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.access import ANSWERS
from holdfast.domain.errors import CheckpointConflictError, DiskFullError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.testing import FailingStore
from tests import encrypted

MARK = "the-words-of-alice"
KEPT = {"digest": "0a" * 32, "at": "2026-11-18T20:00:00Z", "owner": "serve-1", "request_id": "req-1"}
DONE = {"status": 200, "headers": {"ETag": MARK}, "body": {"note": MARK}, "code": "", "detail": ""}
REFUSED = {"status": 404, "headers": {}, "body": None, "code": "checkpoint_not_found", "detail": MARK}


def kept(answer: Any = DONE) -> bytes:
    return json.dumps({**KEPT, "answer": answer}).encode()


def named(number: int) -> str:
    return f"{ANSWERS}20261118/{number:040x}.json"


def put(store: Any, *answers: bytes | None) -> None:
    files = {named(number): data for number, data in enumerate(answers)}
    assert store.commit([Commit(NO_WORKFLOW, Head(), files=files)]) == [None]


def answers_of(store: Any, config: Config | None = None) -> KeptAnswers:
    service = CheckpointService(build_kit(store, config or Config(background=False)))
    return KeptAnswers(service._engine.kit, service._engine.trail)


@pytest.mark.parametrize(
    ("answer", "said"), [(DONE, "it was done, and answered 200"), (REFUSED, "it was refused, with 404")]
)
def test_what_is_left_tells_that_there_was_an_answer_and_of_which_kind(answer: Any, said: str) -> None:
    left = json.loads(without_answer(kept(answer)) or b"")
    assert {name: left[name] for name in KEPT} == KEPT
    told = left["answer"]
    assert (told["status"], told["code"]) == (409, "answer_not_kept")
    assert told["detail"] == f"{said}; the answer went with an erasure"
    assert told["place"] == "req-1"
    assert MARK not in str(left)


def test_what_has_no_answer_and_what_was_emptied_stay_as_they_are() -> None:
    assert without_answer(kept(None)) is None
    once = without_answer(kept())
    assert once is not None and without_answer(once) is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"torn",
        b"[]",
        b'"' + MARK.encode() + b'"',
        b"\xff",
        b"{}",
        kept(MARK),
        kept([MARK]),
        kept({**DONE, "status": MARK}),
        kept({**DONE, "status": float("inf")}),
        kept({"status": 200}),
        kept().replace(b"req-1", b"\\ud800"),
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_emptied_once_and_is_nothing_that_a_server_reads(line: bytes) -> None:
    left = without_answer(line)
    assert left == b'{"code":"answer_not_kept"}'
    assert without_answer(left) is None


def test_all_are_emptied_with_commits_of_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    sizes: list[int] = []

    class Counting(FailingStore):
        def commit(self, commits):
            sizes.extend(len(commit.files) for commit in commits)
            return super().commit(commits)

    monkeypatch.setattr(kept_answers, "_FILES_AT_ONCE", 3)
    put(store, *[kept()] * 7, kept(None), b"torn")
    answers_of(Counting(store)).empty()
    assert sizes == [3, 3, 2]
    assert [MARK.encode() in (store.file(named(number)) or b"") for number in range(9)] == [False] * 9
    assert store.file(named(7)) == kept(None)
    answers_of(Counting(store)).empty()
    assert sizes == [3, 3, 2]


def test_what_was_interrupted_is_finished_when_it_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    store, left = MemoryStore(), [1]

    class Full(FailingStore):
        def commit(self, commits):
            if not left:
                raise DiskFullError("the disk is full")
            left.pop()
            return super().commit(commits)

    monkeypatch.setattr(kept_answers, "_FILES_AT_ONCE", 1)
    put(store, kept(), kept())
    with pytest.raises(DiskFullError):
        answers_of(Full(store)).empty()
    answers_of(store).empty()
    assert not [name for name in store.files(ANSWERS) if MARK.encode() in (store.file(name) or b"")]


def test_what_is_swept_meanwhile_does_not_come_back() -> None:
    store = MemoryStore()

    class Sweeping(FailingStore):
        def commit(self, commits):
            if any(commit.files for commit in commits):
                put(store, None)
            return super().commit(commits)

    put(store, kept(), kept())
    answers_of(Sweeping(store)).empty()
    assert list(store.files(ANSWERS)) == [named(1)]
    assert MARK.encode() not in (store.file(named(1)) or b"")


def test_others_that_never_stop_changing_them_are_told_of() -> None:
    store = MemoryStore()

    class Refusing(FailingStore):
        def commit(self, commits):
            return [CheckpointConflictError("never") for _ in commits]

    put(store, kept())
    with pytest.raises(CheckpointConflictError, match="without pause"):
        answers_of(Refusing(store)).empty()


def test_in_an_encrypted_store_they_are_sealed_before_and_after() -> None:
    store = encrypted.encrypted_store()
    with encrypted.service(store) as service:
        vault = encrypted.vault_of(service)
        sealed = vault.seal_file(named(0), kept())
        put(store, sealed, sealed, b"torn", vault.seal_file(named(3), kept(None)))
        before = store.file(named(3))
        KeptAnswers(service._engine.kit, service._engine.trail).empty()
        opened = [vault.open_file(named(number), store.file(named(number)) or b"") for number in range(3)]
        assert opened[0] == without_answer(kept())
        # The second stands under a name that it was not sealed for.
        assert opened[1:] == [without_answer(b"torn")] * 2
        assert store.file(named(3)) == before
