"""The tokens of a store: made, listed, revoked and recognised. Only their sums are kept."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable
from datetime import datetime

from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail, actor_of
from holdfast.domain.access import (
    PREFIX,
    RANDOM_BYTES,
    Token,
    decode_token,
    encode_token,
    file_of_id,
    file_of_text,
    id_of_file,
    scopes_of,
    text_of,
)
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ConfigError,
    StoreDamageWarning,
)
from holdfast.domain.ids import check_id


class Tokens:
    """Looks after who may ask the server of a store for what."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail

    def create(
        self, name: str, scopes: Iterable[str], *, expires_at: datetime | None = None
    ) -> tuple[Token, str]:
        """Make a token; its text is answered now and never again.

        Args:
            name: who it is for; what is done with it is told under this name.
            scopes: scopes and roles, see `domain.access`.
            expires_at: the moment from which it is worth nothing.

        Raises:
            ConfigError: a scope is none, or it would have expired already.
            InvalidIdError: the name is none, or looks like a credential.
        """
        check_id("token", name)
        if self._kit.redactor is not None:
            self._kit.redactor.check_names(token=name)
        now = self._kit.clock.now()
        if expires_at is not None and expires_at <= now:
            raise ConfigError("the token would have expired already", place=name)
        token_id, text, digest = text_of(secrets.token_bytes(RANDOM_BYTES))
        token = Token(token_id, name, digest, scopes_of(scopes), now, actor_of(self._kit), expires_at)
        facts = {"token": token.id, "name": name, "scopes": " ".join(sorted(token.scopes))}
        told = self._trail.told(AuditType.TOKEN_CREATED, facts=facts)
        self._trail.commit(told, {token.file: self._sealed(token)}, {token.file: None})
        return token, text

    def revoke(self, token_id: str) -> None:
        """Let a token be worth nothing from now on; a damaged one can be revoked, too.

        Raises:
            CheckpointNotFoundError: there is none.
        """
        name = file_of_id(token_id)
        data = self._kit.store.file(name) if name in self._kit.store.files(PREFIX) else None
        if data is None:
            raise CheckpointNotFoundError(
                "there is no such token", place=token_id, hint="See `holdfast token list`."
            )
        told = self._trail.told(AuditType.TOKEN_REVOKED, facts={"token": token_id})
        self._trail.commit(told, {name: None}, {name: data})

    def listing(self) -> list[Token]:
        """Tell the tokens, the oldest first; one that is damaged is warned about."""
        found = []
        for name in self._kit.store.files(PREFIX):
            data = self._kit.store.file(name)
            if data is None:
                continue
            try:
                found.append(self._opened(data, name))
            except CheckpointCorruptError as problem:
                said = f"token {id_of_file(name)}: {problem.message}"
                warnings.warn(said, StoreDamageWarning, stacklevel=2)
        return sorted(found, key=lambda token: (token.created_at, token.id))

    def recognise(self, text: str) -> Token | None:
        """Answer the token of a text, if it is one and has not expired."""
        name = file_of_text(text)
        data = None if name is None else self._kit.store.file(name)
        if name is None or data is None:
            return None
        try:
            token = self._opened(data, name)
        except CheckpointCorruptError:
            return None
        return token if token.is_text(text) and not token.has_expired(self._kit.clock.now()) else None

    def _sealed(self, token: Token) -> bytes:
        """Seal a token of an encrypted store: who only writes its files must not let anybody in."""
        data, vault = encode_token(token), self._kit.vault
        return data if vault is None else vault.seal_file(token.file, data)

    def _opened(self, data: bytes, name: str) -> Token:
        vault = self._kit.vault
        return decode_token(data if vault is None else vault.open_file(name, data), name)
