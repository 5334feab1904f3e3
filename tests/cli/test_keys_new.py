import stat

from holdfast.adapters.crypto.key_sources import key_source
from tests.cli.conftest import Run


def test_a_key_is_made_and_how_to_name_it_is_printed(run: Run, tmp_path):
    done = run("keys", "new", "--out", tmp_path / "kek")
    assert (done.exit_code, done.out) == (0, f"encryption_key=file:{tmp_path / 'kek'}\n")
    assert "safe place" in done.err
    assert stat.S_IMODE((tmp_path / "kek").stat().st_mode) == 0o600
    source = done.out.strip().partition("=")[2]
    assert key_source(source).fetch().hex() not in done.out + done.err
    again = run("keys", "new", "--out", tmp_path / "kek", "--json")
    assert again.exit_code == 1 and "never replaced" in again.error["hint"]


def test_a_folder_that_is_not_there_is_no_file_that_is(run: Run, tmp_path):
    failed = run("keys", "new", "--out", tmp_path / "nowhere" / "kek", "--json")
    assert failed.exit_code == 1 and failed.error["hint"] == ""


def test_programs_are_told_in_json(run: Run, tmp_path):
    done = run("keys", "new", "--out", tmp_path / "kek", "--json")
    assert done.data == {"file": str(tmp_path / "kek"), "encryption_key": f"file:{tmp_path / 'kek'}"}


def test_a_dry_run_makes_no_key_and_writes_over_none(run: Run, tmp_path):
    assert run("keys", "new", "--out", tmp_path / "kek", "--dry-run").out.startswith("Would make a key in ")
    assert not (tmp_path / "kek").exists()
    run("keys", "new", "--out", tmp_path / "kek")
    assert run("keys", "new", "--out", tmp_path / "kek", "--dry-run").exit_code == 2
