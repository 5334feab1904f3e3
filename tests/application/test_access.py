"""The tokens of a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.domain.access import RANDOM_BYTES, Scope, encode_token, text_of
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointNotFoundError,
    ConfigError,
    InvalidIdError,
    StoreDamageWarning,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from tests.application.services import make_service
from tests.encrypted import encrypted_store
from tests.encrypted import service as encrypted_service

SECRET = "sk-ant-api03-" + "Zq7Lw2Xe9Rt4Yu1Io6Pa3Sd8Fg5Hj0Kl" * 2


def test_a_token_is_recognised_until_it_is_revoked():
    with make_service() as service:
        token, text = service.tokens.create("ann", ["viewer"])
        assert service.tokens.recognise(text) == token
        service.tokens.revoke(token.id)
        assert service.tokens.recognise(text) is None
        assert service.tokens.listing() == []


def test_making_and_revoking_are_told():
    with make_service() as service:
        token, text = service.tokens.create("ann", ["metrics"])
        service.tokens.revoke(token.id)
        made, revoked = service.audit.query_events(
            event_types=[AuditType.TOKEN_CREATED, AuditType.TOKEN_REVOKED]
        )
    assert made.facts == {"token": token.id, "name": "ann", "scopes": "metrics"}
    assert revoked.facts == {"token": token.id}
    assert text not in f"{made} {revoked}"


def test_one_that_expired_is_not_recognised():
    with make_service() as service:
        clock: Any = service._engine.kit.clock
        soon = clock.now() + timedelta(seconds=2)
        _, text = service.tokens.create("ann", ["viewer"], expires_at=soon)
        clock.advance(timedelta(seconds=5))
        assert service.tokens.recognise(text) is None


def test_one_that_would_have_expired_already_is_not_made():
    with make_service() as service, pytest.raises(ConfigError, match="expired"):
        service.tokens.create("ann", ["viewer"], expires_at=service._engine.kit.clock.now())


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_it_is_for_somebody(name):
    with make_service() as service, pytest.raises(InvalidIdError):
        service.tokens.create(name, ["viewer"])


def test_a_name_that_looks_like_a_credential_is_refused_and_not_repeated():
    with make_service() as service:
        with pytest.raises(InvalidIdError, match="holds what looks like a secret") as refusal:
            service.tokens.create(f"for {SECRET}", ["viewer"])
        assert SECRET not in f"{refusal.value} {refusal.value.place}"
        assert service.tokens.listing() == []


def test_where_nothing_is_hidden_any_name_will_do():
    with encrypted_service(encrypted_store()) as service:
        assert service.tokens.create(SECRET, ["viewer"])[0].name == SECRET


@pytest.mark.parametrize("token_id", ["00000000", "../../etc", ""])
def test_what_is_not_there_cannot_be_revoked(token_id):
    with make_service() as service, pytest.raises(CheckpointNotFoundError):
        service.tokens.revoke(token_id)


def test_a_damaged_one_is_warned_about_recognised_by_nobody_and_can_be_revoked():
    with make_service() as service:
        token, text = service.tokens.create("ann", ["viewer"])
        _, whole = service.tokens.create("bob", ["viewer"])
        service._engine.kit.store.commit([Commit(NO_WORKFLOW, Head(), files={token.file: b"torn"})])
        assert service.tokens.recognise(text) is None
        with pytest.warns(StoreDamageWarning, match=token.id):
            assert [one.name for one in service.tokens.listing()] == ["bob"]
        service.tokens.revoke(token.id)
        assert service.tokens.recognise(whole) is not None


def test_the_tokens_of_an_encrypted_store_are_sealed():
    store = encrypted_store()
    with encrypted_service(store) as service:
        token, text = service.tokens.create("ann", ["viewer"])
        assert token.sha256.encode() not in (store.file(token.file) or b"")
        assert service.tokens.recognise(text) == token
        assert service.tokens.listing() == [token]


def test_who_only_writes_the_files_of_an_encrypted_store_lets_nobody_in():
    store = encrypted_store()
    with encrypted_service(store) as service:
        made, _ = service.tokens.create("ann", ["viewer"])
        token_id, text, digest = text_of(bytes(RANDOM_BYTES))
        forged = replace(made, id=token_id, sha256=digest, scopes=frozenset(Scope))
        for data in (encode_token(forged), store.file(made.file)):
            store.commit([Commit(NO_WORKFLOW, Head(), files={forged.file: data})])
            assert service.tokens.recognise(text) is None
        with pytest.warns(StoreDamageWarning):
            assert service.tokens.listing() == [made]
        service.tokens.revoke(token_id)
        assert service.tokens.listing() == [made]
