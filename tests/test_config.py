"""Configuration: where settings come from, which wins, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.main import main
from holdfast.config import Config, shown, without_secrets
from holdfast.domain.errors import ConfigError
from holdfast.domain.recovery import OnNoValid, RecoverySettings
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.retry import FaultSettings


def write(folder: Path, text: str) -> Path:
    path = folder / "holdfast.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Config.load(env={}) == Config()
    assert Config().store == ".holdfast"
    assert Config().retention == RetentionPolicy()


def test_an_argument_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'store = "from-file"\nmode = "compliance"\nretain_count = 5\n')
    env = {"HOLDFAST_STORE": "from-env", "HOLDFAST_RETAIN_COUNT": "6", "OTHER": "x"}
    loaded = Config.load({"store": "from-argument", "mode": None}, env, path)
    assert (loaded.store, loaded.mode, loaded.retain_count) == ("from-argument", "compliance", 6)


def test_the_file_in_the_working_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "background = false\n")
    monkeypatch.chdir(tmp_path)
    assert Config.load(env={}).background is False


def test_the_environment_is_the_processes_own_unless_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_MODE", "performance")
    assert Config.load().mode == "performance"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retain", "false", False),
        ("background", "ON", True),
        ("limit_bytes", "1000", 1000),
        ("compression_level", "-5", -5),
        ("compression_level", "", None),
        ("max_per_phase", "3", 3),
    ],
)
def test_the_text_of_a_variable_is_read_as_what_the_setting_is(name: str, text: str, value: Any) -> None:
    assert getattr(Config.load(env={f"HOLDFAST_{name.upper()}": text}, path=None), name) == value


@pytest.mark.parametrize(
    "env",
    [
        {"HOLDFAST_LIMIT_BYTES": "many"},
        {"HOLDFAST_RETAIN": "perhaps"},
        {"HOLDFAST_COLOUR": "red"},
        {"HOLDFAST_MODE": "fast"},
        {"HOLDFAST_STORE": ""},
    ],
)
def test_a_wrong_variable_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Config.load(env=env)


@pytest.mark.parametrize(
    "text", ["colour = 1", "store = 1", "retain = 1", "limit_bytes = true", "limit_bytes = -1", "= ="]
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        Config.load(env={}, path=write(tmp_path, text))


def test_an_unknown_setting_names_itself_its_place_and_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, "colour = 1")
    with pytest.raises(ConfigError, match=r"no setting colour.*holdfast\.toml.*cache_bytes"):
        Config.load(env={}, path=path)
    with pytest.raises(ConfigError, match="HOLDFAST_COLOUR"):
        Config.load(env={"HOLDFAST_COLOUR": "1"})
    with pytest.raises(ConfigError, match="the arguments"):
        Config.load({"colour": 1}, {})


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        Config.load(env={}, path=tmp_path / "missing.toml")


@pytest.mark.parametrize(
    "wrong",
    [
        {"compression": "rar"},
        {"redact_engine": "pcre"},
        {"limit_bytes": "7"},
        {"retain": 1},
        {"cache_bytes": -1},
        {"compression_level": 23},
        {"compression": "gzip", "compression_level": -1},
        {"on_fault": "ignore"},
        {"recovery_timeout_seconds": 0.0},
        {"stale_seconds": float("nan")},
        {"app": "no colon"},
        {"enabled": None},
    ],
)
def test_a_wrong_value_is_refused_however_it_comes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Config(**wrong)


@pytest.mark.parametrize("size", [0, -1, 64 * 1024**3 + 1, 2**40, 10**30])
def test_a_journal_of_no_sensible_size_is_refused_before_anything_is_made(tmp_path: Path, size: int) -> None:
    for key, given in (
        ("journal_bytes", {"overrides": {"journal_bytes": size}, "env": {}}),
        ("HOLDFAST_JOURNAL_BYTES", {"env": {"HOLDFAST_JOURNAL_BYTES": str(size)}}),
    ):
        with pytest.raises(ConfigError, match=f"^{key} is {size}") as refused:
            Config.load(**given)
        assert refused.value.hint == "Use a number from 1 to 68719476736."
    with pytest.raises(ConfigError, match="journal_bytes"):
        holdfast.open(tmp_path / "store", journal_bytes=size)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("size", [1, 64 * 1024**3])
def test_a_journal_may_be_as_small_and_as_large_as_the_page_says(size: int) -> None:
    assert Config(journal_bytes=size).journal_bytes == size


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("store", "{}"),
        ("store", "file:{}"),
        ("store", "sqlite:{}"),
        ("progress_path", "{}"),
        ("emergency_path", "{}"),
        ("redact_patterns", "{}"),
        ("signing_key", "{}"),
        ("encryption_key", "file:{}"),
        ("encryption_key_next", "file:{}"),
        ("resolver", "file:{}"),
        ("program", "{}.py:team"),
    ],
)
@pytest.mark.parametrize(("wrong", "told"), [("a\0b", "a NUL"), ("a\ud800b", r"U\+D800")])
def test_what_no_file_can_be_named_is_refused(name: str, text: str, wrong: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name} holds {told}") as refused:
        Config.load({name: text.format(wrong)}, {})
    assert wrong not in str(refused.value)


def test_a_path_that_cannot_be_opened_is_told_as_a_setting_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="store holds a NUL"):
        holdfast.open(tmp_path / "a\0b")
    with pytest.raises(ConfigError, match="progress_path holds a NUL"):
        holdfast.open(tmp_path / "store", progress_path="a\0b")
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, 'store = "a\\u0000b"')
    assert main(["list"]) == 2
    told = capsys.readouterr().err
    assert "store holds a NUL" in told and f"{path.name}:1" in told
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_of_bytes_that_are_no_text_is_a_path() -> None:
    assert Config(store=os.fsdecode(b"caf\xe9")).store == "caf\udce9"


def test_nothing_is_removed_unasked_where_retention_is_off() -> None:
    assert Config(retain=False).retention is None
    assert Config(retain_count=3, max_per_phase=1).retention == RetentionPolicy(3, 30, 1)


def test_recovery_and_faults_are_told_as_those_who_look_at_them_want_it() -> None:
    assert Config().recovery == RecoverySettings()
    assert Config().faults == FaultSettings()
    assert Config(
        auto_recovery=True,
        max_recovery_attempts=5,
        recovery_timeout_seconds=1.5,
        fallback_to_previous=False,
        on_no_valid="fresh",
        stale_seconds=7,
    ).recovery == RecoverySettings(True, 5, 1.5, False, OnNoValid.FRESH, 7)
    degrading = Config(on_fault="degrade", memory_budget_bytes=9, emergency_path="/mnt/spare").faults
    assert degrading == FaultSettings(is_degrading=True, memory_bytes=9, emergency_path="/mnt/spare")


def test_what_is_no_default_is_told_with_where_it_was_given() -> None:
    config, given = Config.traced({"mode": "compliance"}, {"HOLDFAST_RETAIN": "no"})
    assert config == Config(mode="compliance", retain=False)
    assert {name: one.key for name, one in given.items()} == {"mode": "--mode", "retain": "HOLDFAST_RETAIN"}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("store", "postgresql://me:secret@host/db", "postgresql://***@host/db"),
        ("encryption_key", "command:echo secret", "command:..."),
        ("encryption_key", "6b65796b65796b65", "..."),
        ("retain", True, "true"),
        ("max_per_phase", None, "-"),
        ("retain_days", 30, "30"),
    ],
)
def test_values_are_shown_to_people_without_their_secrets(name: str, value: Any, text: str) -> None:
    assert shown(name, value) == text


def test_secrets_are_never_shown() -> None:
    url = "postgresql://me:secret@host/db?sslmode=require&password=secret&sslkey=secret"
    assert "secret" not in without_secrets(url)
    assert without_secrets(url) == "postgresql://***@host/db?sslmode=require&password=***&sslkey=***"
    assert "secret" not in repr(Config(store=url)) + str(Config(store=url))
    with pytest.raises(ConfigError) as caught:
        Config.load({"store": url, "colour": 1}, {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("password", ["se/cret", "se@cret", "se?cret", "se#cret", "se:cret", "se\ncret"])
def test_a_password_that_was_not_escaped_is_not_shown_in_part_either(password: str) -> None:
    shown = without_secrets(f"postgresql://me:{password}@host/db")
    assert "cret" not in shown and "se" not in shown.replace("postgresql", "") and shown.endswith("@host/db")


def test_runs_degrade_unless_something_else_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (Config.for_runs().on_fault, Config.load().on_fault) == ("degrade", "raise")
    assert Config.for_runs({"store": "own", "actor": None}).store == "own"
    assert Config.for_runs({"on_fault": "raise"}).on_fault == "raise"
    write(tmp_path, '[recovery]\non_fault = "raise"\n')
    assert Config.for_runs().on_fault == "raise"
    monkeypatch.setenv("HOLDFAST_ON_FAULT", "degrade")
    assert Config.for_runs().on_fault == "degrade"
