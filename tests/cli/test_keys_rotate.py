from tests.cli.conftest import Run
from tests.cli.encrypted import encrypted_store, use_key
from tests.encrypted import NEW_KEY


def test_afterwards_only_the_new_key_opens_the_store(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    monkeypatch.setenv("THE_NEW_KEY", NEW_KEY.hex())
    done = run("keys", "rotate", "--new", "env:THE_NEW_KEY", "--store", store)
    assert done.exit_code == 0 and "are wrapped by" in done.out and "wherever" in done.err
    assert run("keys", "check", "--store", store).exit_code == 12
    use_key(monkeypatch, NEW_KEY)
    assert run("keys", "check", "--store", store).exit_code == 0
    assert run("show", "WF-1@latest", "--store", store).exit_code == 0
    entries = run("audit", "log", "--json", "--store", store)
    assert "KEY_ROTATED" in entries.out


def test_programs_are_told_in_json_and_nonsense_is_refused(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    assert run("keys", "rotate", "--new", "somewhere", "--store", store).exit_code == 2
    assert run("keys", "rotate", "--new", "env:NOT_SET", "--store", store).exit_code == 12
    monkeypatch.setenv("THE_NEW_KEY", NEW_KEY.hex())
    told = run("keys", "rotate", "--new", "env:THE_NEW_KEY", "--json", "--store", store).data
    assert told["keys"] >= 2 and told["old"] != told["new"]


def test_a_dry_run_fetches_both_keys_and_changes_nothing(run: Run, monkeypatch, tmp_path):
    store = encrypted_store(run, monkeypatch, tmp_path)
    monkeypatch.setenv("THE_NEW_KEY", NEW_KEY.hex())
    args = ("keys", "rotate", "--dry-run", "--json", "--store", store)
    assert run(*args, "--new", "env:THE_NEW_KEY").data["keys"] >= 2
    assert run(*args, "--new", "env:NOT_SET").exit_code == 12
    assert run("keys", "check", "--store", store).exit_code == 0
