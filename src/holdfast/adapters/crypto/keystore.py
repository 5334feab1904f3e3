"""Where keys that sign tree heads are kept: outside the store, so that a copy of the store holds none.

The packages that do the mathematics are loaded when the first key is used, not before: most who open a store
never sign anything.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from holdfast.adapters.crypto.private_file import sync_folder
from holdfast.domain.errors import CheckpointWriteError, ConfigError, PermissionDeniedError
from holdfast.domain.ids import folder_name

if TYPE_CHECKING:
    from holdfast.adapters.crypto.signing import SigningKey

_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class KeyFolder:
    """Keys of logs, each in a file of its own that only its owner may read."""

    def __init__(self, key_file: str | Path | None = None, folder: Path | None = None) -> None:
        """Use one file for the key, or a folder with one file for each log (that of the user by default)."""
        self._key_file = Path(key_file) if key_file else None
        self._folder = folder or default_folder()

    def path(self, origin: str) -> Path:
        """Tell where the key of a log is kept, or would be."""
        return self._key_file or self._folder / f"{folder_name(origin)}.key"

    def signer(self, origin: str, *, create: bool = False) -> SigningKey | None:
        """Give the key of a log; None if there is none here. With `create` one is made.

        Raises:
            ConfigError: the file holds the key of another log, or a package is missing.
            PermissionDeniedError: others may read the key, or it cannot be opened.
            CheckpointCorruptError: the file holds no key.
            CheckpointWriteError: a new key could not be written.
        """
        path = self.path(origin)
        if not os.path.lexists(path):
            return self._create(origin, path) if create else None
        key: SigningKey = _signing().SigningKey.load(path)
        if key.key.name != origin:
            raise ConfigError(
                f"the key is that of the log {key.key.name}, and this one is {origin}",
                place=str(path),
                hint="Name another file by `signing_key`; each log has a key of its own.",
            )
        return key

    def remembered(self, origin: str) -> bytes | None:
        """Give the last head that the key of a log signed here; None if it signed none."""
        try:
            return self._head_path(origin).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise PermissionDeniedError(
                f"the last signed head cannot be read ({fault.strerror})", place=str(self._head_path(origin))
            ) from None

    def remember(self, origin: str, head: bytes) -> None:
        """Keep a head as the last that was signed, durably.

        Raises:
            CheckpointWriteError: it is not known to be kept: then it must not be given away.
        """
        path = self._head_path(origin)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            with open(
                os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
            ) as file:
                file.write(head)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
            sync_folder(path.parent)
        except OSError as fault:
            raise CheckpointWriteError(
                f"the signed head cannot be kept beside its key ({fault.strerror})", place=str(path)
            ) from None

    def _head_path(self, origin: str) -> Path:
        path = self.path(origin)
        return path.with_name(f"{path.name}.head")

    def verify(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        """Tell whether a signature of a message is by a public key.

        Raises:
            ConfigError: a package is missing.
        """
        is_right: bool = _signing().verify(public_key, message, signature)
        return is_right

    def _create(self, origin: str, path: Path) -> SigningKey:
        key: SigningKey = _signing().SigningKey.generate(origin)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise PermissionDeniedError(
                f"the folder of keys cannot be made ({fault.strerror})", place=str(path.parent)
            ) from None
        try:
            key.save(path)
        except CheckpointWriteError:
            # Somebody else may have made one a moment ago: then that one is the log's.
            if not os.path.lexists(path):
                raise
            key = _signing().SigningKey.load(path)
        return key


def default_folder() -> Path:
    """Name the user's own folder of keys."""
    configured = os.environ.get("XDG_CONFIG_HOME")
    # A relative path is no configuration at all, says its specification.
    home = Path(configured) if configured and os.path.isabs(configured) else Path.home() / ".config"
    return home / "holdfast" / "keys"


def _signing() -> ModuleType:
    try:
        from holdfast.adapters.crypto import signing
    except ImportError as missing:
        raise ConfigError(
            f"a package for signatures is not installed ({missing.name})",
            hint="Run `pip install 'holdfast[audit]'`.",
        ) from missing
    return signing
