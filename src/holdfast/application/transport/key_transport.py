"""The keyring on its way to another store: ciphertext is copied as it is, and its wrapped keys go with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.domain.errors import CheckpointConflictError, ConfigError
from holdfast.domain.keyring_file import (
    DATA_KEYS,
    KEYRING,
    LOOKUPS,
    TOMBSTONES,
    KeyringFile,
    data_key_name,
    tombstone_name,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Store

_FILES_AT_ONCE = 128


def check_keyrings(source: Store, target: Store) -> None:
    """Refuse a copy whose ciphertext could not be opened in the target, or that would not be one there.

    Raises:
        ConfigError: one of the stores is encrypted and the other is not, or with other keys.
    """
    sent, found = _keyring(source), _keyring(target)
    if sent is None and found is None:
        return
    if sent is None:
        raise _refused(target, "the target is encrypted and the source is not", "Copy into another store.")
    if found is None:
        if _is_used(target):
            raise _refused(
                target,
                "the source is encrypted, and the target holds data that is not",
                "Copy into a new store.",
            )
        return
    if sent.id != found.id:
        raise _refused(
            target, "both stores are encrypted, each with keys of its own", "Copy into a new, empty store."
        )
    if sent.current != found.current:
        raise _refused(
            target,
            "the keys of the two stores are wrapped by different keys",
            "Rotate both to the same key first: `holdfast keys rotate`.",
        )


def bring_keys(source: Store, target: Store) -> None:
    """Give the target the wrapped keys it lacks; one that was destroyed there does not come back."""
    check_keyrings(source, target)
    ring = source.file(KEYRING)
    if ring is None:
        return
    if target.file(KEYRING) is None:
        _commit(target, [_arriving(KEYRING, ring)])
    for prefix in (TOMBSTONES, DATA_KEYS, LOOKUPS):
        lacking = _lacking(source, target, prefix)
        while some := list(islice(lacking, _FILES_AT_ONCE)):
            found = [(name, source.file(name), key_id) for name, key_id in some]
            _commit(
                target, [_arriving(name, data, key_id) for name, data, key_id in found if data is not None]
            )
        if prefix == TOMBSTONES:
            _commit(target, list(_destroyed(target)))


def _destroyed(target: Store) -> Iterator[Commit]:
    """Take away keys of the target that the source tells were destroyed, and what leads to them.

    While a scope led to one nothing more could be sealed for it.
    """
    gone = {name.removeprefix(TOMBSTONES) for name in target.files(TOMBSTONES)}
    for key_id in gone.intersection(name.removeprefix(DATA_KEYS) for name in target.files(DATA_KEYS)):
        yield Commit(NO_WORKFLOW, Head(), files={data_key_name(key_id): None})
    for name in target.files(LOOKUPS):
        named = target.file(name)
        if named is not None and named.decode("ascii", "replace") in gone:
            yield Commit(NO_WORKFLOW, Head(), files={name: None}, expected_files={name: named})


def _lacking(source: Store, target: Store, prefix: str) -> Iterator[tuple[str, str]]:
    """Name the files of a kind that the target lacks, each with the key that it belongs to."""
    for name in source.files(prefix):
        key_id = _key_id(source, name, prefix)
        if target.file(name) is None and target.file(tombstone_name(key_id)) is None:
            yield name, key_id


def _key_id(source: Store, name: str, prefix: str) -> str:
    if prefix == LOOKUPS:
        return (source.file(name) or b"").decode("ascii", "replace") or "none"
    return name.removeprefix(prefix)


def _arriving(name: str, data: bytes, key_id: str = "") -> Commit:
    """Write a file that is not there yet, unless its key was destroyed in the target until just now."""
    expected = [name, *([tombstone_name(key_id)] if key_id else [])]
    return Commit(NO_WORKFLOW, Head(), files={name: data}, expected_files=dict.fromkeys(expected))


def _commit(target: Store, commits: list[Commit]) -> None:
    """Write files one by one with one sync; what another copy brought just now is there already."""
    for outcome in target.commit(commits):
        if outcome is not None and not isinstance(outcome, CheckpointConflictError):
            raise outcome


def _keyring(store: Store) -> KeyringFile | None:
    data = store.file(KEYRING)
    return None if data is None else KeyringFile.decode(data)


def _is_used(store: Store) -> bool:
    return any(True for _ in store.workflows()) or any(True for _ in store.sessions())


def _refused(target: Store, problem: str, hint: str) -> ConfigError:
    return ConfigError(problem, place=target.url, hint=hint)
