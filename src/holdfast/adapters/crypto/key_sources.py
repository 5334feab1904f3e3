"""Where keys and secrets come from: a private file, a variable, or the output of a command (a KMS)."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import shlex
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.adapters.crypto.private_file import refuse_shared, write_private
from holdfast.domain.errors import ConfigError, KeyUnavailableError
from holdfast.ports import KeySource

KEY_BYTES = 32
COMMAND_SECONDS = 30.0
#: As much as is read of a file or a command; a key is far shorter.
_TEXT_BYTES_MAX = 4096
#: Of known secrets there may be many; somebody waits for the answer.
_SECRETS_BYTES_MAX = 1024 * 1024
_SECRETS_SECONDS = 10.0
_SECRETS = "secrets"
#: Not to wait for a writer, should it be a pipe.
_OLD = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
KINDS = ("file", "env", "command")
_FORMS = "Use file:PATH, env:NAME or command:PROGRAM ARGUMENTS."


def key_source(text: str) -> KeySource:
    """Read what the setting `encryption_key` says.

    Raises:
        ConfigError: if it is no such thing. What was written is not repeated: it may be a key by mistake.
    """
    kind, _, rest = text.partition(":")
    if not rest or kind not in KINDS:
        raise ConfigError("encryption_key does not say where a key is", hint=_FORMS)
    if kind == "file":
        return KeyFile(Path(rest))
    return KeyVariable(rest) if kind == "env" else KeyCommand(rest)


def read_secrets(text: str) -> bytes:
    """Read the secrets that the setting `resolver` names, in the same three ways as a key.

    Raises:
        KeyUnavailableError: they are not at hand.
        PermissionDeniedError: others may read the file.
    """
    kind, _, rest = text.partition(":")
    if kind == "file":
        return KeyFile(Path(rest), _SECRETS).read(_SECRETS_BYTES_MAX)
    if kind == "env":
        return KeyVariable(rest, _SECRETS).read()
    return KeyCommand(rest, _SECRETS_SECONDS, _SECRETS).read(_SECRETS_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file that only its owner may read, with the key in hexadecimal or base64."""

    path: Path
    what: str = "key"

    @property
    def name(self) -> str:
        """How people call it."""
        return f"file:{self.path}"

    def fetch(self) -> bytes:
        """Read the key."""
        return read_key(self.read(), str(self.path))

    def read(self, limit_bytes: int = _TEXT_BYTES_MAX) -> bytes:
        """Read the file, if nobody else may."""
        try:
            descriptor = os.open(self.path, _OLD)
        except OSError as fault:
            raise KeyUnavailableError(
                f"the {self.what} file cannot be opened ({fault.strerror})", place=str(self.path)
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            refuse_shared(os.fstat(descriptor), self.path)
            return file.read(limit_bytes)


@dataclass(frozen=True, slots=True)
class KeyVariable:
    """A variable of the environment, with the key in hexadecimal or base64."""

    variable: str
    what: str = "key"

    @property
    def name(self) -> str:
        """How people call it."""
        return f"env:{self.variable}"

    def fetch(self) -> bytes:
        """Read the key."""
        return read_key(self.read(), self.variable)

    def read(self) -> bytes:
        """Read the variable."""
        text = os.environ.get(self.variable)
        if not text:
            raise KeyUnavailableError(f"the variable with the {self.what} is not set", place=self.variable)
        return text.encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """A command that prints the key in hexadecimal or base64, such as one that asks a KMS to decrypt it."""

    line: str
    timeout_seconds: float = COMMAND_SECONDS
    what: str = "key"

    @property
    def name(self) -> str:
        """How people call it; arguments may be secrets, and stay out."""
        return "command"

    def fetch(self) -> bytes:
        """Read the key."""
        return read_key(self.read(), self.name)

    def read(self, limit_bytes: int = _TEXT_BYTES_MAX) -> bytes:
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
                f"the {self.what} command did not end within {self.timeout_seconds:g} s", place=self.name
            ) from None
        except (OSError, ValueError):
            raise KeyUnavailableError(
                f"the {self.what} command cannot be run", place=self.name, hint="Name an installed program."
            ) from None
        if done.returncode:
            raise KeyUnavailableError(
                f"the {self.what} command ended with {done.returncode}", place=self.name
            )
        return done.stdout[:limit_bytes]


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
    write_private(path, base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
