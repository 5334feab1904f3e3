"""Sources of settings: the tables of the file, what they mean, and what is said about a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Config
from holdfast.config_sources import MEGABYTE, TABLES, ConfigFile, Source, gather, placed
from holdfast.domain.errors import ConfigError

KINDS = {"store": "text", "retain_days": "number", "limit_bytes": "number", "compression_level": "number"}


def write(folder: Path, text: str) -> Path:
    path = folder / "holdfast.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Config.load(env={}, path=write(folder, text))
    return caught.value


@pytest.mark.parametrize(
    ("table", "key", "written", "setting", "value"),
    [
        ("checkpoint", "enabled", "false", "enabled", False),
        ("checkpoint", "storage_path", '"./outputs/checkpoints"', "store", "./outputs/checkpoints"),
        ("checkpoint", "compression", "false", "compression", "none"),
        ("checkpoint", "compression", "true", "compression", "zstd"),
        ("checkpoint", "compression", '"gzip"', "compression", "gzip"),
        ("checkpoint", "compression_level", "9", "compression_level", 9),
        ("checkpoint", "encryption", "true", "encrypt", True),
        ("checkpoint", "retention_days", "7", "retain_days", 7),
        ("checkpoint", "max_checkpoints_per_phase", "5", "max_per_phase", 5),
        ("checkpoint", "checkpoint_size_limit_mb", "100", "limit_bytes", 100 * MEGABYTE),
        ("checkpoint", "checkpoint_size_limit_mb", "0.5", "limit_bytes", MEGABYTE // 2),
        ("checkpoint", "progress_path", '"./reports"', "progress_path", "./reports"),
        ("recovery", "auto_recovery", "true", "auto_recovery", True),
        ("recovery", "max_recovery_attempts", "5", "max_recovery_attempts", 5),
        ("recovery", "recovery_timeout_seconds", "60", "recovery_timeout_seconds", 60),
        ("recovery", "fallback_to_previous", "false", "fallback_to_previous", False),
        ("recovery", "on_no_valid", '"fresh"', "on_no_valid", "fresh"),
        ("recovery", "stale_seconds", "1.5", "stale_seconds", 1.5),
        ("recovery", "on_fault", '"degrade"', "on_fault", "degrade"),
        ("recovery", "emergency_path", '"/mnt/spare"', "emergency_path", "/mnt/spare"),
        ("recovery", "memory_budget_mb", "16", "memory_budget_bytes", 16 * MEGABYTE),
        ("recovery", "app", '"flows.main:app"', "app", "flows.main:app"),
        ("performance", "async_writes", "false", "background", False),
        ("performance", "batch_decisions", "true", "batch_decisions", True),
        ("performance", "compression_level", "3", "compression_level", 3),
        ("performance", "memory_mapped_threshold_mb", "10", "memory_map_bytes", 10 * MEGABYTE),
        ("run", "program", '"flows.py:team"', "program", "flows.py:team"),
    ],
)
def test_a_key_of_a_table_means_a_setting(
    tmp_path: Path, table: str, key: str, written: str, setting: str, value: Any
) -> None:
    config = Config.load(env={}, path=write(tmp_path, f"[{table}]\n{key} = {written}\n"))
    assert getattr(config, setting) == value
    assert config == Config(**{setting: value})


def test_every_key_of_every_table_is_a_setting() -> None:
    settings = {key.setting for keys in TABLES.values() for key in keys.values()}
    assert settings <= set(Config.__dataclass_fields__)


def test_tables_and_settings_of_the_top_go_together(tmp_path: Path) -> None:
    path = write(tmp_path, 'mode = "performance"\n[checkpoint]\nretention_days = 3\n[recovery]\n')
    loaded = Config.load(env={}, path=path)
    assert (loaded.mode, loaded.retain_days) == ("performance", 3)


def test_each_value_is_told_with_where_it_was_given(tmp_path: Path) -> None:
    path = write(tmp_path, '# first line\nstore = "a"\n\n[checkpoint]\nretention_days = 3\n')
    env = {"HOLDFAST_COMPRESSION_LEVEL": "4", "HOLDFAST_CAMPAIGN": "1", "PATH": "/bin"}
    found = {name: placed(one) for name, one in gather(KINDS, {"limit_bytes": 5}, env, path).items()}
    assert {name: (one.source, one.key, one.place) for name, one in found.items()} == {
        "store": (Source.FILE, "store", f"{path}:2"),
        "retain_days": (Source.FILE, "[checkpoint] retention_days", f"{path}:5"),
        "compression_level": (Source.ENVIRONMENT, "HOLDFAST_COMPRESSION_LEVEL", "the environment"),
        "limit_bytes": (Source.FLAG, "--limit_bytes", "the arguments"),
    }


def test_the_source_that_wins_is_the_one_told(tmp_path: Path) -> None:
    path = write(tmp_path, 'store = "a"\n')
    env = {"HOLDFAST_STORE": "b"}
    assert gather(KINDS, {}, env, path)["store"].source is Source.ENVIRONMENT
    assert gather(KINDS, {"store": "c"}, env, path)["store"].value == "c"


def test_a_file_that_is_gone_again_has_no_lines(tmp_path: Path) -> None:
    path = write(tmp_path, 'store = "a"\n')
    given = gather(KINDS, {}, {}, path)["store"]
    path.unlink()
    assert placed(given).place == str(path)


@pytest.mark.parametrize(
    ("text", "keys", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("a = [\n 1,\n]\nb = 2\n", ("a",), 3),
        ("[t]\na = 1\n[u]\na = 2\n", ("u", "a"), 4),
        ("t.a = 1\nt.b = 2\n", ("t", "b"), 2),
        ("t = {a = 1}\n", ("t", "a"), 1),
        ('s = """\na = 1\n"""\na = 2\n', ("a",), 4),
        ("a = 1\n", ("a", "b"), None),
    ],
)
def test_the_line_of_a_key_is_found_however_it_is_written(
    text: str, keys: tuple[str, ...], line: int | None
) -> None:
    assert ConfigFile("x.toml", text).at(*keys) == ("x.toml" if line is None else f"x.toml:{line}")


@pytest.mark.parametrize(
    ("text", "message", "line", "hint"),
    [
        ("retian_days = 1", "no setting retian_days", 1, "Did you mean retain_days?"),
        ("\n[recovery]\nauto_recover = true", "no setting auto_recover", 3, "Did you mean auto_recovery?"),
        ("[recovery]\nretention_days = 3", "no setting retention_days", 2, "its place in [checkpoint]"),
        ("[recovery]\nretain_days = 3", "no setting retain_days", 2, "at the top of the file"),
        ("retention_days = 3", "no setting retention_days", 1, "here it is retain_days"),
        ("[recover]\nauto_recovery = true", "no table [recover]", 1, "Did you mean [recovery]?"),
        ("recovery = true", "recovery is no table", 1, "[recovery]"),
        ("\n[checkpoint]\nretention_days = 'x'", "[checkpoint] retention_days is 'x'", 3, "number"),
        ("[checkpoint]\nretention_days = -1", "retention_days is -1", 2, "0 or more"),
        ("[checkpoint]\ncheckpoint_size_limit_mb = 'x'", "checkpoint_size_limit_mb is 'x'", 2, "megabytes"),
        ("[checkpoint]\ncheckpoint_size_limit_mb = true", "limit_mb is True", 2, "megabytes"),
        ("[performance]\nmemory_mapped_threshold_mb = -1", "threshold_mb is -1", 2, "megabytes"),
        ("[performance]\nmemory_mapped_threshold_mb = nan", "threshold_mb is nan", 2, "megabytes"),
        ("[checkpoint]\ncompression = 'rar'", "compression is 'rar'", 2, "none, zstd, gzip"),
        ("[recovery]\non_fault = 'ignore'", "on_fault is 'ignore'", 2, "raise, degrade"),
        ("[recovery]\non_no_valid = 'guess'", "on_no_valid is 'guess'", 2, "error, fresh"),
        ("[recovery]\nrecovery_timeout_seconds = 0", "recovery_timeout_seconds is 0", 2, "some time"),
        ("[recovery]\nstale_seconds = inf", "stale_seconds is inf", 2, "seconds"),
        ("[recovery]\nstale_seconds = true", "stale_seconds is True", 2, "seconds"),
        ("[recovery]\napp = 'flows.main'", "app is 'flows.main'", 2, "module:object"),
        ("[recovery]\napp = '../x:y'", "app is '../x:y'", 2, "module:object"),
        ("retain_days = 1\n[checkpoint]\nretention_days = 1", "retain_days is set twice", 3, "Remove"),
        (
            "[checkpoint]\ncompression_level = 1\n[performance]\ncompression_level = 1",
            "compression_level is set twice",
            4,
            "Remove [checkpoint] compression_level or [performance] compression_level.",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line_and_what_to_do(
    tmp_path: Path, text: str, message: str, line: int, hint: str
) -> None:
    error = refused(tmp_path, text)
    assert message in error.message
    assert error.place.startswith(f"{tmp_path / 'holdfast.toml'}:{line}")
    assert hint in error.hint


def test_a_variable_named_as_in_a_table_is_told_its_own_name() -> None:
    with pytest.raises(ConfigError, match=r"HOLDFAST_RETENTION_DAYS.*here it is HOLDFAST_RETAIN_DAYS"):
        Config.load(env={"HOLDFAST_RETENTION_DAYS": "3"})
    with pytest.raises(ConfigError, match=r"Did you mean HOLDFAST_STALE_SECONDS\?"):
        Config.load(env={"HOLDFAST_STALE_SECOND": "3"})


def test_seconds_in_a_variable_may_have_a_fraction() -> None:
    assert Config.load(env={"HOLDFAST_STALE_SECONDS": "0.5"}).stale_seconds == 0.5
    with pytest.raises(ConfigError, match="Use a number"):
        Config.load(env={"HOLDFAST_STALE_SECONDS": "soon"})


PROFILES = """
retain_days = 30

