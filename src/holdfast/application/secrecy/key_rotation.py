"""Rotation: all data keys wrapped by another key-encryption key, while everybody goes on.

Nothing that was sealed changes. The new key is announced, every data key is wrapped by both, then new data
keys must be wrapped by the new one, and the wrappings by the old one go. Each step can be repeated: after a
crash the same call goes on from where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.application.secrecy.keyring import Keyring
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointConflictError, ConfigError
from holdfast.domain.keyring_file import (
    KEYRING,
    KeyringFile,
    WrappedKey,
    Wrapping,
    check_value,
    data_key_name,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import KeySource, Store

_KEYS_AT_ONCE = 64
_ATTEMPTS_MAX = 100

Change = Callable[[KeyringFile], KeyringFile]


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: the check values of both keys, and how many data keys are wrapped anew."""

    old: str
    new: str
    keys: int


class Rotation:
    """Brings one keyring to a new key-encryption key."""

    def __init__(self, store: Store, keyring: Keyring) -> None:
        self._store = store
        self._keyring = keyring

    def run(self, new: KeySource) -> Rotated:
        """Rotate, or finish a rotation that was interrupted.

        Raises:
            ConfigError: the keys are wrapped by that one already, or a rotation to a third is not finished.
            KeyUnavailableError: the old key or the new one is not at hand.
        """
        ring = self._keyring
        ring.unlock()
        material = new.fetch()
        check = check_value(material, ring.id)
        ring.accept(material)
        old = self._announce(new.name, check)
        self._rewrap(check, alone=False)
        # Whoever makes a data key expects the keyring to be as it was read: from now on, by the new one.
        self._change(lambda file: replace(file, current=check))
        self._rewrap(check, alone=True)
        count = sum(1 for _ in ring.key_ids())
        facts: dict[str, int | str] = {"from": old, "to": check, "keys": count}
        self._change(lambda file: replace(file, wrappings={check: file.wrappings[check]}), facts)
        return Rotated(old, check, count)

    def _announce(self, name: str, check: str) -> str:
        """Add the new key to the keyring; answers the check value of the one that it replaces."""
        found = self._keyring.read_file()
        if set(found.wrappings) == {check}:
            raise ConfigError("the keys are wrapped by this key already", hint="Name a new one.")
        others = [known for known in found.wrappings if known != check]
        if len(others) > 1:
            raise ConfigError(
                "a rotation to another key was not finished",
                hint="Call again with the key it was begun with.",
            )
        wrapping = Wrapping(name, self._keyring.index_for(check))
        self._change(lambda file: replace(file, wrappings={**file.wrappings, check: wrapping}))
        return others[0]

    def _change(self, change: Change, facts: dict[str, int | str] | None = None) -> None:
        ring = self._keyring
        for _ in range(_ATTEMPTS_MAX):
            ring.file = ring.read_file()
            changed = change(ring.file)
            told = None if facts is None else AuditType.KEY_ROTATED
            if ring.commit(told, facts or {}, {KEYRING: changed.encode()}, {KEYRING: ring.raw}):
                ring.file = changed
                return
        raise _busy()

    def _rewrap(self, check: str, *, alone: bool) -> None:
        """Wrap every data key by one key: beside others, of which new ones may come, or alone."""
        for _ in range(_ATTEMPTS_MAX):
            todo = self._outdated(check, alone=alone)
            is_done = True
            while commits := list(islice(todo, _KEYS_AT_ONCE)):
                is_done = not alone
                for outcome in self._store.commit(commits):
                    # Destroyed meanwhile, or wrapped anew by somebody else: looked at again.
                    if outcome is not None and not isinstance(outcome, CheckpointConflictError):
                        raise outcome
            if is_done:
                return
        raise _busy()

    def _outdated(self, check: str, *, alone: bool) -> Iterator[Commit]:
        ring = self._keyring
        for key_id in list(ring.key_ids()):
            name = data_key_name(key_id)
            data = self._store.file(name)
            if data is None:
                continue
            wraps = dict(WrappedKey.decode(data, name).wraps)
            if check not in wraps:
                wraps[check] = ring.wrap(key_id, ring.unwrap(key_id, WrappedKey(wraps)), check)
            changed = WrappedKey({check: wraps[check]} if alone else wraps).encode()
            if changed != data:
                yield Commit(NO_WORKFLOW, Head(), files={name: changed}, expected_files={name: data})


def _busy() -> CheckpointConflictError:
    return CheckpointConflictError("the keyring was changed by others all the time", hint="Try again.")
