import base64
import os
import stat
import sys

import pytest

from holdfast.adapters.crypto.key_sources import (
    KeyCommand,
    KeyFile,
    key_source,
    new_key_file,
    read_key,
)
from holdfast.domain.errors import (
    CheckpointWriteError,
    ConfigError,
    KeyUnavailableError,
    PermissionDeniedError,
)

KEY = bytes(range(32))
TEXTS = [KEY.hex().encode(), KEY.hex().upper().encode(), base64.b64encode(KEY), base64.b64encode(KEY) + b"\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_key_is_read_in_hexadecimal_and_in_base64(text):
    assert read_key(text, "here") == KEY


@pytest.mark.parametrize("text", [b"", b"secret words", b"00" * 31, b"zz" * 32, base64.b64encode(bytes(31))])
def test_what_is_no_key_is_refused_without_repeating_it(text):
    with pytest.raises(KeyUnavailableError, match="not a key") as refusal:
        read_key(text, "here")
    assert not text or text.decode() not in str(refusal.value)


def test_a_new_key_file_is_private_and_never_replaces_another(tmp_path):
    path = tmp_path / "kek"
    before = os.umask(0)
    try:
        new_key_file(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = KeyFile(path).fetch()
    assert len(first) == 32
    with pytest.raises(CheckpointWriteError, match="never replaced"):
        new_key_file(path)
    assert KeyFile(path).fetch() == first
    with pytest.raises(CheckpointWriteError):
        new_key_file(tmp_path / "no folder" / "kek")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o606])
def test_a_key_file_that_others_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "kek"
    new_key_file(path)
    path.chmod(mode)
    with pytest.raises(PermissionDeniedError, match="read by others"):
        KeyFile(path).fetch()


def test_a_key_file_that_is_none_is_told(tmp_path):
    with pytest.raises(KeyUnavailableError, match="cannot be opened"):
        KeyFile(tmp_path / "none").fetch()
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(PermissionDeniedError, match="no plain file"):
        KeyFile(tmp_path / "pipe").fetch()


def test_a_key_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY.hex())
    source = key_source("env:MY_KEY")
    assert (source.fetch(), source.name) == (KEY, "env:MY_KEY")
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(KeyUnavailableError, match="is not set"):
        source.fetch()


def test_a_key_comes_from_a_command_that_is_run_without_a_shell():
    program = f"{sys.executable} -c 'print(bytes(range(32)).hex())'"
    source = key_source(f"command:{program}")
    assert (source.fetch(), source.name) == (KEY, "command")
    with pytest.raises(KeyUnavailableError):
        key_source("command:echo $MY_KEY").fetch()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('SECRET-OUTPUT')", "not a key"),
        ("import sys; sys.exit('SECRET-OUTPUT')", "ended with 1"),
        ("import time; time.sleep(60)", "did not end"),
    ],
)
def test_nothing_that_a_command_prints_is_repeated(program, problem, capfd):
    source = KeyCommand(f'{sys.executable} -c "{program}"', timeout_seconds=0.5 if "sleep" in program else 30)
    with pytest.raises(KeyUnavailableError, match=problem) as refusal:
        source.fetch()
    told = capfd.readouterr()
    assert "SECRET-OUTPUT" not in str(refusal.value) + told.out + told.err
    assert "import" not in str(refusal.value)


@pytest.mark.parametrize("line", ["/no/such/program", "'unfinished"])
def test_a_command_that_cannot_be_run_is_told(line):
    with pytest.raises(KeyUnavailableError, match="cannot be run"):
        KeyCommand(line).fetch()


@pytest.mark.parametrize("text", ["", "file:", "kms:x", "c2VjcmV0LWtleS1ieS1taXN0YWtl", "env"])
def test_a_setting_that_names_no_source_is_refused_without_repeating_it(text):
    with pytest.raises(ConfigError, match="does not say where") as refusal:
        key_source(text)
    assert "c2VjcmV0" not in str(refusal.value)
