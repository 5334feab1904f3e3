"""Holds and declarations on their way to another store: what must stay here must stay there, too.

They come before the workflows, and all of them, whichever workflows are copied: a hold too many keeps
something, one too few lets it go. What was erased in the target does not come back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from holdfast.application.holding import FOLDER as HOLDS
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.subjects import FOLDER, SECRET
from holdfast.domain.errors import CheckpointConflictError, CheckpointError, ConfigError
from holdfast.domain.json_reading import read_json
from holdfast.domain.keyring_file import KEYRING, tombstone_name
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Store

_FILES_AT_ONCE = 128
_ATTEMPTS_MAX = 100
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class PeopleCopy:
    """What came along of holds and declarations.

    Attributes:
        holds, declarations: how many were written.
        kept: pseudonyms that both stores know and whose declarations could not be opened: those of the
            target stayed as they were.
    """

    holds: int = 0
    declarations: int = 0
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    workflows: tuple[str, ...]

    def encode(self) -> bytes:
        fields = {"subject": self.name, "workflows": list(self.workflows)}
        return json.dumps(fields, ensure_ascii=False).encode()


def check_people(source: Store, target: Store) -> None:
    """Refuse a copy after which a hold or a declaration would not mean in the target what it means here.

    Raises:
        ConfigError: the two stores name people by different secrets.
        CheckpointConflictError: there is another hold of the same name in the target.
    """
    found = target.file(SECRET)
    is_other = found is not None and source.file(SECRET) != found
    if is_other and source.file(KEYRING) is None and _names_anybody(source):
        raise ConfigError(
            "the two stores name people by different secrets, so what is held or declared could not be found",
            place=target.url,
            hint="Copy into a new store.",
        )
    for name in source.files(HOLDS):
        there = target.file(name)
        if there is not None and there != source.file(name):
            raise CheckpointConflictError(
                "each store has another hold of this name",
                place=name,
                hint="See `holdfast hold list` of both; place one of them anew, and release it.",
            )


def bring_people(source: Store, target: Store, vault: Vault | None = None) -> PeopleCopy:
    """Give the target the holds and declarations it lacks; what both declare about somebody is united."""
    check_people(source, target)
    transport = _Transport(source, target, vault)
    transport.bring([SECRET])
    # Somebody may have made one just now.
    check_people(source, target)
    holds = transport.bring(source.files(HOLDS))
    declarations = transport.bring(source.files(FOLDER))
    return PeopleCopy(holds, declarations, tuple(sorted(transport.kept)))


def plan_people(source: Store, target: Store, vault: Vault | None = None) -> PeopleCopy:
    """Tell what would come along, and change nothing."""
    check_people(source, target)
    transport = _Transport(source, target, vault)
    holds, declarations = (transport.count(source.files(prefix)) for prefix in (HOLDS, FOLDER))
    return PeopleCopy(holds, declarations, tuple(sorted(transport.kept)))


class _Transport:
    """Brings small files, each by compare-and-set, many with one sync."""

    def __init__(self, source: Store, target: Store, vault: Vault | None) -> None:
        self._source = source
        self._target = target
        self._vault = vault
        self._is_encrypted = source.file(KEYRING) is not None
        self._erasures: list[bytes] | None = None
        self.kept: set[str] = set()

    def bring(self, names: Iterable[str]) -> int:
        """Bring what the target lacks of these; answer how many had to be written."""
        coming = iter(names)
        written = 0
        while some := list(islice(coming, _FILES_AT_ONCE)):
            written += self._bring_some(some)
        return written

    def count(self, names: Iterable[str]) -> int:
        """Tell how many of these would have to be written."""
        return sum(1 for name in names for _ in self._arriving(name))

    def _bring_some(self, names: list[str]) -> int:
        written = 0
        for _ in range(_ATTEMPTS_MAX):
            commits = [commit for name in names for commit in self._arriving(name)]
            if not commits:
                return written
            outcomes = self._target.commit(commits)
            for outcome in outcomes:
                if outcome is not None and not isinstance(outcome, CheckpointConflictError):
                    raise outcome
            written += outcomes.count(None)
            # What somebody else changed just now is looked at again.
            pairs = zip(commits, outcomes, strict=True)
            names = [next(iter(commit.files)) for commit, outcome in pairs if outcome is not None]
        raise CheckpointConflictError("others change the same files without pause", place=self._target.url)

    def _arriving(self, name: str) -> Iterator[Commit]:
        """Write a file, if there is anything to be written."""
        sent, found = self._source.file(name), self._target.file(name)
        if sent is None or sent == found:
            return
        expected = {name: found}
        data: bytes | None = sent if found is None else None
        if name.startswith(FOLDER) and self._is_encrypted:
            gone = tombstone_name(_key_id(sent))
            expected[gone] = None
            is_erased = self._target.file(gone) is not None
            data = None if is_erased else data or self._united_sealed(name, sent, found)
        elif name.startswith(FOLDER):
            data = self._united(name, sent, found)
        if data is not None:
            yield Commit(NO_WORKFLOW, Head(), files={name: data}, expected_files=expected)

    def _united_sealed(self, name: str, sent: bytes, found: bytes | None) -> bytes | None:
        """Unite two sealed declarations; None if the target's says everything, or nobody can tell."""
        ours, theirs = self._opened(sent), self._opened(found)
        if ours is None or theirs is None or self._vault is None:
            self.kept.add(name.removeprefix(FOLDER))
            return None
        new = [workflow_id for workflow_id in ours.workflows if workflow_id not in theirs.workflows]
        if not new:
            return None
        grown = _Declared(ours.name, (*theirs.workflows, *new))
        key_id, text = self._vault.seal_personal(grown.name, grown.encode())
        return json.dumps({"key": key_id, "sealed": text}).encode() + b"\n"

    def _opened(self, data: bytes | None) -> _Declared | None:
        """Open a sealed declaration; None if that cannot be done here."""
        try:
            fields = read_json(data or b"")
            opened = self._vault and self._vault.open_personal(fields["key"], fields["sealed"])
        except (CheckpointError, *_UNREADABLE):
            return None
        return _read(opened[1]) if opened else None

    def _united(self, name: str, sent: bytes, found: bytes | None) -> bytes | None:
        """Unite two declarations; None if the target's says everything, or one cannot be read."""
        pseudonym = name.removeprefix(FOLDER)
        ours, theirs = _read(sent), _read(found) if found is not None else _Declared("", ())
        if ours is None or theirs is None:
            # What cannot be read arrives as it is, where nothing is.
            self.kept.update([pseudonym] if found is not None else [])
            return sent if found is None else None
        new = [workflow_id for workflow_id in ours.workflows if workflow_id not in theirs.workflows]
        if new and self._was_erased(pseudonym):
            # The target was rid of this person; only what it never had is about them again.
            new = [workflow_id for workflow_id in new if self._target.head(workflow_id) == Head()]
        return _Declared(ours.name, (*theirs.workflows, *new)).encode() + b"\n" if new else None

    def _was_erased(self, pseudonym: str) -> bool:
        """Tell whether the target's trail says that a person was erased there."""
        if self._erasures is None:
            lines = (line for part in (self._target.leaves(), self._target.waiting()) for line in part)
            self._erasures = [line for line in lines if b'"DATA_ERASED"' in line]
        return any(pseudonym.encode() in line for line in self._erasures)


def _names_anybody(store: Store) -> bool:
    """Tell whether anything in a store names a person by a pseudonym."""
    if any(True for _ in store.files(FOLDER)):
        return True
    return any(_is_on_subject(store.file(name) or b"") for name in store.files(HOLDS))


def _is_on_subject(hold: bytes) -> bool:
    try:
        return read_json(hold)["subject"] is not None
    except _UNREADABLE:
        # It may be.
        return True


def _key_id(sealed: bytes) -> str:
    """Name the key of a sealed declaration; what cannot be read has none that could be destroyed."""
    try:
        return str(read_json(sealed)["key"])
    except _UNREADABLE:
        return "none"


def _read(data: bytes) -> _Declared | None:
    try:
        fields = read_json(data)
        return _Declared(fields["subject"], tuple(fields["workflows"]))
    except _UNREADABLE:
        return None
