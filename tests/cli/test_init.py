from __future__ import annotations

import stat
from pathlib import Path

import pytest

from holdfast.adapters.crypto.signing import SigningKey
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, without_privileges


@pytest.mark.parametrize("url", ["/proc/holdfast", "sqlite:/proc/holdfast/a.db"])
def test_a_place_where_nothing_can_be_made_is_told_as_that(run: Run, url: str):
    result = run("init", "--store", url)
    assert result.exit_code == Exit.UNREACHABLE
    assert "no store can be made here (No such file or directory)\n   at: /proc/holdfast" in result.err
    assert "durable" not in result.err


def test_a_link_that_leads_nowhere_is_no_place_for_a_store(run: Run, tmp_path: Path):
    (tmp_path / "store").symlink_to("nowhere")
    result = run("init", "--store", tmp_path / "store")
    assert result.exit_code == Exit.UNREACHABLE
    assert "no store can be made here (File exists)" in result.err and "durable" not in result.err


def test_a_store_is_made(run: Run, tmp_path: Path):
    place = tmp_path / "new"
    result = run("init", "--store", place)
    made, key = result.out.splitlines()
    assert (result.exit_code, made) == (0, f"Made a store at file:{place}")
    assert key.startswith("public key   holdfast/") and "The private key is in" in result.err
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert run("validate", "--deep", "--store", place).exit_code == 0


def test_a_store_that_is_there_is_left_alone(run: Run, store: Path):
    before = (store / "holdfast.json").read_bytes()
    result = run("init", "--store", store, "--json")
    assert (result.exit_code, result.data) == (0, {"store": f"file:{store}", "created": False})
    assert "already" in run("init", "--store", store).out
    assert (store / "holdfast.json").read_bytes() == before
    assert run("list", "--json", "--store", store).data["total"] == 2


def test_programs_are_told(run: Run, tmp_path: Path):
    told = run("init", "--store", tmp_path / "new", "--json").data
    assert (told["store"], told["created"]) == (f"file:{tmp_path / 'new'}", True)
    key = SigningKey.load(Path(told["private_key"]))
    assert str(key.key) == told["public_key"]
    assert Path(told["private_key"]).is_relative_to(tmp_path / "config")


def test_a_new_store_is_signed_from_the_beginning(run: Run, tmp_path: Path):
    key = run("init", "--store", tmp_path / "new", "--json").data["public_key"]
    verified = run("audit", "verify", "--key", key, "--store", tmp_path / "new", "--json")
    assert (verified.exit_code, verified.data["level"]) == (0, "signed head")


def test_quiet_says_nothing(run: Run, tmp_path: Path):
    result = run("init", "-q", "--store", tmp_path / "new")
    assert (result.exit_code, result.out, result.err) == (0, "", "")


def test_a_store_is_made_without_a_key_where_none_can_be(run: Run, tmp_path: Path, monkeypatch):
    (tmp_path / "config").write_text("no folder")
    result = run("init", "--store", tmp_path / "one")
    assert result.exit_code == 0 and "No signing key was made" in result.err
    monkeypatch.setattr("holdfast.cli.init.find_spec", lambda name: None)
    result = run("init", "--store", tmp_path / "two")
    assert (result.exit_code, result.err) == (0, "") and "public key" not in result.out


def test_a_folder_that_is_not_ours_ends_with_13(run: Run, public_folder: Path, monkeypatch):
    monkeypatch.chdir(public_folder)
    run("init", "--store", public_folder / "first")
    public_folder.chmod(0o555)
    try:
        with without_privileges():
            result = run("init", "--store", public_folder / "second")
    finally:
        public_folder.chmod(0o755)
    assert result.exit_code == Exit.UNREACHABLE
    assert "Traceback" not in result.err


def test_a_store_of_another_format_is_not_touched(run: Run, store: Path):
    settings = store / "holdfast.json"
    settings.write_text(settings.read_text().replace('"version": 1', '"version": 99'))
    assert run("init", "--store", store).exit_code == Exit.OTHER_FORMAT