[recovery]
stale_seconds = 60

[profile.test]
retain_days = 1

[profile.test.recovery]
stale_seconds = 5

[profile.other]
mode = "compliance"
"""


def test_a_profile_wins_over_its_file_and_a_variable_over_both(tmp_path: Path) -> None:
    path = write(tmp_path, PROFILES)
    plain = Config.load(env={}, path=path)
    chosen = Config.load(env={"HOLDFAST_PROFILE": "test"}, path=path)
    told = Config.load(env={"HOLDFAST_PROFILE": "test", "HOLDFAST_RETAIN_DAYS": "2"}, path=path)
    assert [(one.retain_days, one.stale_seconds) for one in (plain, chosen, told)] == [
        (30, 60),
        (1, 5),
        (2, 5),
    ]
    assert Config.load(env={"HOLDFAST_PROFILE": "", "HOLDFAST_CONFIG": str(path)}) == plain


def test_a_setting_of_a_profile_is_told_with_its_line_and_its_table(tmp_path: Path) -> None:
    path = write(tmp_path, PROFILES)
    found = Config.traced(env={"HOLDFAST_PROFILE": "test"}, path=path)[1]
    assert found["stale_seconds"].key == "[profile.test.recovery] stale_seconds"
    assert placed(found["stale_seconds"]).place == f"{path}:11"
    assert placed(found["retain_days"]).place == f"{path}:8"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile = 1\n", "a profile is a table"),
        ("[profile]\ntest = 1\n", "a profile is a table"),
        ('[profile."a.b"]\n', "is no name of a profile"),
        ("[profile.test]\nnonsense = 1\n", "there is no setting nonsense"),
        ("[profile.test.nonsense]\nx = 1\n", "there is no table [profile.test.nonsense]"),
        ("[profile.test.recovery]\nnonsense = 1\n", "there is no setting nonsense"),
        ("[profile.test]\nretain_days = 1\n[profile.test.checkpoint]\nretention_days = 2\n", "is set twice"),
        ("[profile.test]\nrecovery = 1\n", "recovery is no table"),
    ],
)
def test_a_mistake_in_a_profile_is_told_whether_it_is_chosen_or_not(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Config.load(env={}, path=write(tmp_path, text))


def test_a_profile_that_nobody_wrote_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there is no profile tst") as refused:
        Config.load(env={"HOLDFAST_PROFILE": "tst"}, path=write(tmp_path, PROFILES))
    assert "Did you mean test?" in refused.value.hint
    monkeypatch.chdir(tmp_path / "..")
    with pytest.raises(ConfigError, match="there is no profile tst"):
        Config.load(env={"HOLDFAST_PROFILE": "tst"})


def test_a_file_that_a_variable_names_must_be_there() -> None:
    with pytest.raises(ConfigError, match="there is no such configuration file"):
        Config.load(env={"HOLDFAST_CONFIG": "nowhere.toml"})
