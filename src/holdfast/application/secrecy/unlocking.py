"""Opening the vault of a store: whether it is encrypted, whether it should be, and with which key."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from holdfast.application.secrecy.keyring import KEY_BYTES, LOCKED, Keyring
from holdfast.application.secrecy.sealing import Vault
from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointConflictError, ConfigError, KeyUnavailableError
from holdfast.domain.keyring_file import KEYRING, KeyringFile, Wrapping, check_value
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Cipher, KeySource, Store


def may_create(sources: Sequence[KeySource], *, encrypt: bool) -> bool:
    """Tell whether a store that is not there may be made: not if it should have been an encrypted one.

    Raises:
        KeyUnavailableError: it is to be encrypted, and the key is not at hand.
    """
    if not encrypt:
        return not sources
    if not sources:
        raise KeyUnavailableError(
            "the store is to be encrypted, and no key is configured",
            hint="Make one with `holdfast keys new --out FILE`, and set encryption_key to file:FILE.",
        )
    sources[0].fetch()
    return True


def open_vault(
    store: Store, cipher: Callable[[], Cipher], sources: Sequence[KeySource], *, encrypt: bool
) -> Vault | None:
    """Answer what seals and opens, if the store is an encrypted one or is to become one.

    A store that is only read is unlocked when something has to be opened: what is in the clear, anybody
    may list.

    Args:
        store: the store.
        cipher: makes the cipher, which needs a package.
        sources: where the key-encryption key is.
        encrypt: make a store that holds nothing yet an encrypted one.

    Raises:
        ConfigError: a key is configured and the store is not encrypted: its keyring may have been taken
            away, so that what is written next would lie open.
        KeyUnavailableError: the store is opened for writing, and its key is not at hand.
    """
    is_encrypted = store.file(KEYRING) is not None
    if not is_encrypted and not encrypt and not sources:
        return None
    if not is_encrypted and (store.read_only or not encrypt):
        raise ConfigError(
            "a key is configured, and the store is not encrypted",
            place=store.url,
            hint="Make a new one with `holdfast init --encrypt`, or leave encryption_key out.",
        )
    keyring = Keyring(store, cipher(), sources) if is_encrypted else create_keyring(store, cipher(), sources)
    if not store.read_only:
        keyring.unlock()
    return Vault(keyring)


def create_keyring(store: Store, cipher: Cipher, sources: Sequence[KeySource]) -> Keyring:
    """Make a store that holds nothing yet an encrypted one.

    Raises:
        ConfigError: it holds something already.
        KeyUnavailableError: there is no key to wrap others with.
    """
    if any(True for _ in store.workflows()) or any(True for _ in store.sessions()):
        raise ConfigError(
            "the store holds data that is not encrypted",
            place=store.url,
            hint="Make a new store with --encrypt, and record into that one.",
        )
    if not sources:
        raise KeyUnavailableError("the store is to be encrypted, and no key is configured", hint=LOCKED)
    keyring_id, material = secrets.token_hex(16), sources[0].fetch()
    check, kek = check_value(material, keyring_id), cipher.key(material)
    bound = plainjson.dumps(["holdfast-key/1", cipher.name, keyring_id, check, "index"])
    wrapping = Wrapping(sources[0].name, kek.seal(secrets.token_bytes(KEY_BYTES), bound))
    made = KeyringFile(keyring_id, cipher.name, check, {check: wrapping})
    commit = Commit(NO_WORKFLOW, Head(), files={KEYRING: made.encode()}, expected_files={KEYRING: None})
    [outcome] = store.commit([commit])
    if outcome is not None and not isinstance(outcome, CheckpointConflictError):
        raise outcome
    keyring = Keyring(store, cipher, sources)
    keyring.accept(material)
    return keyring
