"""A list of secrets is read from where the setting says, anew each time."""

from __future__ import annotations

import sys
import warnings

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.bootstrap_secrets import known_secrets
from holdfast.config import Config
from holdfast.domain.errors import KeyUnavailableError, PermissionDeniedError, RedactedStateWarning


@pytest.fixture
def kit():
    kit = build_kit(MemoryStore(), Config.load({"store": "memory:"}))
    CheckpointService(kit).create_checkpoint("w", {"password": "correct horse"})
    return kit


def answer(kit, text):
    """Ask what a text names for the one secret that was hidden."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedactedStateWarning)
        state = CheckpointService(kit).load_latest("w")
    assert state is not None
    placeholder = state.context["password"]
    make = known_secrets(text)
    assert make is not None
    return make(kit)("/context/password", placeholder)


def test_a_file_a_variable_and_a_command_give_secrets(kit, tmp_path, monkeypatch):
    path = tmp_path / "secrets"
    path.write_text("PASSWORD=correct horse\n")
    path.chmod(0o600)
    assert answer(kit, f"file:{path}") == "correct horse"
    path.write_text("PASSWORD=another\n")
    assert answer(kit, f"file:{path}") is None
    monkeypatch.setenv("APP_PASSWORD", "correct horse")
    assert answer(kit, "env:APP_PASSWORD") == "correct horse"
    assert answer(kit, f"command:{sys.executable} -c \"print('correct horse')\"") == "correct horse"


def test_what_is_not_at_hand_or_open_to_others_is_refused(kit, tmp_path):
    path = tmp_path / "secrets"
    with pytest.raises(KeyUnavailableError, match="the secrets file cannot be opened"):
        answer(kit, f"file:{path}")
    path.write_text("x")
    path.chmod(0o644)
    with pytest.raises(PermissionDeniedError):
        answer(kit, f"file:{path}")
    with pytest.raises(KeyUnavailableError, match="the variable with the secrets is not set"):
        answer(kit, "env:NO_SUCH_VARIABLE_HERE")
    with pytest.raises(KeyUnavailableError, match="the secrets command ended with 3"):
        answer(kit, f'command:{sys.executable} -c "raise SystemExit(3)"')


@pytest.mark.parametrize("text", ["file:", "module:function", "word", "file.py:function"])
def test_what_names_no_list_of_secrets_is_left_to_others(text):
    assert known_secrets(text) is None
