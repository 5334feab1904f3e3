"""Small files of the store itself, by name: tiles, signed heads, keys. They lie there by that name."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import suppress

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import TEMPORARY_SUFFIX, ancestors
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.payload_slots import is_erasure
from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ids import check_file_name
from holdfast.domain.record import Commit

_KEYS = "keys/"
_IMPORTS = "imports/"
_QUARANTINE = f"{layout.QUARANTINE}/"
#: All else in the folder is the store's alone.
ROOTS = (
    f"{layout.AUDIT}/log/",
    "access/",
    "holds/",
    "imports/",
    _KEYS,
    _QUARANTINE,
    "recovery/",
    "reports/",
    "requests/",
    "sessions/",
)
_OURS = (layout.ORDER, layout.SESSIONS)
_PAYLOADS_END = f"/{layout.PAYLOADS}"
_REPLACED_TO_ERASE = (f"{layout.EVENTS}/", _IMPORTS)
_ANSWERS = "access/answers/"
#: Stands in an answer that was emptied.
_NOT_KEPT = b'"answer_not_kept"'


def path_of(name: str) -> str:
    """Where a file lies, if there may be one of that name.

    Raises:
        InvalidIdError: if there may not.
    """
    check_file_name(name)
    is_ours = name.startswith(_OURS) or name.endswith(TEMPORARY_SUFFIX)
    if is_ours or not name.startswith(ROOTS):
        raise InvalidIdError(
            "no file of the store may have this name",
            place=name,
            hint=f"Names begin with {', '.join(ROOTS)}.",
        )
    return name


def is_file_name(name: str) -> bool:
    """Tell whether there may be a file of that name."""
    try:
        return bool(path_of(name))
    except InvalidIdError:
        return False


def read(files: Files, name: str) -> bytes | None:
    """What a file holds, None if there is none."""
    try:
        return files.read(path_of(name))
    except (IsADirectoryError, NotADirectoryError):
        return None


def names(files: Files, prefix: str) -> Iterator[str]:
    """Names of all files that start so, in order."""
    found = []
    for root in ROOTS:
        if root.startswith(prefix) or prefix.startswith(root):
            # No further up than the prefix says: there may be thousands of tiles beside a few heads.
            folder = max(root.rstrip("/"), prefix.rpartition("/")[0], key=len)
            with suppress(NotADirectoryError):
                found += files.walk(folder)
    for name in sorted(found):
        if name.startswith(prefix) and not name.startswith(_OURS) and not name.endswith(TEMPORARY_SUFFIX):
            yield name


class FileDraft:
    """What the commits of one group do to files of the store."""

    def __init__(self, files: Files) -> None:
        self._files = files
        #: What the group leaves in them; None: nothing.
        self._after: dict[str, bytes | None] = {}

    def check(self, commit: Commit) -> None:
        """Raise why a commit may not leave its files as it says."""
        for name, data in commit.files.items():
            path_of(name)
            if data is not None:
                self._check_free(name, commit.files)
        for name, believed in commit.expected_files.items():
            if self._holding(name) != believed:
                raise commit.file_conflict(name)

    def _holding(self, name: str) -> bytes | None:
        return self._after[name] if name in self._after else read(self._files, name)

    def _check_free(self, name: str, beside: Mapping[str, bytes | None]) -> None:
        """Refuse a name that is a folder, or lies below a file: such a commit could never be carried out."""
        new = {*self._after, *beside}
        above = [folder for folder in ancestors(name) if folder.startswith(ROOTS)]
        is_below_a_file = any(folder in new or self._is_file(folder) for folder in above)
        if is_below_a_file or any(other.startswith(f"{name}/") for other in new) or self._is_folder(name):
            raise InvalidIdError("a file and a folder of the store would have one name", place=name)

    def _is_file(self, path: str) -> bool:
        try:
            return self._files.size(path) is not None
        except NotADirectoryError:
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                return False
            raise

    def _is_folder(self, path: str) -> bool:
        try:
            return self._files.size(path) is None and bool(self._files.walk(path))
        except NotADirectoryError:
            # Another process carried a commit out between the two looks: now it is a file.
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                return True
            raise

    def takes_keys_away(self, new: Mapping[str, bytes | None]) -> bool:
        """Tell whether a key that is there would be replaced or removed."""
        keys = [name for name in new if name.startswith(_KEYS) and is_file_name(name)]
        return any(map(self._holding_any, keys))

    def operations(self, new: Mapping[str, bytes | None]) -> list[Operation]:
        """Replace and remove files as a commit says."""
        operations = []
        for name, data in new.items():
            is_there = self._holding_any(name)
            if data is not None:
                operations.append(Operation(Kind.REPLACE if is_there else Kind.WRITE, name, 0, data))
            elif is_there:
                operations.append(Operation(Kind.UNLINK, name))
        self._after.update(new)
        return operations

    def _holding_any(self, name: str) -> bool:
        return self._after[name] is not None if name in self._after else self._is_file(name)


def leaves_nothing(operation: Operation) -> bool:
    """Tell whether of what an operation takes away no trace may stay: a key, or what is erased.

    Events are replaced, and what came from another store is changed, when they are erased and never else.
    An answer that a server kept says so itself.
    """
    path, kind = operation.path, operation.kind
    if kind is Kind.WRITE:
        return path.endswith(_PAYLOADS_END) and is_erasure(operation.data)
    if path.startswith(_QUARANTINE):
        return kind is Kind.UNLINK
    if path.startswith(_ANSWERS):
        # Answers replace that there is none with every act: only what is emptied is worth a wipe.
        return kind is Kind.REPLACE and _NOT_KEPT in operation.data
    return path.startswith(_KEYS) or (kind is Kind.REPLACE and path.startswith(_REPLACED_TO_ERASE))
