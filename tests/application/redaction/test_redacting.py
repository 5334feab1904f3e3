"""The redactor of a store: one key for all its processes, made when the first secret is met."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.adapters.memory import MemoryStore
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.adapters.redaction import engine
from holdfast.adapters.redactors import redactor_maker
from holdfast.application.redaction.redacting import (
    KEY_BYTES,
    KEY_FILE,
    HidingPeople,
    LogRedactor,
    StoreRedactor,
)
from holdfast.application.secrecy.keyring import Keyring
from holdfast.application.secrecy.sealing import Vault
from holdfast.domain.errors import (
    CheckpointWriteError,
    InvalidIdError,
    RedactedStateWarning,
    UnsupportedTypeError,
)
from holdfast.domain.placeholders import Key, is_placeholder
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.redaction import Redactor
from tests.application.services import make_kit, make_service
from tests.canaries import TOKENS
from tests.encrypted import OLD_KEY, encrypted_store, keyring

SECRET = TOKENS[0].secret
PACKER = OrmsgpackPacker(TypeRegistry())


def build(key: Key) -> Redactor:
    return Redactor(key, engine())


def test_the_key_is_made_with_the_first_secret_and_not_before() -> None:
    store = MemoryStore()
    redactor = StoreRedactor(store, build)
    assert redactor.text("nothing to hide") == "nothing to hide"
    assert store.file(KEY_FILE) is None
    hidden = redactor.text(SECRET)
    assert is_placeholder(hidden)
    assert len(store.file(KEY_FILE) or b"") == KEY_BYTES
    assert StoreRedactor(store, build).text(SECRET) == hidden
    assert StoreRedactor(MemoryStore(), build).text(SECRET) != hidden


class Raced(MemoryStore):
    """Another process makes its key just before ours."""

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        files: dict[str, bytes | None] = {KEY_FILE: b"w" * KEY_BYTES}
        super().commit([Commit(NO_WORKFLOW, Head(), files=files)])
        return super().commit(commits)


def test_who_loses_the_race_uses_the_key_of_the_winner() -> None:
    store = Raced()
    hidden = StoreRedactor(store, build).text(SECRET)
    assert store.file(KEY_FILE) == b"w" * KEY_BYTES
    assert hidden == build(b"w" * KEY_BYTES).text(SECRET)


class Full(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return [CheckpointWriteError("the disk is full")]


def test_a_key_that_cannot_be_kept_hides_nothing_and_says_so() -> None:
    with pytest.raises(CheckpointWriteError, match="the disk is full"):
        StoreRedactor(Full(), build).text(SECRET)


class ReadOnly(MemoryStore):
    read_only = True


def test_a_store_that_is_only_read_gets_no_key() -> None:
    store = ReadOnly()
    assert is_placeholder(StoreRedactor(store, build).text(SECRET))
    assert store.file(KEY_FILE) is None


@pytest.mark.parametrize(
    "options", [{"stage_id": SECRET}, {"agent_id": SECRET}, {"session_id": SECRET}, {"agent_version": SECRET}]
)
def test_a_name_that_looks_like_a_credential_is_refused_and_not_repeated(options: dict[str, Any]) -> None:
    service = make_service()
    with pytest.raises(InvalidIdError, match="looks like a secret") as caught:
        service.create_checkpoint("w", {"a": 1}, **options)
    assert SECRET not in str(caught.value)
    assert service.workflows() == []


def test_the_names_of_workflows_events_and_owners_are_looked_at_too() -> None:
    service = make_service()
    for refused in (
        lambda: service.create_checkpoint(SECRET, {}),
        lambda: service.append_event(SECRET, "X"),
        lambda: service.append_event("w", SECRET),
        lambda: service.append_event("w", "X", step_id=SECRET),
        lambda: service.acquire_lease("w", SECRET),
    ):
        with pytest.raises(InvalidIdError, match="looks like a secret"):
            refused()
    assert service.workflows() == []


def test_names_without_secrets_are_looked_at_once() -> None:
    looks = []

    class Counting(StoreRedactor):
        def text(self, text: str) -> str:
            looks.append(text)
            return super().text(text)

    redactor = Counting(MemoryStore(), build)
    for _ in range(3):
        redactor.check_names(workflow_id="w-1", agent_id=None)
    assert looks == ["w-1"]
    for number in range(5000):
        assert redactor.name(f"w-{number}") == f"w-{number}"


def test_an_error_does_not_repeat_a_secret() -> None:
    service = make_service()
    with pytest.raises(UnsupportedTypeError) as caught:
        service.create_checkpoint("w", {SECRET: object()})
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.args)
    assert "[REDACTED:" in caught.value.place


def test_logs_are_hidden_before_a_store_has_a_key_and_correlate_afterwards() -> None:
    logs = LogRedactor()
    assert logs.text(SECRET) == SECRET
    assert logs.tree({"a": SECRET}) == ({"a": SECRET}, [])
    assert logs.begin(build)
    assert not logs.begin(build)
    assert is_placeholder(logs.text(SECRET))
    logs.adopt(b"w" * KEY_BYTES)
    assert logs.text(SECRET) == build(b"w" * KEY_BYTES).text(SECRET)
    assert logs.tree({"a": SECRET})[1] == [["a"]]


def test_logs_are_hidden_by_the_rules_of_every_store_that_was_opened(tmp_path: Path) -> None:
    rules = tmp_path / "patterns.toml"
    rules.write_text("[patterns]\nemployee = 'EMP-[0-9]{6}'\n", encoding="utf-8")
    logs, said = LogRedactor(), f"EMP-123456 sent {SECRET}"
    assert logs.begin(redactor_maker("auto", None))
    assert "EMP-123456" in logs.text(said)
    assert not logs.begin(redactor_maker("auto", str(rules)))
    assert not logs.begin(redactor_maker("auto", None))
    hidden = logs.text(said)
    assert "[REDACTED:employee:" in hidden and SECRET not in hidden
    assert logs.tree({"a": said}) == ({"a": hidden}, [["a"], ["a"]])


class Disturbed(LogRedactor):
    """Another thread adopts the key of a store each time it was asked for what is current."""

    kept: list[Redactor] | None = None

    @property
    def _current(self) -> list[Redactor] | None:
        current, self.kept = self.kept, None
        return current

    @_current.setter
    def _current(self, redactors: list[Redactor] | None) -> None:
        self.kept = redactors


def test_logs_are_hidden_while_a_key_is_adopted() -> None:
    logs = Disturbed()
    logs.begin(build)
    assert is_placeholder(logs.text(SECRET))
    logs.kept = [build(b"w" * KEY_BYTES)]
    assert is_placeholder(logs.text(SECRET))


def test_the_logger_of_the_package_hides_secrets_once_a_store_was_opened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    make_kit()
    logging.getLogger("holdfast").warning("they sent %s", SECRET)
    assert SECRET not in caplog.text
    assert "[REDACTED:" in caplog.text


class Open:
    """Keeps the values of people without sealing them."""

    def seal_personal(self, subject: str, packed: bytes) -> tuple[str, str]:
        return subject, packed.hex()

    def open_personal(self, key_id: str, text: str) -> tuple[str, bytes] | None:
        return None if key_id == "gone" else (key_id, bytes.fromhex(text))


def test_the_values_of_people_are_sealed_without_their_secrets_and_say_so() -> None:
    people = HidingPeople(Open(), StoreRedactor(MemoryStore(), build), PACKER)
    key_id, text = people.seal_personal("ann", PACKER.pack({"password": "hunter2"}))
    with pytest.warns(RedactedStateWarning, match="without its secrets"):
        opened = people.open_personal(key_id, text)
    assert opened is not None
    assert is_placeholder(PACKER.unpack(opened[1])["password"])
    assert people.open_personal(*people.seal_personal("ann", PACKER.pack({"name": "Ann"}))) is not None
    assert people.open_personal("gone", "") is None


@pytest.mark.sweep
def test_opening_a_store_and_reading_it_does_not_wait_for_patterns() -> None:
    program = (
        "import sys, holdfast; service = holdfast.open('memory:', audit=True); service.load_latest('w');"
        "assert not {'re2', 'holdfast.domain.redaction', 'holdfast.domain.catalogue'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_in_an_encrypted_store_the_key_is_sealed_and_the_same_for_all() -> None:
    store = encrypted_store()
    vaults = [Vault(keyring(store, OLD_KEY)) for _ in range(2)]
    first, second = (StoreRedactor(store, build, vault).text(SECRET) for vault in vaults)
    assert first == second != SECRET
    assert len(store.file(KEY_FILE) or b"") > KEY_BYTES
    locked = StoreRedactor(store, build, Vault(Keyring(store, Xaes256Gcm(), [])))
    assert is_placeholder(locked.text(SECRET))
    assert locked.text(SECRET) != first
