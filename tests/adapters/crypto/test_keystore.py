"""Keys lie outside the store, one for each log, and nobody waits for cryptography who does not sign."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.crypto.keystore import KeyFolder, default_folder
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointWriteError,
    ConfigError,
    PermissionDeniedError,
)

LOG = "holdfast/00000000-0000-4000-8000-000000000001"


def test_a_key_is_made_when_asked_for_and_found_again(tmp_path: Path) -> None:
    keys = KeyFolder(folder=tmp_path / "keys")
    assert keys.signer(LOG) is None and not (tmp_path / "keys").exists()
    made = keys.signer(LOG, create=True)
    assert made is not None and made.key.name == LOG
    again = keys.signer(LOG, create=True)
    assert again is not None and again.key == made.key
    assert keys.path(LOG).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    signature = made.sign(b"message")
    assert keys.verify(made.key.public_key, b"message", signature)
    assert not keys.verify(made.key.public_key, b"massage", signature)


def test_each_log_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = KeyFolder(folder=tmp_path)
    first, second = keys.signer(LOG, create=True), keys.signer(f"{LOG}2", create=True)
    assert first is not None and second is not None and first.key.public_key != second.key.public_key


def test_a_file_holds_the_key_of_one_log(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "log.key")
    keys.signer(LOG, create=True)
    assert keys.path("anything") == tmp_path / "log.key"
    with pytest.raises(ConfigError, match="the key is that of the log"):
        keys.signer("example.com/other")


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "log.key")
    keys.signer(LOG, create=True)
    (tmp_path / "log.key").chmod(0o644)
    with pytest.raises(PermissionDeniedError):
        keys.signer(LOG)


def test_what_is_no_key_is_refused_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "log.key"
    path.write_bytes(b"something")
    path.chmod(0o600)
    with pytest.raises(CheckpointCorruptError):
        KeyFolder(path).signer(LOG, create=True)
    assert path.read_bytes() == b"something"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PermissionDeniedError, match="folder of keys"):
        KeyFolder(folder=tmp_path / "file" / "keys").signer(LOG, create=True)


def test_two_who_make_a_key_at_once_get_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeyFolder(folder=tmp_path)
    made = keys.signer(LOG, create=True)
    assert made is not None
    late = keys._create(LOG, keys.path(LOG))
    assert late.key == made.key


def test_keys_lie_in_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "holdfast" / "keys"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".config" / "holdfast" / "keys"


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "holdfast.adapters.crypto.signing", None)
    monkeypatch.delattr("holdfast.adapters.crypto.signing", raising=False)
    with pytest.raises(ConfigError, match=r"package for signatures"):
        KeyFolder(folder=tmp_path).verify(b"", b"", b"")


def test_nobody_waits_for_cryptography_who_does_not_sign(tmp_path: Path) -> None:
    program = (
        "import sys, holdfast\n"
        "with holdfast.open('memory:') as service:\n"
        "    service.create_checkpoint('W', {'n': 1})\n"
        "    assert service.audit.keeper.anchor() is None\n"
        "sys.exit('cryptography' in sys.modules)\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    env["XDG_CONFIG_HOME"] = str(tmp_path)
    result = subprocess.run([sys.executable, "-c", program], env=env, check=False, cwd=tmp_path)
    assert result.returncode == 0


def test_the_last_head_is_remembered_beside_the_key(tmp_path: Path) -> None:
    keys = KeyFolder(folder=tmp_path)
    keys.signer("log", create=True)
    assert keys.remembered("log") is None
    keys.remember("log", b"first")
    keys.remember("log", b"second")
    assert keys.remembered("log") == b"second"
    assert keys.remembered("other") is None
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".head", ".key"]


def test_a_head_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    keys = KeyFolder(folder=tmp_path)
    keys.path("log").with_name(f"{keys.path('log').name}.head").mkdir()
    with pytest.raises(CheckpointWriteError, match="cannot be kept beside its key"):
        keys.remember("log", b"head")
    with pytest.raises(PermissionDeniedError, match="cannot be read"):
        keys.remembered("log")
