"""Where the key-encryption key comes from: a private file, a variable, or the output of a command (a KMS)."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import shlex
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.errors import (
    CheckpointWriteError,
    ConfigError,
    KeyUnavailableError,
    PermissionDeniedError,
)
from holdfast.ports import KeySource

KEY_BYTES = 32
COMMAND_SECONDS = 30.0
#: As much as is read of a file or a command; a key is far shorter.
_TEXT_BYTES_MAX = 4096
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: Not to wait for a writer, should it be a pipe.
_OLD = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_FORMS = "Use file:PATH, env:NAME or command:PROGRAM ARGUMENTS."


def key_source(text: str) -> KeySource:
    """Read what the setting `encryption_key` says.

    Raises:
        ConfigError: if it is no such thing. What was written is not repeated: it may be a key by mistake.
    """
    kind, _, rest = text.partition(":")
    if not rest:
        raise ConfigError("encryption_key does not say where a key is", hint=_FORMS)
    if kind == "file":
        return KeyFile(Path(rest))
    if kind == "env":
        return KeyVariable(rest)
    if kind == "command":
        return KeyCommand(rest)
    raise ConfigError("encryption_key does not say where a key is", hint=_FORMS)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file that only its owner may read, with the key in hexadecimal or base64."""

    path: Path

    @property
    def name(self) -> str:
        """How people call it."""
        return f"file:{self.path}"

    def fetch(self) -> bytes:
        """Read the key."""
        try:
            descriptor = os.open(self.path, _OLD)
        except OSError as fault:
            raise KeyUnavailableError(
                f"the key file cannot be opened ({fault.strerror})", place=str(self.path)
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            _refuse_shared(os.fstat(descriptor), self.path)
            return read_key(file.read(_TEXT_BYTES_MAX), str(self.path))


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """A variable of the environment, with the key in hexadecimal or base64."""

    variable: str

    @property
    def name(self) -> str:
        """How people call it."""
        return f"env:{self.variable}"

    def fetch(self) -> bytes:
        """Read the key."""
        text = os.environ.get(self.variable)
        if not text:
            raise KeyUnavailableError("the variable with the key is not set", place=self.variable)
        return read_key(text.encode("utf-8", "replace"), self.variable)


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """A command that prints the key in hexadecimal or base64, such as one that asks a KMS to decrypt it."""

    line: str
    timeout_seconds: float = COMMAND_SECONDS

    @property
    def name(self) -> str:
        """How people call it; arguments may be secrets, and stay out."""
        return "command"

    def fetch(self) -> bytes:
        """Run the command, without a shell; nothing of what it prints is shown anywhere."""
        try:
            done = subprocess.run(
                shlex.split(self.line),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise KeyUnavailableError(
                f"the key command did not end within {self.timeout_seconds:g} s", place=self.name
            ) from None
        except (OSError, ValueError):
            raise KeyUnavailableError(
                "the key command cannot be run", place=self.name, hint="Name an installed program."
            ) from None
        if done.returncode:
            raise KeyUnavailableError(f"the key command ended with {done.returncode}", place=self.name)
        return read_key(done.stdout[:_TEXT_BYTES_MAX], self.name)


def read_key(text: bytes, place: str) -> bytes:
    """Read the text of a key: 64 hexadecimal digits, or 32 bytes in base64."""
    stripped = text.strip()
    with suppress(ValueError):
        if len(stripped) == 2 * KEY_BYTES:
            return bytes.fromhex(stripped.decode("ascii"))
    try:
        material = base64.b64decode(stripped, validate=True)
    except (binascii.Error, ValueError):
        material = b""
    if len(material) != KEY_BYTES:
        raise KeyUnavailableError(
            "this is not a key", place=place, hint="It should be 32 bytes, in base64 or hexadecimal."
        )
    return material


def new_key_file(path: Path) -> None:
    """Write a new random key to a new file that only its owner may read; one that is there is left alone.

    Raises:
        CheckpointWriteError: if there is one already, or it cannot be written.
    """
    try:
        descriptor = os.open(path, _NEW, 0o600)
    except OSError as fault:
        raise _unwritten(fault, path) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(descriptor)
        _sync_folder(path.parent)
    except OSError as fault:
        with suppress(OSError):
            path.unlink()
        raise _unwritten(fault, path) from None


def _refuse_shared(status: os.stat_result, path: Path) -> None:
    is_private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
    if not is_private or status.st_uid not in (os.geteuid(), 0):
        raise PermissionDeniedError(
            "a key file may be read by others, or is no plain file of yours",
            place=str(path),
            hint="Give it to its owner alone (chmod 600); if others could have read it, rotate the key.",
        )


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritten(fault: OSError, path: Path) -> CheckpointWriteError:
    is_there = isinstance(fault, FileExistsError)
    hint = "An existing file is never replaced: give another path, or move the old key away."
    return CheckpointWriteError(
        f"the key could not be written ({fault.strerror})", place=str(path), hint=hint if is_there else ""
    )
