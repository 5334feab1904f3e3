"""Scopes, roles and tokens."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.access import (
    RANDOM_BYTES,
    ROLES,
    Scope,
    Token,
    decode_token,
    encode_token,
    file_of_text,
    may,
    scopes_of,
    text_of,
)
from holdfast.domain.errors import CheckpointCorruptError, ConfigError

NOW = datetime(2026, 1, 11, 12, tzinfo=UTC)


def token(**more):
    token_id, _, digest = text_of(secrets.token_bytes(RANDOM_BYTES))
    return replace(Token(token_id, "ann", digest, ROLES["viewer"], NOW), **more)


@given(
    st.text(min_size=1, max_size=20).filter(str.isprintable),
    st.sets(st.sampled_from(list(Scope)), min_size=1),
    st.one_of(st.none(), st.datetimes(timezones=st.just(UTC), min_value=datetime(2000, 1, 1))),
)
def test_what_is_written_is_read_again(name, scopes, expires_at):
    made = token(name=name, scopes=frozenset(scopes), expires_at=expires_at)
    assert decode_token(encode_token(made), made.file) == made


def test_a_text_is_known_by_its_sum_alone():
    token_id, text, digest = text_of(secrets.token_bytes(RANDOM_BYTES))
    made = token(id=token_id, sha256=digest)
    assert made.is_text(text) and not made.is_text(text + "x")
    assert file_of_text(text) == made.file
    assert text not in encode_token(made).decode()


@pytest.mark.parametrize(
    "text", ["", "x", "hf_", "hf_zzzzzzzz_" + "a" * 43, "hf_00000000_" + "a" * 42, "\ud800"]
)
def test_what_is_no_token_has_no_file(text):
    assert file_of_text(text) is None


def test_two_tokens_are_never_the_same():
    assert len({text_of(secrets.token_bytes(RANDOM_BYTES))[1] for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"id": 1}', b"\xff", b'{"id":"a","name":"b"}']
)
def test_what_is_damaged_is_no_token(data):
    with pytest.raises(CheckpointCorruptError):
        decode_token(data, "access/token-00000000.json")


def test_a_token_under_another_name_is_none():
    made = token()
    with pytest.raises(CheckpointCorruptError, match="another file"):
        decode_token(encode_token(made), "access/token-ffffffff.json")


def test_it_expires_at_its_moment():
    made = token(expires_at=NOW)
    assert made.has_expired(NOW) and not made.has_expired(NOW - timedelta(microseconds=1))
    assert not token().has_expired(NOW + timedelta(days=10_000))


def test_roles_and_scopes_may_be_mixed():
    assert scopes_of(["metrics", "audit:read"]) == {Scope.METRICS, Scope.AUDIT_READ}
    assert scopes_of(["viewer"]) == ROLES["viewer"]


@pytest.mark.parametrize("words", [[], ["reed"], ["viewer", ""]])
def test_what_is_neither_is_refused(words):
    with pytest.raises(ConfigError):
        scopes_of(words)


@given(st.sampled_from(list(Scope)))
def test_an_admin_may_do_everything(scope):
    assert may({Scope.ADMIN}, scope)
    assert may({scope}, scope)
    assert not may(set(Scope) - {scope, Scope.ADMIN}, scope)
