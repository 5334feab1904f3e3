"""Looking after the keys of an encrypted store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.application.kit import Kit
from holdfast.application.secrecy.key_rotation import Rotated, Rotation
from holdfast.application.secrecy.keyring import Keyring
from holdfast.domain.errors import CheckpointError, ConfigError
from holdfast.domain.keyring_file import LOOKUPS, WrappedKey, data_key_name
from holdfast.ports import KeySource


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What is known about one data key; its scope is empty where it cannot be unwrapped."""

    id: str
    scope: str
    #: Check values of the key-encryption keys.
    wrapped_by: tuple[str, ...]
    problem: str = ""


class Keys:
    """The keys of one store, for whoever has to care for them."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    @property
    def keyring(self) -> Keyring:
        """The keyring.

        Raises:
            ConfigError: the store is not encrypted.
        """
        if self._kit.vault is None:
            raise ConfigError("the store is not encrypted, and has no keys", place=self._kit.store.url)
        return self._kit.vault.keyring

    def rotate(self, new: KeySource) -> Rotated:
        """Wrap all data keys by a new key-encryption key; others may write meanwhile. See `Rotation`."""
        return Rotation(self._kit.store, self.keyring).run(new)

    def listing(self) -> Iterator[KeyEntry]:
        """Tell what is known about every data key; without the key-encryption key that is its id."""
        keyring, store = self.keyring, self._kit.store
        if keyring.is_locked and keyring.sources:
            keyring.unlock()
        for key_id in keyring.key_ids():
            data = store.file(data_key_name(key_id))
            if data is not None:
                yield _entry(keyring, key_id, data)

    def check(self) -> list[str]:
        """Find what is wrong: keys that do not open, scopes that lead to none, a rotation half done.

        Raises:
            KeyUnavailableError: the key-encryption key is not at hand.
        """
        keyring, store = self.keyring, self._kit.store
        keyring.unlock()
        entries = list(self.listing())
        problems = [entry.problem for entry in entries if entry.problem]
        known = {entry.id for entry in entries}
        for name in store.files(LOOKUPS):
            named = store.file(name)
            if named is not None and named.decode("ascii", "replace") not in known:
                problems.append(f"a scope leads to a key that is not there: {name}")
        if len(keyring.file.wrappings) > 1:
            problems.append("a rotation is not finished: call `holdfast keys rotate` again")
        return problems


def _entry(keyring: Keyring, key_id: str, data: bytes) -> KeyEntry:
    wrapped_by: tuple[str, ...] = ()
    try:
        wrapped = WrappedKey.decode(data, data_key_name(key_id))
        wrapped_by = tuple(wrapped.wraps)
        scope = "" if keyring.is_locked else str(keyring.unwrap(key_id, wrapped)["scope"])
    except (CheckpointError, KeyError) as problem:
        return KeyEntry(key_id, "", wrapped_by, str(problem))
    return KeyEntry(key_id, scope, wrapped_by)
