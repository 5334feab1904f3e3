"""The redactor of a store: made when first needed, under a key that all its processes share.

The key is read, or made, when the first secret is met: most stores never see one.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.application.fork_gate import GATE
from holdfast.application.secrecy.sealing import Vault
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    InvalidIdError,
    RedactedStateWarning,
)
from holdfast.domain.personal import People
from holdfast.domain.placeholders import Key, may_hold
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Packer, Store

# Imported when the first secret may be met: opening a store must not wait for patterns.
if TYPE_CHECKING:
    from holdfast.domain.delta import Operation
    from holdfast.domain.redaction import Grown, Redactor
    from holdfast.domain.secret_tree import Path

KEY_FILE = "keys/redaction"
KEY_BYTES = 32

#: So many names that hold no secret are remembered.
_NAMES_MAX = 4096

Build = Callable[[Key], "Redactor"]


class StoreRedactor:
    """Hides secrets before anything goes to a store; equal ones get equal placeholders all over it."""

    def __init__(self, store: Store, build: Build, vault: Vault | None = None) -> None:
        self._store = store
        self._vault = vault
        self._build = build
        self._names: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """Take what a process needs of its own; what a forked child has was in its parent's hands."""
        self._ready: Redactor | None = None

    def prepare(self) -> Redactor:
        """Make the redactor unless it is there."""
        if self._ready is None:
            with GATE:
                if self._ready is None:
                    self._ready = self._build(self._key)
        return self._ready

    def _key(self) -> bytes:
        key = _key_of(self._store, self._vault)
        LOGS.adopt(key)
        return key

    def text(self, text: str) -> str:
        """Hide the secrets of a text."""
        return self.prepare().text(text)

    def tree(self, tree: Any) -> Any:
        """Answer a plain tree without its secrets; one that has none is answered as it is."""
        return self.prepare().tree(tree)[0]

    def operations(self, ops: Iterable[Operation], grown: Grown) -> tuple[list[Operation], list[Path]]:
        """Hide the secrets that operations carry; see Redactor."""
        return (self._ready or self.prepare()).operations(ops, grown)

    def packed(self, data: bytes, packer: Packer) -> bytes:
        """Hide the secrets of a packed value."""
        plain = packer.unpack(data)
        hidden = self.tree(plain)
        return data if hidden is plain else packer.pack_plain(hidden)

    def name(self, text: str) -> str:
        """Hide the secrets of a name; those that have none are remembered."""
        if text in self._names:
            return text
        hidden = self.text(text)
        if hidden == text:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            self._names.add(text)
        return hidden

    def check_names(self, **names: str | None) -> None:
        """Refuse names that look like credentials.

        Raises:
            InvalidIdError: one does; the error does not repeat it.
        """
        for kind, text in names.items():
            if text and text not in self._names and (hidden := self.name(text)) != text:
                raise InvalidIdError(
                    f"the {kind.replace('_', ' ')} holds what looks like a secret",
                    place=hidden,
                    hint="Names are stored as they are, for good: use one that anybody may see.",
                )

    def conceal(self, error: CheckpointError) -> None:
        """Hide the secrets in what an error says: it may repeat keys or values of the caller's."""
        # The store may be what failed: it is not asked for its key now.
        error.message, error.place = LOGS.text(error.message), LOGS.text(error.place)
        error.hint = LOGS.text(error.hint)
        error.args = (error.message,)


class HidingPeople:
    """Seals the values of people without the secrets in them."""

    def __init__(self, people: People, redactor: StoreRedactor, packer: Packer) -> None:
        self._people = people
        self._redactor = redactor
        self._packer = packer

    def seal_personal(self, subject: str, packed: bytes) -> tuple[str, str]:
        """Seal a person's value; answers the id of the key and the text to store."""
        return self._people.seal_personal(subject, self._redactor.packed(packed, self._packer))

    def open_personal(self, key_id: str, text: str) -> tuple[str, bytes] | None:
        """Open a person's value, and say if it lacks secrets: nobody else can see that."""
        opened = self._people.open_personal(key_id, text)
        if opened is not None and may_hold(opened[1]):
            said = "a person's value was stored without its secrets"
            warnings.warn(RedactedStateWarning(said), stacklevel=2)
        return opened


class LogRedactor:
    """Hides secrets in logs, which are written at any moment: it never waits for a store.

    A line does not say which store it is about: it is hidden by the rules of all that were opened.
    """

    def __init__(self) -> None:
        self._builds: list[Build] = []
        self._key = secrets.token_bytes(KEY_BYTES)
        self._current: list[Redactor] | None = None

    def begin(self, build: Build) -> bool:
        """Say how a store makes its redactor; True if no store said so before."""
        with GATE:
            is_first = not self._builds
            if build not in self._builds:
                self._builds.append(build)
                self._current = None
        return is_first

    def begin_anew(self) -> None:
        """Forget, in a forked child, what its parent's threads may have been in the middle of."""
        self._current = None

    def adopt(self, key: bytes) -> None:
        """Use the key of a store, so that placeholders are the same in its logs."""
        self._key = key
        self._current = None

    def text(self, text: str) -> str:
        """Hide the secrets of a text."""
        for redactor in self._redactors():
            text = redactor.text(text)
        return text

    def tree(self, tree: Any) -> tuple[Any, list[Path]]:
        """Hide the secrets of a plain tree."""
        hidden: list[Path] = []
        for redactor in self._redactors():
            tree, paths = redactor.tree(tree)
            hidden += paths
        return tree, hidden

    def _redactors(self) -> list[Redactor]:
        # Read once: at any moment the key of another store is adopted, and what is logged then has secrets.
        current = self._current
        if current is None:
            with GATE:
                current = self._current = [build(self._key) for build in self._builds]
        return current


#: One for the process, as loggers are.
LOGS = LogRedactor()


def _key_of(store: Store, vault: Vault | None) -> bytes:
    """Answer the store's key, made at first need; what is read only need not agree with anybody."""
    fresh = secrets.token_bytes(KEY_BYTES)
    stored = store.file(KEY_FILE)
    if (vault is not None and vault.is_locked) or (stored is None and store.read_only):
        return fresh
    if stored is None:
        sealed = fresh if vault is None else vault.seal_file(KEY_FILE, fresh)
        commit = Commit(NO_WORKFLOW, Head(), files={KEY_FILE: sealed}, expected_files={KEY_FILE: None})
        [outcome] = store.commit([commit])
        if outcome is None:
            return fresh
        stored = store.file(KEY_FILE)
        if not isinstance(outcome, CheckpointConflictError) or stored is None:
            raise outcome
    return stored if vault is None else vault.open_file(KEY_FILE, stored)
